// The intervals of a chart: what each covers, what it is called and compared with.

import assert from "node:assert/strict";
import { before, mock, test } from "node:test";
import { TZDateMini } from "@date-fns/tz";
import { startOfISOWeek } from "date-fns";
import type { Bucket } from "../dashboard/api/types.ts";
import { speak } from "../dashboard/i18n/index.ts";
import type { Interval, Period, View } from "../dashboard/view/address.ts";
import { pairsOf, partsOf } from "../dashboard/view/buckets.ts";
import { comparedWith } from "../dashboard/view/comparison.ts";
import { nextStart, wholeSpan } from "../dashboard/view/periods.ts";
import { partLabel } from "../dashboard/view/spans.ts";
import { plain } from "./support/text.ts";

const BERLIN = "Europe/Berlin";
const NOW = new Date("2026-04-10T14:00+02:00");

before(() => speak("en"));

/** The empty buckets of a span, as the daemon begins them. */
function buckets(start: string, end: string, interval: Interval, zone = BERLIN): Bucket[] {
  const starts: Date[] = [new TZDateMini(start, zone)];
  const last = new TZDateMini(end, zone);
  for (;;) {
    const next = nextStart(starts.at(-1) as Date, interval, zone);
    if (next >= last) break;
    starts.push(next);
  }
  return starts.map((date) => ({
    date: date.toISOString(),
    visitors: 0,
    pageviews: 0,
    bounce_percentage: 0,
    duration: 0,
  }));
}

/** The labels of a period's buckets. */
function labels(period: Period, shown: Bucket[], interval: Interval, zone = BERLIN): string[] {
  const parts = partsOf(shown, interval, zone, wholeSpan(period, zone, NOW));
  return parts.map((part) => plain(partLabel(part, interval, zone)));
}

/** The labels of the buckets that those of a period are compared with. */
function compared(
  period: Period,
  now: Bucket[],
  then: Bucket[],
  interval: Interval,
  choice: Partial<View> = {},
) {
  const span = comparedWith(
    { period, comparison: "previous", weekdays: undefined, ...choice },
    BERLIN,
    NOW,
  );
  if (!span) return undefined;
  const parts = partsOf(now, interval, BERLIN, wholeSpan(period, BERLIN, NOW));
  const pairs = pairsOf(parts, then, interval, BERLIN, span);
  return pairs?.map((part) => part && plain(partLabel(part, interval, BERLIN)));
}

for (const [interval, from, to, start, shown] of [
  [
    "minute",
    "2025-03-10T09:00",
    "2025-03-10T09:02",
    "2025-03-10T09:00",
    ["Mar 10, 9:00 AM", "Mar 10, 9:01 AM"],
  ],
  [
    "hour",
    "2025-03-10T09:00",
    "2025-03-10T11:00",
    "2025-03-10T09:00",
    ["Mon, Mar 10, 9:00 AM", "Mon, Mar 10, 10:00 AM"],
  ],
  [
    "day",
    "2025-03-10",
    "2025-03-11",
    "2025-03-10T00:00",
    ["Mon, March 10, 2025", "Tue, March 11, 2025"],
  ],
  // A period may cut its first and last week and month, and its first hour.
  [
    "week",
    "2025-03-01",
    "2025-03-12",
    "2025-02-24T00:00",
    ["Mar 1-2, 2025", "Mar 3-9, 2025", "Mar 10-12, 2025"],
  ],
  [
    "month",
    "2025-01-31",
    "2025-03-12",
    "2025-01-01T00:00",
    ["Jan 31, 2025", "February 2025", "Mar 1-12, 2025"],
  ],
  [
    "hour",
    "2025-10-25T14:21",
    "2025-10-25T16:00",
    "2025-10-25T14:00",
    ["Sat, Oct 25, 2:21-3:00 PM", "Sat, Oct 25, 3:00 PM"],
  ],
] as const) {
  test(`a bucket is called by what it covers of the period: ${interval} from ${from}`, () => {
    const end = to.includes("T") ? to : `${to}T24:00`;
    const period = { from, to };
    assert.deepEqual(labels(period, buckets(start, end, interval), interval), shown);
  });
}

