// Days that the responses on the page do not cover: only rollups remain, data is damaged, or visits
// are unknown; whether exclusions leave something out, and the days to which some do not apply.

import { computed, signal } from "@preact/signals";

/** What the daemon reports for each query. */
const headers = signal<Readonly<Record<string, string>>>({});

/** Record what a response does not cover; null for nothing, or when the query is gone. */
export function notePartial(question: string, header: string | null): void {
  const before = headers.peek();
  if ((before[question] ?? null) === header) return;
  const { [question]: _, ...others } = before;
  headers.value = header === null ? others : { ...others, [question]: header };
}

/** Why days are not covered. */
type Gap = "totals" | "damaged" | "visits" | "exclusions";

/** The first and last day that something on the page does not cover, as dates, by the reason. */
export const partialDays = computed(() => {
  const header = Object.values(headers.value).join();
  return {
    totals: daysIn(header),
    damaged: daysIn(header, "damaged"),
    visits: daysIn(header, "visits"),
    exclusions: daysIn(header, "exclusions"),
    leavesOut: header.includes("left-out"),
  };
});

/** Whether visits of some days are unknown. */
export function lacksVisits(header: string | null): boolean {
  return header !== null && daysIn(header, "visits") !== undefined;
}

function gapOf(entry: string): Gap {
  const [name = ""] = entry.trim().split("=", 1);
  return /^(damaged|visits|exclusions)$/.test(name) ? (name as Gap) : "totals";
}

/** The first and last day that the daemon named for a reason. */
export function daysIn(
  header: string,
  gap: Gap = "totals",
): { first: string; last: string } | undefined {
  const entries = header.split(",").filter((entry) => gapOf(entry) === gap);
  const spans = entries.join().matchAll(/"(\d{4,}-\d\d-\d\d)\/(\d{4,}-\d\d-\d\d)"/g);
  const dates = [...spans].flatMap(([, first, last]) => [first as string, last as string]).sort();
  return dates.length ? { first: dates[0] as string, last: dates.at(-1) as string } : undefined;
}
