// A website's visitors, or visits, of each of the last 30 days as a small curve.

import { statistic } from "../api/client.ts";
import type { Summary } from "../api/types.ts";
import { figure, t } from "../i18n/index.ts";
import { useAsk } from "../state/data.ts";
import { ownZone, spanUntilNow, writeSpan } from "../view/periods.ts";
import { VISITS } from "../view/visits.ts";

const [WIDTH, HEIGHT] = [240, 48];

export type Counted = "visitors" | "visits";

function lastDays(counted: Counted): URLSearchParams {
  const timezone = ownZone();
  return writeSpan(
    spanUntilNow("30d", timezone),
    new URLSearchParams({
      interval: "day",
      timezone,
      ...(counted === "visits" && { [VISITS]: "true" }),
    }),
  );
}

interface Properties {
  hostname: string;
  counted: Counted;
  /** Requested only while it is on screen, since a list may be long. */
  isSeen: boolean;
}

export function Curve({ hostname, counted, isSeen }: Properties) {
  const { data } = useAsk<Summary>(
    isSeen ? statistic(hostname, "summary") : null,
    () => lastDays(counted),
    `last 30 days ${counted}`,
  );
  return (
    <div class="curve">
      {data?.interval && (
        <>
          <Line counts={data.interval.map((day) => day[counted] ?? 0)} counted={counted} />
          <span class="curve-days soft" aria-hidden="true">
            {t("period.30d")}
          </span>
        </>
      )}
    </div>
  );
}

function Line({ counts, counted }: { counts: number[]; counted: Counted }) {
  const most = Math.max(...counts);
  const points = counts.map((count, place) => {
    const x = (place / Math.max(counts.length - 1, 1)) * WIDTH;
    const y = HEIGHT - 2 - (count / Math.max(most, 1)) * (HEIGHT - 6);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  const label = t(counted === "visits" ? "websites.curve-visits" : "websites.curve", {
    most: figure(most),
    now: figure(counts.at(-1) ?? 0),
  });
  return (
    <svg
      class={most ? "" : "flat"}
      role="img"
      aria-label={label}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      <title>{label}</title>
      <polygon points={`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} />
      <polyline points={points.slice(0, -1).join(" ")} vector-effect="non-scaling-stroke" />
      {/* Today is not over yet. */}
      <polyline
        class="so-far"
        points={points.slice(-2).join(" ")}
        vector-effect="non-scaling-stroke"
      />
    </svg>
  );
}
