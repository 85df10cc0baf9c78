// A website's visitors, or visits, of the last 24 hours as a small curve.

import { useEffect, useRef, useState } from "preact/hooks";
import { statistic } from "../api/client.ts";
import type { Summary } from "../api/types.ts";
import { figure, t } from "../i18n/index.ts";
import { useAsk } from "../state/data.ts";
import { VISITS } from "../view/visits.ts";

const HOUR_MS = 3_600_000;
const [WIDTH, HEIGHT] = [240, 48];

type Counted = "visitors" | "visits";

/** The last 24 clock hours, including the current one. */
function lastHours(counted: Counted): URLSearchParams {
  const now = new Date();
  const start = new Date(now);
  start.setMinutes(0, 0, 0);
  return new URLSearchParams({
    interval: "hour",
    start: new Date(start.valueOf() - 23 * HOUR_MS).toISOString(),
    end: now.toISOString(),
    ...(counted === "visits" && { [VISITS]: "true" }),
  });
}

/** Requested only while it is on screen, since a list may be long. */
export function Curve({ hostname, counted }: { hostname: string; counted: Counted }) {
  const place = useRef<HTMLDivElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver(
      (entries) => setSeen(entries.some((entry) => entry.isIntersecting)),
      { rootMargin: "100px" },
    );
    observer.observe(place.current as Element);
    return () => observer.disconnect();
  }, []);
  const { data } = useAsk<Summary>(
    isSeen ? statistic(hostname, "summary") : null,
    () => lastHours(counted),
    `last 24 hours ${counted}`,
  );
  return (
    <div class="curve" ref={place}>
      {data?.interval && (
        <Line counts={data.interval.map((hour) => hour[counted] ?? 0)} counted={counted} />
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
      <polygon points={`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} />
      <polyline points={points.slice(0, -1).join(" ")} vector-effect="non-scaling-stroke" />
      {/* The hour that runs is not over yet. */}
      <polyline
        class="so-far"
        points={points.slice(-2).join(" ")}
        vector-effect="non-scaling-stroke"
      />
    </svg>
  );
}
