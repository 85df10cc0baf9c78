// Days that the responses on the page do not cover: only rollups remain, or data is damaged.

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

/** The first and last day that something on the page does not cover, as dates. */
export const partialDays = computed(() => daysIn(Object.values(headers.value).join()));

/** The first and last day of which the responses on the page leave out damaged data. */
export const damagedDays = computed(() => daysIn(Object.values(headers.value).join(), true));

/** The first and last day that the daemon named, for damaged data or for all else. */
export function daysIn(
  header: string,
  areDamaged = false,
): { first: string; last: string } | undefined {
  const entries = header.split(",").filter((each) => each.includes("damaged=") === areDamaged);
  const spans = entries.join().matchAll(/"(\d{4,}-\d\d-\d\d)\/(\d{4,}-\d\d-\d\d)"/g);
  const dates = [...spans].flatMap(([, first, last]) => [first as string, last as string]).sort();
  return dates.length ? { first: dates[0] as string, last: dates.at(-1) as string } : undefined;
}
