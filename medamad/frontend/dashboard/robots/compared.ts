// What the robots of a period are compared with. They are counted by day, so only whole days are.

import type { View } from "../view/address.ts";
import { comparedWith } from "../view/comparison.ts";
import { type Days, isTimes, spanUntilNow, todayIn } from "../view/periods.ts";

export interface WholeDays {
  /** The days of the period that have passed, if these are not all of it. */
  now: Days | undefined;
  /** As many days before it. */
  before: Days;
}

/** The days that are compared: none of a period of hours, or of one that began today. */
export function comparedDays(view: View, zone: string, now = new Date()): WholeDays | undefined {
  const earlier = comparedWith(view, zone, now);
  const { start, end } = spanUntilNow(view.period, zone, now);
  if (!earlier || !start || isTimes(view.period)) return undefined;
  const midnight = todayIn(zone, end);
  const before = { start: earlier.start, end: todayIn(zone, earlier.end) };
  if (midnight <= start || before.end <= before.start) return undefined;
  return { now: midnight < end ? { start, end: midnight } : undefined, before };
}