test("an hour that there are two of is there twice", () => {
  const day = { from: "2025-10-26", to: "2025-10-26" };
  const hours = buckets("2025-10-26T00:00", "2025-10-27T00:00", "hour");
  assert.equal(hours.length, 25);
  assert.deepEqual(labels(day, hours, "hour").slice(1, 5), [
    "Sun, Oct 26, 1:00 AM",
    "Sun, Oct 26, 2:00 AM",
    "Sun, Oct 26, 2:00 AM",
    "Sun, Oct 26, 3:00 AM",
  ]);
  const before = buckets("2025-10-25T00:00", "2025-10-26T00:00", "hour");
  const pairs = compared(day, hours, before, "hour");
  assert.deepEqual(pairs?.slice(1, 5), [
    "Sat, Oct 25, 1:00 AM",
    "Sat, Oct 25, 2:00 AM",
    "Sat, Oct 25, 2:00 AM",
    "Sat, Oct 25, 3:00 AM",
  ]);
  assert.equal(pairs?.at(-1), "Sat, Oct 25, 11:00 PM");
});

test("an hour that the clock skips is not there", () => {
  const day = { from: "2025-03-30", to: "2025-03-30" };
  const hours = buckets("2025-03-30T00:00", "2025-03-31T00:00", "hour");
  const shown = labels(day, hours, "hour");
  assert.deepEqual(
    [shown.length, ...shown.slice(0, 3)],
    [23, "Sun, Mar 30, 12:00 AM", "Sun, Mar 30, 1:00 AM", "Sun, Mar 30, 3:00 AM"],
  );
});

test("an hour that the clock skips has nothing to be compared with", () => {
  const day = { from: "2025-03-31", to: "2025-03-31" };
  const hours = buckets("2025-03-31T00:00", "2025-04-01T00:00", "hour");
  const before = buckets("2025-03-30T00:00", "2025-03-31T00:00", "hour");
  assert.equal(before.length, 23);
  assert.deepEqual(compared(day, hours, before, "hour")?.slice(1, 4), [
    "Sun, Mar 30, 1:00 AM",
    undefined,
    "Sun, Mar 30, 3:00 AM",
  ]);
});

test("weeks are compared with those that are cut alike", () => {
  const period = { from: "2025-10-30", to: "2025-11-19" };
  const weeks = buckets("2025-10-27T00:00", "2025-11-20T00:00", "week");
  const before = buckets("2025-10-06T00:00", "2025-10-30T00:00", "week");
  assert.deepEqual(labels(period, weeks, "week"), [
    "Oct 30-Nov 2, 2025",
    "Nov 3-9, 2025",
    "Nov 10-16, 2025",
    "Nov 17-19, 2025",
  ]);
  assert.deepEqual(compared(period, weeks, before, "week"), [
    "Oct 9-12, 2025",
    "Oct 13-19, 2025",
    "Oct 20-26, 2025",
    "Oct 27-29, 2025",
  ]);
});

test("weeks that are cut differently are not compared", () => {
  const period = { from: "2025-11-01", to: "2025-11-20" };
  const weeks = buckets("2025-10-27T00:00", "2025-11-21T00:00", "week");
  const before = buckets("2025-10-06T00:00", "2025-11-01T00:00", "week");
  assert.deepEqual(labels(period, weeks, "week"), [
    "Nov 1-2, 2025",
    "Nov 3-9, 2025",
    "Nov 10-16, 2025",
    "Nov 17-20, 2025",
  ]);
  assert.equal(compared(period, weeks, before, "week"), undefined);
});

test("months that begin alike are compared day by day", () => {
  const days = buckets("2025-11-01T00:00", "2025-12-01T00:00", "day");
  const before = buckets("2025-10-01T00:00", "2025-11-01T00:00", "day");
  const pairs = compared({ from: "2025-11-01", to: "2025-11-30" }, days, before, "day");
  assert.equal(pairs?.[0], "Wed, October 1, 2025");
  assert.equal(pairs?.[29], "Thu, October 30, 2025");
});

