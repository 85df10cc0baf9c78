// What a website's page shows, as its address says: period, comparison, zone, filters. The
// filters are written as in the API: browser[eq]=Firefox.

import { type Filter, filtersIn, writeFilters } from "./filters.ts";

/** Periods that step into others like them. */
const SERIES = [
  "today",
  "7d",
  "14d",
  "28d",
  "30d",
  "90d",
  "6mo",
  "12mo",
  "week",
  "month",
  "quarter",
  "year",
  "ytd",
] as const;
export type Series = (typeof SERIES)[number];

export const PERIODS = [
  ...SERIES,
  "yesterday",
  "24h",
  "last-week",
  "last-month",
  "last-quarter",
  "last-year",
  "all",
] as const;
export type NamedPeriod = (typeof PERIODS)[number];

const STEPS = [...SERIES, "days", "months"] as const;
export type Step = (typeof STEPS)[number];

/**
 * A custom range. Days (2026-11-20) include the last one;
 * local times (2026-11-20T15:30) are exclusive at the end, with their offset if they
 * are ambiguous (2026-10-25T02:00+01:00).
 */
export interface Range {
  from: string;
  to: string;
  /** How its days step, if not as their number suggests. */
  step?: Step;
}

export type Period = NamedPeriod | Range;

/** What a period is compared with. A range is of days. */
export type Comparison = "none" | "previous" | "year" | Range;

export const INTERVALS = ["minute", "hour", "day", "week", "month"] as const;
export type Interval = (typeof INTERVALS)[number];

export const MEASURES = [
  "visitors",
  "visits",
  "pageviews",
  "views_per_visit",
  "visit_bounce_percentage",
  "visit_duration",
  // Where the server keeps no visits:
  "bounce_percentage",
  "duration",
] as const;
export type Measure = (typeof MEASURES)[number];

/** What a website's page shows. Without `zone` the browser's zone is used. */
export interface View {
  period: Period;
  zone: string | undefined;
  comparison: Comparison;
  /** Whether each day is compared with one of the same weekday. Without, it depends on the period. */
  weekdays: boolean | undefined;
  /** Without one, the first is charted. */
  measure: Measure | undefined;
  interval: Interval | undefined;
  filters: Filter[];
}

export const DEFAULT_PERIOD: NamedPeriod = "30d";

const WEEKDAYS = new Map([
  ["true", true],
  ["false", false],
]);

const DAY = /^\d{4}-\d\d-\d\d$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d([+-]\d\d:\d\d)?$/;

/** Parse a view from a query string. Anything invalid is ignored. */
export function readView(query: URLSearchParams): View {
  return {
    period: readPeriod(query),
    zone: readZone(query.get("zone")),
    comparison: readComparison(query.get("compare") ?? ""),
    weekdays: WEEKDAYS.get(query.get("weekdays") ?? ""),
    measure: MEASURES.find((measure) => measure === query.get("measure")),
    interval: INTERVALS.find((interval) => interval === query.get("interval")),
    filters: filtersIn(query),
  };
}

function readPeriod(query: URLSearchParams): Period {
  const range = readRange(query.get("from") ?? "", query.get("to") ?? "");
  if (!range) return PERIODS.find((period) => period === query.get("period")) ?? DEFAULT_PERIOD;
  const step = DAY.test(range.from) && STEPS.find((step) => step === query.get("step"));
  return step ? { ...range, step } : range;
}

function readComparison(text: string): Comparison {
  if (text === "none" || text === "year") return text;
  const [from = "", to = ""] = text.split("..");
  return (DAY.test(from) && readRange(from, to)) || "previous";
}

/** Return a range that has begun, or nothing. */
function readRange(from: string, to: string): Range | undefined {
  const isRange = (DAY.test(from) && DAY.test(to)) || (TIME.test(from) && TIME.test(to));
  const isKnown = isRange && isInOrder(from, to) && isDate(from) && isDate(to);
  return isKnown && hasBegun(from) ? { from, to } : undefined;
}

/** Return whether a day has begun anywhere on earth. */
function hasBegun(from: string): boolean {
  return Date.parse(`${from.slice(0, 10)}T00:00+14:00`) <= Date.now();
}

/** Days may be equal; a time must be before the other, at least by their offsets. */
function isInOrder(from: string, to: string): boolean {
  const [first, last] = [clockIn(from), clockIn(to)];
  if (first !== last || DAY.test(from)) return first <= last;
  return from.length > first.length && to.length > last.length && Date.parse(from) < Date.parse(to);
}

function clockIn(text: string): string {
  return text.slice(0, "2026-11-20T15:30".length);
}

function isDate(text: string): boolean {
  const clock = clockIn(text);
  const date = new Date(clock.length > 10 ? `${clock}Z` : clock);
  return !Number.isNaN(date.valueOf()) && date.toISOString().startsWith(clock);
}

/** Parse the name of a time zone; returns nothing if this browser does not know it. */
export function readZone(text: string | null | undefined): string | undefined {
  try {
    return text
      ? new Intl.DateTimeFormat("en", { timeZone: text }).resolvedOptions().timeZone
      : undefined;
  } catch {
    return undefined;
  }
}

/** Write a view as a query string without defaults. */
export function writeView(view: View): string {
  const query = new URLSearchParams();
  if (typeof view.period === "object") {
    query.set("from", view.period.from);
    query.set("to", view.period.to);
    if (view.period.step) query.set("step", view.period.step);
  } else if (view.period !== DEFAULT_PERIOD) {
    query.set("period", view.period);
  }
  if (view.zone) query.set("zone", view.zone);
  const { comparison } = view;
  if (typeof comparison === "object") {
    query.set("compare", `${comparison.from}..${comparison.to}`);
  } else if (comparison !== "previous") query.set("compare", comparison);
  if (view.weekdays !== undefined) query.set("weekdays", String(view.weekdays));
  if (view.measure) query.set("measure", view.measure);
  if (view.interval) query.set("interval", view.interval);
  writeFilters(view.filters, query);
  const text = query.toString();
  return text && `?${readable(text)}`;
}

/** A readable address: characters that are allowed in a query are not escaped. */
function readable(query: string): string {
  return query.replace(/%(5B|5D|2F|3A|2C|40)/g, decodeURIComponent);
}
