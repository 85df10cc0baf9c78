// What a period is compared with.

import assert from "node:assert/strict";
import { test } from "node:test";
import { differenceInCalendarDays } from "date-fns";
import type { Comparison, Period } from "../dashboard/view/address.ts";
import { comparedWith, matchesWeekdays } from "../dashboard/view/comparison.ts";
import { wholeSpan } from "../dashboard/view/periods.ts";

const BERLIN = "Europe/Berlin";
const NOW = new Date("2025-03-12T15:20:30+01:00");

interface Case {
  comparison?: Comparison;
  weekdays?: boolean;
  zone?: string;
  now?: string;
}

function range(from: string, to: string) {
  return { from, to };
}

/** What a period is compared with, by the clock of the zone. */
function compared(period: Period, { comparison = "previous", weekdays, ...at }: Case = {}) {
  const { zone = BERLIN, now = NOW.toISOString() } = at;
  const span = comparedWith({ period, comparison, weekdays }, zone, new Date(now));
  const form = new Intl.DateTimeFormat("sv", {
    timeZone: zone,
    dateStyle: "short",
    timeStyle: "medium",
  });
  return span && `${form.format(span.start)} / ${form.format(span.end)}`;
}

for (const [period, before] of [
  ["today", "2025-03-11 00:00:00 / 2025-03-11 15:20:30"],
  ["yesterday", "2025-03-10 00:00:00 / 2025-03-11 00:00:00"],
  ["24h", "2025-03-10 15:21:00 / 2025-03-11 15:20:30"],
  ["7d", "2025-02-27 00:00:00 / 2025-03-05 15:20:30"],
  ["week", "2025-03-03 00:00:00 / 2025-03-05 15:20:30"],
  ["last-week", "2025-02-24 00:00:00 / 2025-03-03 00:00:00"],
  ["month", "2025-02-01 00:00:00 / 2025-02-12 15:20:30"],
  ["last-month", "2025-01-01 00:00:00 / 2025-02-01 00:00:00"],
  ["quarter", "2024-10-01 00:00:00 / 2024-12-12 15:20:30"],
  ["last-quarter", "2024-07-01 00:00:00 / 2024-10-01 00:00:00"],
  ["year", "2024-01-01 00:00:00 / 2024-03-12 15:20:30"],
  ["last-year", "2023-01-01 00:00:00 / 2024-01-01 00:00:00"],
  ["ytd", "2024-01-01 00:00:00 / 2024-03-12 15:20:30"],
  ["6mo", "2024-03-13 00:00:00 / 2024-09-12 15:20:30"],
  [range("2025-03-10", "2025-03-12"), "2025-03-07 00:00:00 / 2025-03-09 15:20:30"],
  [range("2025-03-01", "2025-03-31"), "2025-02-01 00:00:00 / 2025-02-12 15:20:30"],
  [range("2025-01-01", "2025-02-28"), "2024-11-01 00:00:00 / 2025-01-01 00:00:00"],
] as const) {
  test(`as much of the previous period as has passed: ${JSON.stringify(period)}`, () => {
    assert.equal(compared(period), before);
  });
}

test("all time and the future are not compared, nor what is switched off", () => {
  for (const comparison of ["previous", "year", range("2025-01-01", "2025-01-31")] as const) {
    assert.equal(compared("all", { comparison }), undefined);
    assert.equal(compared(range("2025-03-13", "2025-03-14"), { comparison }), undefined);
  }
  assert.equal(compared("7d", { comparison: "none" }), undefined);
});

for (const [period, weekdays, before] of [
  // The nearest whole number of weeks before.
  ["14d", undefined, "2025-02-13 00:00:00 / 2025-02-26 15:20:30"],
  ["28d", undefined, "2025-01-16 00:00:00 / 2025-02-12 15:20:30"],
  ["30d", undefined, "2025-01-14 00:00:00 / 2025-02-12 15:20:30"],
  ["30d", false, "2025-01-12 00:00:00 / 2025-02-10 15:20:30"],
  ["90d", undefined, "2024-09-13 00:00:00 / 2024-12-11 15:20:30"],
  ["90d", false, "2024-09-14 00:00:00 / 2024-12-12 15:20:30"],
  [range("2025-01-12", "2025-02-10"), undefined, "2024-12-15 00:00:00 / 2025-01-14 00:00:00"],
  // Days and months of the calendar only if that is wanted.
  ["today", true, "2025-03-05 00:00:00 / 2025-03-05 15:20:30"],
  ["24h", true, "2025-03-04 15:21:00 / 2025-03-05 15:20:30"],
  ["last-month", true, "2025-01-04 00:00:00 / 2025-02-01 00:00:00"],
  ["month", true, "2025-02-01 00:00:00 / 2025-02-12 15:20:30"],
] as const) {
  test(`weekdays beside each other: ${JSON.stringify([period, weekdays])}`, () => {
    assert.equal(compared(period, { ...(weekdays !== undefined && { weekdays }) }), before);
  });
}

test("weekdays match in the nearest weeks", () => {
  for (const comparison of ["previous", "year", range("2024-05-01", "2024-05-09")] as const) {
    for (const period of ["14d", "30d", "90d", "month", "quarter", "12mo"] as const) {
      const [matched, exact] = [true, false].map(
        (weekdays) => comparedWith({ period, comparison, weekdays }, BERLIN, NOW)?.whole.start,
      ) as [Date, Date];
      assert.equal(matched.getDay(), wholeSpan(period, BERLIN, NOW).start?.getDay(), period);
      assert.ok(Math.abs(differenceInCalendarDays(matched, exact)) <= 3, period);
    }
  }
});

