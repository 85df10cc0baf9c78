// Suggestions for filters: values that occur in the current period.

import { byLeading, type ListRow, listingOf } from "../panels/lists.ts";
import { directionOf, wordOf } from "../panels/words.ts";
import { useSettled } from "../ui/debounced.ts";
import type { Field } from "../view/filters.ts";
import { useStatistic } from "../view/page-state.ts";

export interface Suggestion {
  value: string;
  word: string;
  direction: "ltr" | "auto";
  /** Its visitors, visits or events. */
  count: number;
}

const SHOWN = 50;

/** Fields with few values, whose names are translated. */
const SEARCHED_HERE: readonly Field[] = ["country", "language", "device", "prop_name"];
const MOST_SEARCHED = "400";

/** Values of a field that contain what was typed, most frequent first. */
export function useSuggestions(field: Field, typed: string): Suggestion[] | undefined {
  const isSearchedHere = SEARCHED_HERE.includes(field);
  const sought = useSettled(isSearchedHere ? "" : typed);
  const listing = listingOf(field);
  const { data, isStale } = useStatistic<ListRow[]>(listing.statistic, {
    ...listing.further,
    summary: "true",
    ...byLeading(listing),
    limit: isSearchedHere ? MOST_SEARCHED : String(SHOWN),
    // A filter on names returns values.
    ...(field === "prop_value" && { "prop_name[contains]": "" }),
    ...(sought && { [`${listing.field}[contains]`]: sought }),
  });
  if (!data || (isStale && !(listing.column in (data[0] ?? {})))) return undefined;
  const text = typed.toLowerCase();
  const found = new Map<string, Suggestion>();
  for (const row of data) {
    const value = String(row[listing.column]);
    const word = wordOf(field, value);
    const isSought = [value, word].some((name) => name.toLowerCase().includes(text));
    if (isSought && !found.has(value)) {
      const count = Number(row[byLeading(listing).order ?? listing.figure]);
      found.set(value, { value, word, direction: directionOf(field), count });
    }
  }
  return [...found.values()].slice(0, SHOWN);
}
