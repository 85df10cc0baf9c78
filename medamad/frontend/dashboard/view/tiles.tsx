// The measures of a period, each with its change; choosing one charts it.

import type { Figures } from "../api/types.ts";
import { changeOf, t } from "../i18n/index.ts";
import type { Measure } from "./address.ts";
import { charted, known, measured, measures } from "./measures.ts";
import { useViewing } from "./page-state.ts";

interface Properties {
  current: Figures | undefined;
  before: Figures | undefined;
  /** Whether there is, or may come, something to compare with. */
  isCompared: boolean;
  isStale: boolean;
  hasFailed: boolean;
}

export function Tiles({ current, before, isCompared, isStale, hasFailed }: Properties) {
  const { view, show } = useViewing();
  const shown = measures(view);
  return (
    <div
      class={`tiles ${isCompared ? "compared" : ""} ${isStale ? "stale" : ""}`}
      data-count={shown.length}
    >
      {shown.map((measure) => (
        <button
          key={measure}
          type="button"
          class="tile"
          aria-pressed={charted(view) === measure}
          title={hint(measure)}
          onClick={() => show({ measure: measure === shown[0] ? undefined : measure }, true)}
        >
          <span class="tile-name">{t(`measure.${measure}`)}</span>
          {current ? (
            <span class="tile-line">
              <Shown measure={measure} value={known(measure, current)} />
              {before && (
                <Change
                  measure={measure}
                  now={known(measure, current)}
                  before={known(measure, before)}
                />
              )}
            </span>
          ) : hasFailed ? (
            <span class="tile-line soft">–</span>
          ) : (
            <span class="tile-line">
              <span class="skeleton tile-skeleton" />
            </span>
          )}
        </button>
      ))}
    </div>
  );
}

/** Longer figures are smaller. */
const LONG_FROM = 11;

function Shown({ measure, value }: { measure: Measure; value: number | null }) {
  const text = measured(measure, value);
  return (
    <span
      class={text.length < LONG_FROM ? "tile-figure" : "tile-figure long"}
      title={measured(measure, value, true)}
    >
      {text}
    </span>
  );
}

function hint(measure: Measure): string {
  if (measure === "visit_duration") return t("measure.visit_duration-title");
  if (measure === "visit_bounce_percentage") return t("measure.visit_bounce_percentage-title");
  return measure === "visits" ? t("measure.visits-title") : "";
}

interface ChangeProperties {
  measure: Measure;
  now: number | null;
  before: number | null;
}

/** How a figure changed since what it is compared with; nothing if that is unknown. */
export function Change({ measure, now, before }: ChangeProperties) {
  // A change from nothing has no percentage.
  if (now === null || !before) return null;
  const fraction = (now - before) / before;
  const isUp = fraction > 0;
  const isGood = measure.endsWith("bounce_percentage") ? !isUp : isUp;
  const isSame = Math.abs(fraction) < 0.005;
  const tone = isSame ? "" : isGood ? "good" : "bad";
  const change = changeOf(Math.abs(fraction)).replace(/^\+/, "");
  const words = isSame ? t("measure.same") : t(isUp ? "measure.more" : "measure.less", { change });
  return (
    <span
      class={`change ${tone}`}
      title={t("measure.before", { value: measured(measure, before, true) })}
    >
      <span aria-hidden="true">
        {isSame ? "=" : isUp ? "▲" : "▼"}
        {!isSame && change}
      </span>
      <span class="hidden">{words}</span>
    </span>
  );
}
