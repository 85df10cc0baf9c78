// Periods: their spans, the intervals that fit them, the previous and next ones.

import { TZDateMini } from "@date-fns/tz";
import {
  addDays,
  addHours,
  addMinutes,
  addMonths,
  differenceInCalendarDays,
  startOfDay,
} from "date-fns";
import type { Interval, NamedPeriod, Period, Range, Series, Step } from "./address.ts";

const MAX_STARTS = 5_000;
const LOCAL_LENGTH = "2026-11-20T15:30".length;
const MINUTE_MS = 60_000;
const DAY_MINUTES = 1_440;
const SHORTEST_MONTH = 28;
const MEAN_MONTH_DAYS = 365.2425 / 12;
/** By less than so many days from their mean, in spans of a month to a year. */
const MONTHS_DIFFER = 3;
const MONTHS_FROM_ANY_DAY: readonly number[] = [6, 12];

/** Whole minutes from a start to an end. */
export function minutesBetween(end: Date, start: Date): number {
  return Math.floor((end.valueOf() - start.valueOf()) / MINUTE_MS);
}

function isSameMoment(one: Date, other: Date): boolean {
  return one.valueOf() === other.valueOf();
}

/** The browser's time zone. */
export function ownZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** A span from `start` to before `end`, in milliseconds. Without `start`, all time. */
export interface Span {
  start: Date | undefined;
  end: Date;
}

/** A span of whole days. */
export interface Days {
  start: Date;
  end: Date;
}

/** Periods that step into each other. */
interface Steps {
  /** The months from one to the next; 0 if they step by days. */
  months: number;
  /** The one that is `back` before that of today. */
  span: (today: Date, back: number) => Days;
}

type Edge = (today: Date, back: number) => Date;

function adjoining(months: number, edge: Edge): Steps {
  return {
    months,
    span: (today, back) => ({ start: edge(today, back + 1), end: edge(today, back) }),
  };
}

function lastDays(days: number): Steps {
  return adjoining(0, (today, back) => addDays(today, 1 - days * back));
}

/** The edges of all are as many months before today, so that every step has a way back. */
function lastMonths(months: number): Steps {
  return adjoining(months, (today, back) => addDays(addMonths(today, -months * back), 1));
}

/** So many months of the calendar, which fit into a year. */
function calendarMonths(months: number): Steps {
  return adjoining(months, (today, back) => startOfMonths(today, months, 1 - back));
}

/** The start of so many months that a day is in, or of some that are later. */
function startOfMonths(today: Date, months: number, later: number): Date {
  const month = addDays(today, 1 - today.getDate());
  return addMonths(month, later * months - (today.getMonth() % months));
}

/** How periods step; a range of days steps as the first of these that it is part of. */
const SERIES: Record<Series, Steps> = {
  today: lastDays(1),
  // Weeks begin on Mondays, as those of the statistics do.
  week: adjoining(0, (today, back) => addDays(today, 7 - 7 * back - ((today.getDay() + 6) % 7))),
  month: calendarMonths(1),
  quarter: calendarMonths(3),
  year: calendarMonths(12),
  ytd: {
    months: 12,
    span: (today, back) => ({
      start: startOfMonths(today, 12, -back),
      end: addDays(addMonths(today, -12 * back), 1),
    }),
  },
  "6mo": lastMonths(6),
  "12mo": lastMonths(12),
  "7d": lastDays(7),
  "14d": lastDays(14),
  "28d": lastDays(28),
  "30d": lastDays(30),
  "90d": lastDays(90),
};
const ALL_SERIES = Object.keys(SERIES) as Series[];

/** A period's place among those that step into each other. */
interface Place {
  of: Series;
  back: number;
}

/** The series of a period with a name of its own that is one back in it. */
const LAST: Partial<Record<NamedPeriod, Series>> = {
  yesterday: "today",
  "last-week": "week",
  "last-month": "month",
  "last-quarter": "quarter",
  "last-year": "year",
};

