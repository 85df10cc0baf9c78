// Filters: each is one query parameter of the statistics.

/** What visits consist of, and how long views last: numbers, but for whether a visit bounced. */
export const BEHAVIOUR = ["visit_bounce", "visit_views", "visit_duration", "duration"] as const;
export type Behaviour = (typeof BEHAVIOUR)[number];

export const FIELDS = [
  "path",
  "entry_page",
  "exit_page",
  "goal",
  "visit_referrer",
  "visit_utm_source",
  "visit_utm_medium",
  "visit_utm_campaign",
  "referrer",
  "utm_source",
  "utm_medium",
  "utm_campaign",
  "utm_term",
  "utm_content",
  "country",
  "language",
  "browser",
  "os",
  "device",
  "hosting",
  "prop_name",
  "prop_value",
  ...BEHAVIOUR,
] as const;
export type Field = (typeof FIELDS)[number];

/** Compare texts. */
export const TEXT_OPERATORS = [
  "eq",
  "neq",
  "contains",
  "not_contains",
  "starts_with",
  "not_starts_with",
  "ends_with",
  "not_ends_with",
  "in",
  "not_in",
] as const;
/** Compare numbers. */
export const BOUNDS = ["gte", "lte"] as const;
export const OPERATORS = [...TEXT_OPERATORS, ...BOUNDS] as const;
export type Operator = (typeof OPERATORS)[number];

export function isOfBehaviour(field: Field): field is Behaviour {
  return BEHAVIOUR.includes(field as Behaviour);
}

/** Fields whose values are true and false. */
export function isTruth(field: Field): field is "visit_bounce" | "hosting" {
  return field === "visit_bounce" || field === "hosting";
}

/** Fields whose values are milliseconds. */
export function isDuration(field: Field): boolean {
  return field.endsWith("duration");
}

/** Whether a field has such an operator, and such values. */
function fits({ field, operator, values: [value = ""] }: Filter): boolean {
  const condition = `${operator} ${value}`;
  if (field === "goal") return operator === "eq";
  if (isTruth(field)) return /^eq (true|false)$/.test(condition);
  return isOfBehaviour(field) ? /^[gl]te \d{1,15}$/.test(condition) : !/^.te /.test(condition);
}

/** A filter. Only `in` and `not_in` have more than one value. */
export interface Filter {
  field: Field;
  operator: Operator;
  values: string[];
}

/** Fields of visits: a filter on one lets through all views of the visits that match. */
export function isOfVisits(field: Field): boolean {
  return field.startsWith("visit_") || ["entry_page", "exit_page", "goal"].includes(field);
}

/** The field of views whose values a field has. */
export function ofViews(field: Field): Field {
  if (field === "entry_page" || field === "exit_page") return "path";
  return ownField(field);
}

/** The field of the referrer or campaign of a view, for that of a visit. */
function ownField(field: Field): Field {
  return field.replace(/^visit_/, "") as Field;
}

const PARAMETER = /^(\w+)(?:\[(\w+)\])?$/;

/**
 * Parse the filters in a query string. Anything invalid is ignored; lists of one
 * operator on one field are merged, as in the API.
 */
export function filtersIn(query: URLSearchParams): Filter[] {
  let found: Filter[] = [];
  for (const [name, value] of query) {
    const [, field, operator = "eq"] = PARAMETER.exec(name) ?? [];
    if (!isField(field) || !isOperator(operator)) continue;
    const filter = { field, operator, values: takesMany(operator) ? value.split(",") : [value] };
    if (fits(filter)) found = placed(found, found.length, filter);
  }
  return found;
}

/** Add filters to a query string. */
export function writeFilters(filters: readonly Filter[], query: URLSearchParams): void {
  for (const { field, operator, values } of filters) {
    query.append(`${field}[${operator}]`, values.join(","));
  }
}

export function isField(text: string | undefined): text is Field {
  return FIELDS.some((field) => field === text);
}

function isOperator(text: string): text is Operator {
  return OPERATORS.some((operator) => operator === text);
}

export function takesMany(operator: Operator): boolean {
  return operator === "in" || operator === "not_in";
}

/** Whether an operator excludes what matches its values. */
export function excludes(operator: Operator): boolean {
  return operator === "neq" || operator.startsWith("not_");
}

/** The filter that lets through what another one does not, if there is one. */
export function negated(filter: Filter): Filter | undefined {
  const { field, operator, values } = filter;
  if (isTruth(field)) return { ...filter, values: [String(values[0] !== "true")] };
  // Whether a goal was reached is all that can be asked of it. What lasted an unknown time is
  // neither within bounds nor beyond them.
  if (field === "goal" || isOfBehaviour(field)) return undefined;
  return { ...filter, operator: opposite(operator) };
}

/** The operator that negates another one of texts. */
export function opposite(operator: Operator): Operator {
  if (operator === "neq") return "eq";
  if (operator === "eq") return "neq";
  return (operator.startsWith("not_") ? operator.slice(4) : `not_${operator}`) as Operator;
}

/** Whether two filters are equal; values are compared case-insensitively. */
export function isSame(one: Filter, other: Filter): boolean {
  return (
    one.field === other.field &&
    one.operator === other.operator &&
    one.values.join("\0").toLowerCase() === other.values.join("\0").toLowerCase()
  );
}

/**
 * Replace or remove a filter. Duplicates are dropped, and lists
 * that the API would merge are merged.
 */
export function placed(filters: readonly Filter[], place: number, filter?: Filter): Filter[] {
  const others = filters.toSpliced(place, 1);
  if (!filter) return others;
  const twin = others.findIndex((other) =>
    takesMany(filter.operator)
      ? other.field === filter.field && other.operator === filter.operator
      : isSame(other, filter),
  );
  const [at, known] = twin < 0 ? [place, []] : [twin, others[twin]?.values ?? []];
  const values = takesMany(filter.operator)
    ? [...new Set([...known, ...filter.values])]
    : filter.values;
  return others.toSpliced(at, twin < 0 ? 0 : 1, { ...filter, values });
}

/**
 * Toggle the filter of a row. Choosing the same row again removes it; choosing another
 * value of the field replaces it.
 */
export function toggled(filters: readonly Filter[], field: Field, value: string): Filter[] {
  const others = filters.filter(
    (filter) => !(ownField(filter.field) === ownField(field) && filter.operator === "eq"),
  );
  return isChosen(filters, field, value)
    ? others
    : [...others, { field, operator: "eq", values: [value] }];
}

/** The goal that all visits reached by the filters, if it is a single one. */
export function goalIn(filters: readonly Filter[]): string | undefined {
  const [chosen, ...others] = filters.filter(({ field }) => field === "goal");
  return chosen?.operator === "eq" && others.length === 0 ? chosen.values[0] : undefined;
}

/** Whether the filters have that of a row, of views or of visits. */
export function isChosen(filters: readonly Filter[], field: Field, value: string): boolean {
  const wanted: Filter = { field: ownField(field), operator: "eq", values: [value] };
  return filters.some((filter) => isSame({ ...filter, field: ownField(filter.field) }, wanted));
}
