// Exclusions in words.

import { inWords } from "../filters/words.ts";
import { said } from "../i18n/exclusions.ts";
import { moment } from "../i18n/index.ts";
import { filtersIn } from "../view/filters.ts";

/** Return filters, as in a query string, as sentences. */
export function wordsOf(filters: string): string {
  return filtersIn(new URLSearchParams(filters)).map(inWords).join(" · ");
}

/** Return the period of an exclusion. */
export function periodOf({ start, end }: { start?: string; end?: string }): string {
  const [first, last] = [start, end].map((bound) =>
    bound === undefined ? "" : moment(new Date(bound), { dateStyle: "medium", timeStyle: "short" }),
  );
  return first || last ? `${first} – ${last}` : said("always");
}