/** The span of a period in whole days of the zone, possibly into the future. */
export function wholeSpan(period: Period, zone: string, now = new Date()): Span {
  if (typeof period === "object") return spanOfRange(period, zone);
  const place = placeOfName(period);
  if (place) return spanAt(place, zone, now);
  if (period === "all") return { start: undefined, end: addDays(todayIn(zone, now), 1) };
  return { start: addHours(minuteAfter(now, zone), -24), end: minuteAfter(now, zone) };
}

function spanAt({ of, back }: Place, zone: string, now: Date): Days {
  return SERIES[of].span(todayIn(zone, now), back);
}

/** When the day of an instant began. */
export function todayIn(zone: string, now: Date): Date {
  return startOfDay(new TZDateMini(now, zone));
}

/** Periods of times begin and end at full minutes, as in their addresses. */
function minuteAfter(now: Date, zone: string): Date {
  return new TZDateMini(Math.floor(now.valueOf() / MINUTE_MS + 1) * MINUTE_MS, zone);
}

/** The span of a range, by the clock of the zone. */
export function spanOfRange({ from, to }: Range, zone: string): Days {
  const start = local(from, zone);
  const end = local(to, zone);
  if (isDays({ from, to })) return { start, end: addDays(end, 1) };
  // A span between times that a zone's clock skips may be empty.
  return { start, end: end > start ? end : addHours(start, 1) };
}

function isDays({ from }: Range): boolean {
  return !from.includes("T");
}

/** The instant of a local date and time in a zone; of two, the one with the text's offset. */
function local(text: string, zone: string): Date {
  const clock = text.slice(0, LOCAL_LENGTH);
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0] = clock.split(/[-T:]/).map(Number);
  const date = new TZDateMini(year, month - 1, day, hour, minute, zone);
  return sameByClock(date).find((other) => offsetOf(other) === text.slice(LOCAL_LENGTH)) ?? date;
}

/** The other instants with the same local time, when the clock was set back. */
function sameByClock(date: Date): Date[] {
  return [-60, -30, 30, 60]
    .map((minutes) => addMinutes(date, minutes))
    .filter((other) => clockOf(other) === clockOf(date));
}

function offsetOf(date: Date): string {
  const minutes = -date.getTimezoneOffset();
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `${minutes < 0 ? "-" : "+"}${padded(hours)}:${padded(rest)}`;
}

/** The past part of a period. */
export function spanUntilNow(period: Period, zone: string, now = new Date()): Span {
  const { start, end } = wholeSpan(period, zone, now);
  return { start, end: end > now ? new TZDateMini(now, zone) : end };
}

/** How far a period is from those before and after it. */
export type Shift = { months: number } | { days: number } | { minutes: number };

/** An instant moved by the zone's clock, `times` forward. */
export function shifted(date: Date, shift: Shift, times: number): Date {
  if ("months" in shift) return addMonths(date, times * shift.months);
  if ("days" in shift) return addDays(date, times * shift.days);
  return addMinutes(date, times * shift.minutes);
}

/** How a period steps. */
interface Way {
  step: Step | undefined;
  place?: Place;
  shift: Shift;
}

function wayOf(period: Period, zone: string, now: Date): Way | undefined {
  const { start, end } = wholeSpan(period, zone, now);
  if (!start) return undefined;
  if (isTimes(period)) {
    return { step: undefined, shift: { minutes: minutesBetween(end, start) } };
  }
  const place = placeOf(period, { start, end }, zone, now);
  const days = differenceInCalendarDays(end, start);
  if (place) {
    const { months } = SERIES[place.of];
    return { step: place.of, place, shift: months ? { months } : { days } };
  }
  const months = isBy(period, "days") ? 0 : monthsOf(start, end);
  return months ? { step: "months", shift: { months } } : { step: "days", shift: { days } };
}

function isBy(period: Period, step: Step): boolean {
  return typeof period === "object" && period.step === step;
}

/** Whether a period is of times rather than of whole days. */
export function isTimes(period: Period): boolean {
  return period === "24h" || (typeof period === "object" && !isDays(period));
}

function placeOf(period: Period, span: Days, zone: string, now: Date): Place | undefined {
  if (typeof period === "string") return placeOfName(period);
  const { step } = period;
  if (step === "days" || step === "months") return undefined;
  for (const of of step ? [step, ...ALL_SERIES] : ALL_SERIES) {
    const back = placeIn(of, span, zone, now);
    if (back !== undefined) return { of, back };
  }
  return undefined;
}

