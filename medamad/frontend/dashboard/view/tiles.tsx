// The four measures of a period, each with its change; choosing one puts it on the chart.

import type { Figures } from "../api/types.ts";
import { changeOf, duration, figure, percent, shortFigure, t } from "../i18n/index.ts";
import { MEASURES, type Measure } from "./address.ts";
import { useViewing } from "./asking.ts";

/** A figure of a measure in words, every digit of it where `isExact`. */
export function measured(measure: Measure, value: number, isExact = false): string {
  if (measure === "duration") return duration(value);
  if (measure === "bounce_percentage") return percent(value);
  return isExact ? figure(value) : shortFigure(value);
}

interface Properties {
  current: Figures | undefined;
  before: Figures | undefined;
  isStale: boolean;
  hasFailed: boolean;
}

export function Tiles({ current, before, isStale, hasFailed }: Properties) {
  const { view, show } = useViewing();
  return (
    <div class={isStale ? "tiles stale" : "tiles"}>
      {MEASURES.map((measure) => (
        <button
          key={measure}
          type="button"
          class="tile"
          aria-pressed={view.measure === measure}
          title={hint(measure)}
          onClick={() => show({ measure }, true)}
        >
          <span class="tile-name">{t(`measure.${measure}`)}</span>
          {current ? (
            <span class="tile-line">
              <span class="tile-figure" title={measured(measure, current[measure], true)}>
                {measured(measure, current[measure])}
              </span>
              {before && (
                <Change measure={measure} now={current[measure]} before={before[measure]} />
              )}
            </span>
          ) : hasFailed ? (
            <span class="tile-line soft">–</span>
          ) : (
            <span class="skeleton tile-skeleton" />
          )}
        </button>
      ))}
    </div>
  );
}

function hint(measure: Measure): string {
  if (measure === "duration") return t("measure.duration-title");
  if (measure === "bounce_percentage") return t("measure.bounce-title");
  return "";
}

function Change({ measure, now, before }: { measure: Measure; now: number; before: number }) {
  // A share of nothing is no change that a percentage could tell.
  if (before === 0) return null;
  const fraction = (now - before) / before;
  const isUp = fraction > 0;
  const isGood = measure === "bounce_percentage" ? !isUp : isUp;
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
