// The intervals of a chart: what each covers, what it is called and compared with.

import assert from "node:assert/strict";
import { before, mock, test } from "node:test";
import { TZDateMini } from "@date-fns/tz";
import type { Bucket } from "../dashboard/api/types.ts";
import { speak } from "../dashboard/i18n/index.ts";
import type { Interval, Period } from "../dashboard/view/address.ts";
import { pairsOf, partsOf } from "../dashboard/view/buckets.ts";
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
function compared(period: Period, now: Bucket[], then: Bucket[], interval: Interval) {
  const parts = partsOf(now, interval, BERLIN, wholeSpan(period, BERLIN, NOW));
  const pairs = pairsOf(parts, then, interval, BERLIN, period);
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
  assert.equal(pairs?.at(-1), "Fri, October 10, 2025");
  mock.timers.reset();
});

test("all time is not compared", () => {
  const days = buckets("2025-10-11T00:00", "2025-10-13T00:00", "day");
  assert.equal(compared("all", days, days, "day"), undefined);
});