function placeOfName(name: NamedPeriod): Place | undefined {
  if (name in SERIES) return { of: name as Series, back: 0 };
  const of = LAST[name];
  return of && { of, back: 1 };
}

function nameOfPlace({ of, back }: Place): NamedPeriod | undefined {
  if (back === 0) return of;
  const names = Object.keys(LAST) as NamedPeriod[];
  return back === 1 ? names.find((name) => LAST[name] === of) : undefined;
}

/** How far a span is before the current one of a series, if it is part of that. */
function placeIn(of: Series, { start, end }: Days, zone: string, now: Date): number | undefined {
  const days = differenceInCalendarDays(end, start);
  const { months } = SERIES[of];
  // Most are ruled out without looking for their place, which takes longer.
  const isLike =
    of === "ytd"
      ? start.getMonth() === 0 && start.getDate() === 1
      : Math.abs(
          days -
            (months
              ? months * MEAN_MONTH_DAYS
              : Number.parseInt(of, 10) || (of === "today" ? 1 : 7)),
        ) < MONTHS_DIFFER;
  if (!isLike) return undefined;
  const current = spanAt({ of, back: 0 }, zone, now);
  const length = months
    ? months * MEAN_MONTH_DAYS
    : differenceInCalendarDays(current.end, current.start);
  const about = Math.round(differenceInCalendarDays(current.end, end) / length);
  return [about - 1, about, about + 1].find((back) => {
    if (back < 0) return false;
    const span = spanAt({ of, back }, zone, now);
    return isSameMoment(span.start, start) && isSameMoment(span.end, end);
  });
}

/** Whole months from the first of one, or 6 or 12 months from any day. */
function monthsOf(start: Date, end: Date): number {
  // Later days are not in every month: a step there would have no way back.
  const areMonths = start.getDate() === end.getDate() && start.getDate() <= SHORTEST_MONTH;
  const months = areMonths
    ? (end.getFullYear() - start.getFullYear()) * 12 + end.getMonth() - start.getMonth()
    : 0;
  return start.getDate() === 1 || MONTHS_FROM_ANY_DAY.includes(months) ? months : 0;
}

/** The next (1) or previous (-1) period; undefined in the future, or if there is none. */
export function stepped(
  period: Period,
  by: 1 | -1,
  zone: string,
  now = new Date(),
): Period | undefined {
  const next = neighbour(period, by, zone, now);
  if (!next || next.span.start > now) return undefined;
  const { way, span } = next;
  const name = way.place && nameOfPlace(way.place);
  if (name) return name;
  if (isTimes(period)) {
    // A rolling day does not extend beyond now: its last step leads to the last 24 hours.
    const isDay = minutesBetween(span.end, span.start) === DAY_MINUTES;
    if (isDay && by > 0 && span.end > addHours(now, -1))
      return period === "24h" ? undefined : "24h";
    return timesOf(span.start, span.end);
  }
  const range = daysBetween(span.start, addDays(span.end, -1));
  // On its own, it may step otherwise: 28 days that are a month.
  const isUsual = wayOf(range, zone, now)?.step === way.step;
  return isUsual || !way.step ? range : { ...range, step: way.step };
}

/** The whole period before a period, and how far it is; nothing before all time. */
export function previous(
  period: Period,
  zone: string,
  now = new Date(),
): { span: Days; shift: Shift } | undefined {
  const found = neighbour(period, -1, zone, now);
  return found && { span: found.span, shift: found.way.shift };
}

/** The next or previous period's span, and the way it steps. */
function neighbour(
  period: Period,
  by: 1 | -1,
  zone: string,
  now: Date,
): { way: Way; span: Days } | undefined {
  const way = wayOf(period, zone, now);
  const { start, end } = wholeSpan(period, zone, now);
  if (!way || !start) return undefined;
  if (!way.place) {
    const [first, last] = [start, end].map((date) => shifted(date, way.shift, by)) as [Date, Date];
    return { way, span: { start: first, end: last } };
  }
  const place = { ...way.place, back: way.place.back - by };
  return { way: { ...way, place }, span: spanAt(place, zone, now) };
}

