// The measures of a period; choosing one charts it, and its change opens what is behind it.

import { useState } from "preact/hooks";
import type { Figures } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { later } from "../ui/lazy.tsx";
import type { Measure } from "./address.ts";
import { Change } from "./change.tsx";
import { charted, known, measured, measures } from "./measures.ts";
import { useViewing } from "./page-state.ts";

const ChangesDialog = later(() =>
  import("./changes-dialog.tsx").then(({ ChangesDialog }) => ChangesDialog),
);

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
  const [opened, open] = useState<Measure>();
  return (
    <>
      <div
        class={`tiles ${isCompared ? "compared" : ""} ${isStale ? "stale" : ""}`}
        data-count={shown.length}
      >
        {shown.map((measure) => (
          <div key={measure} class="tile">
            <button
              type="button"
              aria-pressed={charted(view) === measure}
              title={hint(measure)}
              onClick={() => show({ measure: measure === shown[0] ? undefined : measure }, true)}
            >
              <span class="tile-name">{t(`measure.${measure}`)}</span>
              {current ? (
                <Shown measure={measure} value={known(measure, current)} />
              ) : hasFailed ? (
                <span class="soft">–</span>
              ) : (
                <span class="skeleton tile-skeleton" />
              )}
            </button>
            {current && before && (
              <Change
                measure={measure}
                now={known(measure, current)}
                before={known(measure, before)}
                onOpen={() => open(measure)}
              />
            )}
          </div>
        ))}
      </div>
      {opened && <ChangesDialog measure={opened} onClose={() => open(undefined)} />}
    </>
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
