// Periods: their spans, the intervals that fit them, the previous and next ones.

import { TZDateMini } from "@date-fns/tz";
import {
  addDays,
  addHours,
  addMinutes,
  addMonths,
  addWeeks,
  differenceInCalendarDays,
  differenceInCalendarMonths,
  differenceInMinutes,
  isEqual as isSameMoment,
  startOfDay,
  startOfMinute,
  subHours,
  subMonths,
} from "date-fns";
import type { Interval, NamedPeriod, Period, Range } from "./address.ts";

const MAX_STARTS = 5_000;
const LOCAL_LENGTH = "2026-11-20T15:30".length;
const DAY_MINUTES = 1_440;
const SHORTEST_MONTH = 28;
const OF_DAYS = ["today", "yesterday", "7d", "30d", "90d", "6mo", "12mo"] as const;

/** The browser's time zone. */
export function ownZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** A span from `start` to before `end`, in milliseconds. Without `start`, all time. */
export interface Span {
  start: Date | undefined;
  end: Date;
}

const DAYS = { "7d": 7, "30d": 30, "90d": 90 } as const;
const MONTHS = { "6mo": 6, "12mo": 12 } as const;

/** The span of a period in whole days of the zone, possibly into the future. */
export function wholeSpan(period: Period, zone: string, now = new Date()): Span {
  const today = startOfDay(new TZDateMini(now, zone));
  const tomorrow = addDays(today, 1);
  if (typeof period === "object") return spanOfRange(period, zone);
  switch (period) {
    case "today":
      return { start: today, end: tomorrow };
    case "yesterday":
      return { start: addDays(today, -1), end: today };
    case "24h":
      return { start: subHours(minuteAfter(now, zone), 24), end: minuteAfter(now, zone) };
    case "all":
      return { start: undefined, end: tomorrow };
    case "6mo":
    case "12mo":
      return { start: addDays(subMonths(today, MONTHS[period]), 1), end: tomorrow };
    default:
      return { start: addDays(today, 1 - DAYS[period]), end: tomorrow };
  }
}

/** Periods of times begin and end at full minutes, as in their addresses. */
function minuteAfter(now: Date, zone: string): Date {
  return addMinutes(startOfMinute(new TZDateMini(now, zone)), 1);
}

function spanOfRange({ from, to }: Range, zone: string): Span {
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

/** The span to compare with: as much of the previous period as has passed of this one. */
export function spanBefore(period: Period, zone: string, now = new Date()): Span | undefined {
  const whole = wholeSpan(period, zone, now);
  const { start, end } = spanUntilNow(period, zone, now);
  if (!start || !whole.start || start > now) return undefined;
  const back = (date: Date) => moved(date, period, { ...whole, start: whole.start as Date }, -1);
  return { start: back(start), end: back(end) };
}

/** An instant one period later or earlier, by the zone's clock. */
function moved(
  date: Date,
  period: Period,
  { start, end }: Required<Span> & { start: Date },
  by: number,
): Date {
  const months = monthsOf(period, start, end);
  if (months) return addMonths(date, by * months);
  const days = daysOf(period, start, end);
  if (days) return addDays(date, by * days);
  return addMinutes(date, by * differenceInMinutes(end, start));
}

function monthsOf(period: Period, start: Date, end: Date): number {
  if (period === "6mo" || period === "12mo") return MONTHS[period];
  // Later days are not in every month: a step there would have no way back.
  const isMonths =
    typeof period === "object" &&
    isDays(period) &&
    start.getDate() === end.getDate() &&
    start.getDate() <= SHORTEST_MONTH;
  const months = isMonths ? differenceInCalendarMonths(end, start) : 0;
  // Thirty days that happen to be a month still step by days.
  return start.getDate() === 1 || Object.values(MONTHS).some((known) => known === months)
    ? months
    : 0;
}

function isTimes(period: Period): boolean {
  return period === "24h" || (typeof period === "object" && !isDays(period));
}

function daysOf(period: Period, start: Date, end: Date): number {
  return isTimes(period) ? 0 : differenceInCalendarDays(end, start);
}

/**
 * How many steps `back` a period is from the last 6 or 12 months, undefined if it is none of these.
 * The edges of all of them are as many months before today, so that every step has a way back.
 */
function rollingMonths(
  period: Period,
  { start, end }: { start: Date; end: Date },
  zone: string,
  now: Date,
): { back: number; edge: (back: number) => Date } | undefined {
  if (typeof period === "object" && !isDays(period)) return undefined;
  const today = startOfDay(new TZDateMini(now, zone));
  for (const months of Object.values(MONTHS)) {
    const edge = (back: number) => addDays(subMonths(today, back * months), 1);
    const back = Math.round(differenceInCalendarMonths(today, end) / months);
    const near = [back - 1, back, back + 1].find(
      (one) => one >= 0 && isSameMoment(edge(one), end) && isSameMoment(edge(one + 1), start),
    );
    if (near !== undefined) return { back: near, edge };
  }
  return undefined;
}

/** The next (1) or previous (-1) period; undefined in the future, or if there is none. */
export function stepped(
  period: Period,
  by: 1 | -1,
  zone: string,
  now = new Date(),
): Period | undefined {
  const { start, end } = wholeSpan(period, zone, now);
  if (!start) return undefined;
  const rolling = rollingMonths(period, { start, end }, zone, now);
  if (rolling) {
    const [first, last] = [rolling.edge(rolling.back - by + 1), rolling.edge(rolling.back - by)];
    return first > now
      ? undefined
      : named(daysBetween(first, addDays(last, -1)), zone, now, OF_DAYS);
  }
  const whole = { start, end };
  const next = { start: moved(start, period, whole, by), end: moved(end, period, whole, by) };
  if (next.start > now) return undefined;
  // A rolling day does not extend beyond now: its last step leads to the last 24 hours.
  const isDay = isTimes(period) && differenceInMinutes(end, start) === DAY_MINUTES;
  if (isDay && by > 0 && next.end > subHours(now, 1)) return period === "24h" ? undefined : "24h";
  const range = isTimes(period)
    ? timesOf(next.start, next.end)
    : daysBetween(next.start, addDays(next.end, -1));
  return named(range, zone, now, OF_DAYS);
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

function clockOf(date: Date): string {
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

/** The name of a range, if it has one, such as today or yesterday. */
export function named(
  range: Range,
  zone: string,
  now = new Date(),
  names: readonly NamedPeriod[] = ["today", "yesterday"],
): Period {
  for (const period of names) {
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

/** The instant of the previous period to compare with, if there is one. */
export function counterpart(date: Date, period: Period, zone: string, whole: Span) {
  const { start, end } = whole;
  if (!start) return undefined;
  const from = new TZDateMini(date, zone);
  const earlier = moved(from, period, { start, end }, -1);
  // The 31st has none in a month of 30 days, nor a skipped hour.
  const isThere = clockOf(moved(earlier, period, { start, end }, 1)) === clockOf(from);
  return isThere ? earlier : undefined;
}

const FOLLOWING = {
  minute: addMinutes,
  hour: addHours,
  day: addDays,
  week: addWeeks,
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
  const days = differenceInMinutes(end, start) / 1_440;
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
  const days = differenceInMinutes(end, start) / 1_440;
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
