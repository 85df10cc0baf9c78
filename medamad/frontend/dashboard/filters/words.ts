// Filters in words.

import { locale, t } from "../i18n/index.ts";
import { wordOf } from "../panels/words.ts";
import { type Field, type Filter, type Operator, takesMany } from "../view/filters.ts";

/** Whether an operator compares with whole values, which have names in the reader's language. */
export function comparesWhole(operator: Operator): boolean {
  return takesMany(operator) || operator === "eq" || operator === "neq";
}

/** Whether there are views that have none of what a field stands for. */
export function mayBeEmpty(field: Field): boolean {
  return field === "referrer" || field === "prop_value" || field.startsWith("utm_");
}

/** Give the values of a filter. */
export function valuesInWords({ field, operator, values }: Filter): string {
  const words = values.map((value) => (comparesWhole(operator) ? wordOf(field, value) : value));
  return new Intl.ListFormat(locale.value, { type: "disjunction" }).format(words);
}

/** Give a filter as a sentence. */
export function inWords(filter: Filter): string {
  return t(`filters.chip.${filter.operator}`, {
    field: t(`filters.field.${filter.field}`),
    value: valuesInWords(filter),
  });
}