test("a day that the month before does not have is not compared", () => {
  const days = buckets("2025-10-01T00:00", "2025-11-01T00:00", "day");
  const before = buckets("2025-09-01T00:00", "2025-10-01T00:00", "day");
  const pairs = compared({ from: "2025-10-01", to: "2025-10-31" }, days, before, "day");
  assert.deepEqual(pairs?.slice(29), ["Tue, September 30, 2025", undefined]);
});

test("the last six months are compared day by day", () => {
  mock.timers.enable({ apis: ["Date"], now: NOW });
  const days = buckets("2025-10-11T00:00", "2026-04-11T00:00", "day");
  const before = buckets("2025-04-11T00:00", "2025-10-11T00:00", "day");
  const pairs = compared("6mo", days, before, "day");
  assert.equal(pairs?.[0], "Fri, April 11, 2025");
  assert.equal(pairs?.at(-1), "Fri, October 10, 2025, until 2:00 PM");
  mock.timers.reset();
});

test("Sundays are beside Sundays in the last thirty days, and weeks are cut alike", () => {
  const days = buckets("2026-03-12T00:00", "2026-04-11T00:00", "day");
  const before = buckets("2026-02-12T00:00", "2026-03-14T00:00", "day");
  const pairs = compared("30d", days, before, "day");
  assert.equal(labels("30d", days, "day")[3], "Sun, March 15, 2026");
  assert.equal(pairs?.[3], "Sun, February 15, 2026");
  const weeks = buckets("2026-03-09T00:00", "2026-04-11T00:00", "week");
  const weeksBefore = buckets("2026-02-09T00:00", "2026-03-14T00:00", "week");
  assert.equal(compared("30d", weeks, weeksBefore, "week")?.[0], "Feb 12-15, 2026");
});

test("a year earlier, days are beside those of the same date or weekday", () => {
  const days = buckets("2026-03-01T00:00", "2026-04-01T00:00", "day");
  const before = buckets("2025-03-01T00:00", "2025-04-01T00:00", "day");
  const year = { comparison: "year" } as const;
  const sunday = "Sun, March 1, 2026";
  assert.equal(labels("last-month", days, "day")[0], sunday);
  assert.equal(compared("last-month", days, before, "day", year)?.[0], "Sat, March 1, 2025");
  const shifted = buckets("2025-03-02T00:00", "2025-04-02T00:00", "day");
  const matched = { ...year, weekdays: true };
  assert.equal(compared("last-month", days, shifted, "day", matched)?.[0], "Sun, March 2, 2025");
});

test("a leap day has none to be compared with a year earlier", () => {
  const days = buckets("2024-02-28T00:00", "2024-03-02T00:00", "day");
  const before = buckets("2023-02-28T00:00", "2023-03-02T00:00", "day");
  const period = { from: "2024-02-28", to: "2024-03-01" };
  assert.deepEqual(compared(period, days, before, "day", { comparison: "year" }), [
    "Tue, February 28, 2023",
    undefined,
    "Wed, March 1, 2023",
  ]);
});

for (const [interval, period, start, end, last] of [
  ["day", "7d", "2026-03-28T00:00", "2026-04-03T14:00", "Fri, April 3, 2026, until 2:00 PM"],
  ["hour", "today", "2026-04-09T00:00", "2026-04-09T14:00", "Thu, Apr 9, 1:00 PM"],
  ["week", "30d", "2026-02-09T00:00", "2026-03-13T14:00", "Mar 9-13, 2026, until 2:00 PM"],
  ["month", "year", "2025-01-01T00:00", "2025-04-10T14:00", "Apr 1-10, 2025, until 2:00 PM"],
] as const) {
  test(`what is cut at the hour of now is called by it: ${interval}`, () => {
    const { start: first, end: over } = wholeSpan(period, BERLIN, NOW);
    // The daemon's weeks begin on Mondays.
    const begun = interval === "week" ? startOfISOWeek(first as Date) : (first as Date);
    const now = buckets(begun.toISOString(), NOW.toISOString(), interval);
    assert.ok(over > NOW);
    assert.equal(compared(period, now, buckets(start, end, interval), interval)?.at(-1), last);
  });
}

test("all time is not compared", () => {
  const days = buckets("2025-10-11T00:00", "2025-10-13T00:00", "day");
  assert.equal(compared("all", days, days, "day"), undefined);
});
