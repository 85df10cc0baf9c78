// Filters in words.

import { duration, locale, t } from "../i18n/index.ts";
import { wordOf } from "../panels/words.ts";
import {
  type Field,
  type Filter,
  isDuration,
  isTruth,
  type Operator,
  takesMany,
} from "../view/filters.ts";

/** Whether an operator compares whole values, which have translated names. */
export function comparesWhole(operator: Operator): boolean {
  return takesMany(operator) || operator === "eq" || operator === "neq";
}

/** Whether a view can lack a value for a field. */
export function mayBeEmpty(field: Field): boolean {
  return /(referrer|prop_value|utm_\w+)$/.test(field);
}

/** Return the values of a filter. */
export function valuesInWords({ field, operator, values }: Filter): string {
  if (isDuration(field)) return duration(Number(values[0]));
  const words = values.map((value) => (comparesWhole(operator) ? wordOf(field, value) : value));
  return new Intl.ListFormat(locale.value, { type: "disjunction" }).format(words);
}

/** Return the sentence of a filter with places for its field and its value. */
export function sentenceOf({ field, operator }: Filter): string {
  return isTruth(field) ? "{value}" : t(`filters.chip.${operator}`);
}

/** Return a filter as a sentence. */
export function inWords(filter: Filter): string {
  return sentenceOf(filter)
    .replace("{field}", () => t(`filters.field.${filter.field}`))
    .replace("{value}", () => valuesInWords(filter));
}
