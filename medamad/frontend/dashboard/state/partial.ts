// What the answers on the page are without: days of which the daemon keeps sums alone.

import { computed, signal } from "@preact/signals";

/** By question, what the daemon says of its answer. */
const told = signal<Readonly<Record<string, string>>>({});

/** Note what an answer is without; null for nothing, or once the question is asked no more. */
export function notePartial(question: string, header: string | null): void {
  const before = told.peek();
  if ((before[question] ?? null) === header) return;
  const { [question]: _, ...others } = before;
  told.value = header === null ? others : { ...others, [question]: header };
}

/** The first and the last of the days that something on the page is without, as dates. */
export const partialDays = computed(() => daysIn(Object.values(told.value).join()));

/** The first and the last of the days that the daemon named. */
export function daysIn(header: string): { first: string; last: string } | undefined {
  const spans = header.matchAll(/"(\d{4,}-\d\d-\d\d)\/(\d{4,}-\d\d-\d\d)"/g);
  const dates = [...spans].flatMap(([, first, last]) => [first as string, last as string]).sort();
  return dates.length ? { first: dates[0] as string, last: dates.at(-1) as string } : undefined;
}
