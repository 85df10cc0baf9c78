// The buckets of a series: what each covers of its period, and which one of the
// previous period it is compared with.

import type { Bucket } from "../api/types.ts";
import type { Interval, Period } from "./address.ts";
import { counterpart, nextStart, type Span, wholeSpan } from "./periods.ts";

/** A bucket and the span it covers within the period, possibly in the future. */
export interface Part extends Bucket {
  start: Date;
  end: Date;
  /** Whether the bucket is entirely within the period. */
  isWhole: boolean;
}

/** The buckets of a period. */
export function partsOf(
  buckets: readonly Bucket[],
  interval: Interval,
  zone: string,
  { start: first, end: last }: Span,
): Part[] {
  return buckets.map((bucket, place) => {
    const begun = new Date(bucket.date);
    const next = buckets[place + 1];
    const ended = next ? new Date(next.date) : nextStart(begun, interval, zone);
    const start = first && first > begun ? first : begun;
    const end = last < ended ? last : ended;
    return { ...bucket, start, end, isWhole: start === begun && end === ended };
  });
}

/**
 * Return for each bucket the one at the same position of the previous period. Weeks and
 * months that are cut differently have different lengths; then none is compared.
 */
export function pairsOf(
  parts: readonly Part[],
  before: readonly Bucket[],
  interval: Interval,
  zone: string,
  period: Period,
): (Part | undefined)[] | undefined {
  const whole = wholeSpan(period, zone);
  const earlier = (date: Date) => counterpart(date, period, zone, whole);
  const start = whole.start && earlier(whole.start);
  const end = earlier(whole.end);
  if (!start || !end) return undefined;
  const others = partsOf(before, interval, zone, { start, end });
  const byStart = new Map(others.map((other) => [other.start.valueOf(), other]));
  const isLong = interval === "week" || interval === "month";
  const pairs = parts.map((part) => {
    const other = byStart.get(earlier(part.start)?.valueOf() ?? Number.NaN);
    const isAlike = !isLong || other?.end.valueOf() === earlier(part.end)?.valueOf();
    return isAlike ? other : undefined;
  });
  const isComparable = isLong ? pairs.every(Boolean) : pairs.some(Boolean);
  return isComparable ? pairs : undefined;
}
