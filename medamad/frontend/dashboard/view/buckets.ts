// The buckets of a series: what each covers of its period, and which other one it is
// compared with.

import { TZDateMini } from "@date-fns/tz";
import type { Bucket } from "../api/types.ts";
import type { Interval } from "./address.ts";
import { type Compared, counterpart, earlierEnd } from "./comparison.ts";
import { nextStart, type Span } from "./periods.ts";

const MINUTE_MS = 60_000;

/** A bucket and the span it covers within the period, possibly in the future. */
export interface Part extends Bucket {
  start: Date;
  end: Date;
  /** Whether the bucket is entirely within the period. */
  isWhole: boolean;
  /** When it was cut, to compare it with as much of another. */
  until?: Date;
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
 * Return for each bucket the one at the same position of the span it is compared with. Weeks and
 * months that are cut differently have different lengths; then none is compared.
 */
export function pairsOf(
  parts: readonly Part[],
  before: readonly Bucket[],
  interval: Interval,
  zone: string,
  compared: Compared,
): (Part | undefined)[] | undefined {
  const others = partsOf(before, interval, zone, compared.whole);
  const byStart = new Map(others.map((other) => [other.start.valueOf(), other]));
  const isLong = interval === "week" || interval === "month";
  const pairs = parts.map((part) => {
    const start = counterpart(part.start, compared, zone);
    const other = byStart.get(start?.valueOf() ?? Number.NaN);
    const end = earlierEnd(new TZDateMini(part.end, zone), compared.shift);
    const isAlike = !isLong || other?.end.valueOf() === end.valueOf();
    return other && isAlike ? cut(other, compared.end) : undefined;
  });
  const isComparable = isLong ? pairs.every(Boolean) : pairs.some(Boolean);
  return isComparable ? pairs : undefined;
}

/** A part with the instant that ends its figures, if that is before its own end. */
function cut(part: Part, until: Date): Part {
  const isCut = until > part.start && part.end.valueOf() - until.valueOf() >= MINUTE_MS;
  return isCut ? { ...part, until } : part;
}
