// How many pages robots read on each day, as bars. The figures are in the list of days.

import type { RobotRow } from "../api/types.ts";
import { figure } from "../i18n/index.ts";
import { dateLabel } from "../view/spans.ts";

const DAY_MS = 86_400_000;
/** More bars than this would be too thin: each then stands for several days. */
const MOST_BARS = 120;

interface Bar {
  date: string;
  requests: number;
}

export function Days({ rows }: { rows: readonly RobotRow[] }) {
  const bars = barsOf(rows);
  if (bars.length < 2) return null;
  const most = Math.max(...bars.map(({ requests }) => requests));
  return (
    <div class="robots-days" aria-hidden="true">
      {bars.map(({ date, requests }) => (
        <span key={date} title={`${dateLabel(date)}: ${figure(requests)}`}>
          <span style={{ height: `${(requests / most) * 100}%` }} />
        </span>
      ))}
    </div>
  );
}

/** Return the days from the first to the last, also those without robots. */
export function barsOf(rows: readonly RobotRow[]): Bar[] {
  const numbers = rows.map(({ date = "" }) => Date.parse(date) / DAY_MS);
  const first = Math.min(...numbers);
  const days = rows.length && Math.max(...numbers) - first + 1;
  const daysPerBar = Math.max(1, Math.ceil(days / MOST_BARS));
  const bars: Bar[] = Array.from({ length: Math.ceil(days / daysPerBar) }, (_nothing, place) => ({
    date: new Date((first + place * daysPerBar) * DAY_MS).toISOString().slice(0, 10),
    requests: 0,
  }));
  for (const [place, { requests }] of rows.entries()) {
    const bar = bars[Math.floor(((numbers[place] ?? first) - first) / daysPerBar)];
    if (bar) bar.requests += requests;
  }
  return bars;
}