/** The local day of a date: 2026-11-20. */
export function dayOf(date: Date): string {
  return [padded(date.getFullYear(), 4), padded(date.getMonth() + 1), padded(date.getDate())].join(
    "-",
  );
}

/** A local time, with its offset if it is ambiguous. */
function timeOf(date: Date): string {
  return clockOf(date) + (sameByClock(date).length ? offsetOf(date) : "");
}

/** The local day and time of a date: 2026-11-20T15:30. */
export function clockOf(date: Date): string {
  return `${dayOf(date)}T${padded(date.getHours())}:${padded(date.getMinutes())}`;
}

function padded(figure: number, width = 2): string {
  return String(figure).padStart(width, "0");
}

/** A range of days, both inclusive, in the dates' zone. */
export function daysBetween(first: Date, last: Date): Range {
  return { from: dayOf(first), to: dayOf(last) };
}

/** A range of local times in the dates' zone. */
export function timesOf(start: Date, end: Date): Range {
  return { from: timeOf(start), to: timeOf(end) };
}

/** The name of a range, if it is today or yesterday. */
export function named(range: Range, zone: string, now = new Date()): Period {
  for (const period of ["today", "yesterday"] as const) {
    const { start, end } = wholeSpan(period, zone, now);
    const days = daysBetween(start as Date, addDays(end, -1));
    if (days.from === range.from && days.to === range.to) return period;
  }
  return range;
}

/** The range of a part of a chart: whole days if it has any. */
export function rangeOf(start: Date, end: Date, interval: Interval, zone: string): Range {
  const [first, last] = [new TZDateMini(start, zone), new TZDateMini(end, zone)];
  const isFine = interval === "minute" || interval === "hour";
  const isOfDays = [first, last].every((date) => isSameMoment(date, startOfDay(date)));
  return isFine || !isOfDays ? timesOf(first, last) : daysBetween(first, addDays(last, -1));
}

/** The instant at which the next bucket begins, by the zone's clock. */
export function nextStart(start: Date, interval: Interval, zone: string): Date {
  return FOLLOWING[interval](new TZDateMini(start, zone), 1);
}

const FOLLOWING = {
  minute: addMinutes,
  hour: addHours,
  day: addDays,
  week: (date: Date, count: number) => addDays(date, 7 * count),
  month: addMonths,
};

/** The starts of buckets by the zone's clock, continued until `end`. */
export function startsUntil(
  buckets: readonly { date: string }[],
  interval: Interval,
  zone: string,
  end: Date,
): Date[] {
  const starts: Date[] = buckets.map(({ date }) => new TZDateMini(date, zone));
  const last = starts.at(-1);
  for (let count = 1; last && starts.length < MAX_STARTS; count += 1) {
    const next = FOLLOWING[interval](last, count);
    if (next >= end) break;
    starts.push(next);
  }
  return starts;
}

/** The intervals available for a span, finest first. */
export function intervalsFor(start: Date, end: Date): Interval[] {
  const days = minutesBetween(end, start) / 1_440;
  const all: [Interval, number, number][] = [
    ["minute", 0, 1.1],
    ["hour", 0.1, 32],
    ["day", 1.5, 1_200],
    ["week", 13, 4_000],
    ["month", 45, Number.POSITIVE_INFINITY],
  ];
  const fitting = all.filter(([, least, most]) => days >= least && days <= most);
  return fitting.length ? fitting.map(([interval]) => interval) : ["minute"];
}

/** The default interval of a span. */
export function usualInterval(start: Date, end: Date): Interval {
  const days = minutesBetween(end, start) / 1_440;
  if (days <= 0.13) return "minute";
  if (days <= 2.1) return "hour";
  // Weeks rarely line up with the previous period's; days can be compared.
  if (days <= 200) return "day";
  return "month";
}

/** A span as query parameters, to the millisecond; their `end` is inclusive. */
export function writeSpan({ start, end }: Span, query: URLSearchParams): URLSearchParams {
  if (start) query.set("start", instant(start));
  query.set("end", instant(new Date(end.valueOf() - 1)));
  return query;
}

function instant(date: Date): string {
  return new Date(date.valueOf()).toISOString();
}