for (const [period, weekdays, before] of [
  ["today", undefined, "2024-03-12 00:00:00 / 2024-03-12 15:20:30"],
  ["month", undefined, "2024-03-01 00:00:00 / 2024-03-12 15:20:30"],
  ["last-month", undefined, "2024-02-01 00:00:00 / 2024-03-01 00:00:00"],
  ["7d", undefined, "2024-03-07 00:00:00 / 2024-03-13 15:20:30"],
  ["30d", undefined, "2024-02-13 00:00:00 / 2024-03-13 15:20:30"],
  ["30d", false, "2024-02-11 00:00:00 / 2024-03-12 15:20:30"],
  ["week", undefined, "2024-03-11 00:00:00 / 2024-03-13 15:20:30"],
  ["24h", undefined, "2024-03-11 15:21:00 / 2024-03-12 15:20:30"],
  ["ytd", undefined, "2024-01-01 00:00:00 / 2024-03-12 15:20:30"],
] as const) {
  test(`the same period a year earlier: ${JSON.stringify([period, weekdays])}`, () => {
    const choice = { comparison: "year", ...(weekdays !== undefined && { weekdays }) } as const;
    assert.equal(compared(period, choice), before);
  });
}

for (const [period, comparison, weekdays, before] of [
  ["7d", range("2025-01-01", "2025-01-07"), undefined, "2025-01-01 00:00:00 / 2025-01-07 15:20:30"],
  ["7d", range("2025-01-01", "2025-01-07"), true, "2025-01-02 00:00:00 / 2025-01-08 15:20:30"],
  // Other lengths are compared in full, up to now.
  ["7d", range("2025-01-01", "2025-01-31"), undefined, "2025-01-01 00:00:00 / 2025-02-01 00:00:00"],
  [
    "yesterday",
    range("2025-03-10", "2025-03-20"),
    undefined,
    "2025-03-10 00:00:00 / 2025-03-12 15:20:30",
  ],
  // It may be later than the period.
  [
    "last-year",
    range("2025-01-01", "2025-01-31"),
    undefined,
    "2025-01-01 00:00:00 / 2025-02-01 00:00:00",
  ],
] as const) {
  test(`a range of its own: ${JSON.stringify([period, comparison, weekdays])}`, () => {
    const choice = { comparison, ...(weekdays !== undefined && { weekdays }) };
    assert.equal(compared(period, choice), before);
  });
}

for (const [what, period, choice, before] of [
  [
    "clocks are set forward in between",
    "today",
    { now: "2025-03-31T12:00+02:00" },
    "2025-03-30 00:00:00 / 2025-03-30 12:00:00",
  ],
  [
    "an hour that was skipped",
    "today",
    { now: "2025-03-31T02:30+02:00" },
    "2025-03-30 00:00:00 / 2025-03-30 03:30:00",
  ],
  [
    "clocks are set back in between",
    "week",
    { now: "2025-10-30T12:00+01:00" },
    "2025-10-20 00:00:00 / 2025-10-23 12:00:00",
  ],
  [
    "New York",
    "7d",
    { now: "2025-03-12T15:20:30-04:00", zone: "America/New_York" },
    "2025-02-27 00:00:00 / 2025-03-05 15:20:30",
  ],
  [
    "a day that the month before does not have",
    "month",
    { now: "2025-03-30T12:00+02:00" },
    "2025-02-01 00:00:00 / 2025-03-01 00:00:00",
  ],
  [
    "the end of a longer month",
    "month",
    { now: "2025-02-28T12:00+01:00" },
    "2025-01-01 00:00:00 / 2025-01-28 12:00:00",
  ],
  [
    "a leap day",
    "today",
    { now: "2024-02-29T12:00+01:00", comparison: "year" },
    "2023-02-28 00:00:00 / 2023-03-01 00:00:00",
  ],
  [
    "a year up to a leap day",
    "ytd",
    { now: "2024-02-29T12:00+01:00" },
    "2023-01-01 00:00:00 / 2023-03-01 00:00:00",
  ],
  [
    "a month with a leap day",
    "last-month",
    { now: "2024-03-02T12:00+01:00", comparison: "year" },
    "2023-02-01 00:00:00 / 2023-03-01 00:00:00",
  ],
  [
    "months that end where the last ones begin",
    "6mo",
    { now: "2025-08-30T10:00+02:00" },
    "2024-08-31 00:00:00 / 2025-03-01 00:00:00",
  ],
] as [string, Period, Case, string][]) {
  test(`a comparison by the clock and the calendar: ${what}`, () => {
    assert.equal(compared(period, choice), before);
  });
}

test("weekdays match by default where that is their number of weeks, or nearly", () => {
  const usual = (period: Period, comparison: Comparison = "previous") =>
    matchesWeekdays({ period, comparison, weekdays: undefined }, BERLIN, NOW);
  for (const period of ["7d", "14d", "28d", "30d", "90d", "week", "last-week"] as const) {
    assert.equal(usual(period), true, period);
    assert.equal(usual(period, "year"), true, period);
    assert.equal(usual(period, range("2025-01-01", "2025-01-07")), false, period);
  }
  for (const period of ["today", "24h", "month", "last-month", "quarter", "ytd", "6mo"] as const) {
    assert.equal(usual(period), false, period);
  }
  // A whole month is no 28 days.
  assert.equal(usual(range("2025-02-01", "2025-02-28")), false);
  assert.equal(usual(range("2025-02-02", "2025-03-01")), true);
});
