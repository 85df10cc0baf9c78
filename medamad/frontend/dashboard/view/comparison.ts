// What a period is compared with: the same span for every figure of a page.

import { TZDateMini } from "@date-fns/tz";
import { addDays, differenceInCalendarDays, startOfDay } from "date-fns";
import type { Comparison, Period, View } from "./address.ts";
import {
  clockOf,
  type Days,
  isTimes,
  minutesBetween,
  previous,
  type Shift,
  shifted,
  spanOfRange,
  wholeSpan,
} from "./periods.ts";

/** Periods of so many days hold weekends in different places than those before them. */
const ALIGNED_DAYS: readonly number[] = [7, 14, 28, 30, 90];
const WEEK = 7;

/** The span to compare with, as much of it as has passed of the period. */
export interface Compared extends Days {
  /** All of the span, also what has not passed of the period. */
  whole: Days;
  /** How far it is before the period. */
  shift: Shift;
}

type Choice = Pick<View, "period" | "comparison" | "weekdays">;

/** Whether each day of a period is compared with one of the same weekday. */
export function matchesWeekdays(choice: Choice, zone: string, now = new Date()): boolean {
  return choice.weekdays ?? usuallyMatches(choice, zone, now);
}

/** The default: a range of its own is compared as it was chosen. */
export function usuallyMatches({ period, comparison }: Choice, zone: string, now = new Date()) {
  const shift = previous(period, zone, now)?.shift;
  const days = shift && "days" in shift ? shift.days : 0;
  return typeof comparison === "string" && ALIGNED_DAYS.includes(days);
}

/** The span that a period is compared with: none for all time, and none for the future. */
export function comparedWith(choice: Choice, zone: string, now = new Date()): Compared | undefined {
  const { period, comparison } = choice;
  const { start, end } = wholeSpan(period, zone, now);
  if (comparison === "none" || !start || start > now) return undefined;
  const found = chosen(comparison, period, { start, end }, zone, now);
  if (!found) return undefined;
  const isRange = typeof comparison === "object";
  const { span, shift } = matchesWeekdays(choice, zone, now)
    ? onWeekdays(found.span, { start, end }, isRange)
    : found;
  if (span.start >= now) return undefined;
  const isUnderWay = end > now && (!isRange || lengthOf(span) === lengthOf({ start, end }));
  const passed = isUnderWay ? earlierEnd(new TZDateMini(now, zone), shift) : span.end;
  const last = [passed, span.end, now].reduce((one, other) => (one < other ? one : other));
  return { start: span.start, end: last, whole: span, shift };
}

/** The instant that one of the period is compared with, if there is one. */
export function counterpart(date: Date, { shift }: Compared, zone: string): Date | undefined {
  const from = new TZDateMini(date, zone);
  const earlier = shifted(from, shift, -1);
  // The 31st has none in a month of 30 days, nor a skipped hour.
  return clockOf(shifted(earlier, shift, 1)) === clockOf(from) ? earlier : undefined;
}

/** The end of a span that ends at `date`, moved; that of a shorter month if it has no such day. */
export function earlierEnd(date: Date, shift: Shift): Date {
  const earlier = shifted(date, shift, -1);
  const isThere = !("months" in shift) || earlier.getDate() === date.getDate();
  return isThere ? earlier : startOfDay(addDays(earlier, 1));
}

interface Found {
  span: Days;
  shift: Shift;
}

function chosen(
  comparison: Exclude<Comparison, "none">,
  period: Period,
  whole: Days,
  zone: string,
  now: Date,
): Found | undefined {
  if (comparison === "previous") return previous(period, zone, now);
  if (comparison === "year") {
    const shift = { months: 12 };
    const span = { start: shifted(whole.start, shift, -1), end: earlierEnd(whole.end, shift) };
    return { span, shift };
  }
  const span = spanOfRange(comparison, zone);
  const shift = isTimes(period)
    ? { minutes: minutesBetween(whole.start, span.start) }
    : { days: differenceInCalendarDays(whole.start, span.start) };
  return { span, shift };
}

/**
 * The nearest span that begins on the weekday of the period, other than the period itself. It is as
 * long as the period, unless it keeps its own length.
 */
function onWeekdays(found: Days, whole: Days, keepsLength: boolean): Found {
  const away = differenceInCalendarDays(whole.start, found.start);
  const days = Math.round(away / WEEK) * WEEK || Math.sign(away) * WEEK;
  const [from, back] = keepsLength ? [found, days - away] : [whole, days];
  const span = { start: addDays(from.start, -back), end: addDays(from.end, -back) };
  return { span, shift: { days } };
}

function lengthOf({ start, end }: Days): number {
  return differenceInCalendarDays(end, start);
}
