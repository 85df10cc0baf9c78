// Periods: their spans, their neighbours, the intervals that fit them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TZDateMini } from "@date-fns/tz";
import { addDays } from "date-fns";
import { type Interval, PERIODS, type Period } from "../dashboard/view/address.ts";
import {
  daysBetween,
  intervalsFor,
  named,
  nextStart,
  ownZone,
  rangeOf,
  type Span,
  spanUntilNow,
  startsUntil,
  stepped,
  usualInterval,
  wholeSpan,
  writeSpan,
} from "../dashboard/view/periods.ts";

const BERLIN = "Europe/Berlin";
const NOW = new Date("2025-03-12T15:20:30+01:00");

function range(from: string, to: string): Period {
  return { from, to };
}

/** A span by the clock of a zone. */
function inWords({ start, end }: Span, zone = BERLIN): string {
  const form = new Intl.DateTimeFormat("sv", {
    timeZone: zone,
    dateStyle: "short",
    timeStyle: "medium",
  });
  return `${start ? form.format(start) : ""} / ${form.format(end)}`;
}

for (const [period, shown] of [
  ["today", "2025-03-12 00:00:00 / 2025-03-12 15:20:30"],
  ["yesterday", "2025-03-11 00:00:00 / 2025-03-12 00:00:00"],
  // Up to the end of this minute, which has not come.
  ["24h", "2025-03-11 15:21:00 / 2025-03-12 15:20:30"],
  ["7d", "2025-03-06 00:00:00 / 2025-03-12 15:20:30"],
  ["30d", "2025-02-11 00:00:00 / 2025-03-12 15:20:30"],
  ["90d", "2024-12-13 00:00:00 / 2025-03-12 15:20:30"],
  ["6mo", "2024-09-13 00:00:00 / 2025-03-12 15:20:30"],
  ["12mo", "2024-03-13 00:00:00 / 2025-03-12 15:20:30"],
  ["14d", "2025-02-27 00:00:00 / 2025-03-12 15:20:30"],
  ["28d", "2025-02-13 00:00:00 / 2025-03-12 15:20:30"],
  // A Wednesday.
  ["week", "2025-03-10 00:00:00 / 2025-03-12 15:20:30"],
  ["last-week", "2025-03-03 00:00:00 / 2025-03-10 00:00:00"],
  ["month", "2025-03-01 00:00:00 / 2025-03-12 15:20:30"],
  ["last-month", "2025-02-01 00:00:00 / 2025-03-01 00:00:00"],
  ["quarter", "2025-01-01 00:00:00 / 2025-03-12 15:20:30"],
  ["last-quarter", "2024-10-01 00:00:00 / 2025-01-01 00:00:00"],
  ["year", "2025-01-01 00:00:00 / 2025-03-12 15:20:30"],
  ["last-year", "2024-01-01 00:00:00 / 2025-01-01 00:00:00"],
  ["ytd", "2025-01-01 00:00:00 / 2025-03-12 15:20:30"],
  ["all", " / 2025-03-12 15:20:30"],
] as const) {
  test(`a period begins at a midnight and ends now: ${period}`, () => {
    assert.equal(inWords(spanUntilNow(period, BERLIN, NOW)), shown);
  });
}

test("a whole period ends with its last day", () => {
  for (const period of ["today", "7d", "30d", "90d", "6mo", "12mo", "ytd", "all"] as const) {
    const { end } = wholeSpan(period, BERLIN, NOW);
    assert.equal(end.valueOf(), Date.parse("2025-03-13T00:00+01:00"), period);
  }
});

for (const [zone, from, to, start, end] of [
  // A range of days includes the last.
  ["UTC", "2025-03-10", "2025-03-12", "2025-03-10T00:00Z", "2025-03-13T00:00Z"],
  [BERLIN, "2025-03-12", "2025-03-12", "2025-03-12T00:00+01:00", "2025-03-13T00:00+01:00"],
  ["America/New_York", "2025-03-12", "2025-03-12", "2025-03-12T04:00Z", "2025-03-13T04:00Z"],
  ["Asia/Tokyo", "2025-03-12", "2025-03-12", "2025-03-11T15:00Z", "2025-03-12T15:00Z"],
  // A day of 23 hours, and one of 25.
  [BERLIN, "2025-03-30", "2025-03-30", "2025-03-29T23:00Z", "2025-03-30T22:00Z"],
  [BERLIN, "2025-10-26", "2025-10-26", "2025-10-25T22:00Z", "2025-10-26T23:00Z"],
  // A range of times does not include the last.
  ["UTC", "2025-03-10T09:00", "2025-03-11T10:00", "2025-03-10T09:00Z", "2025-03-11T10:00Z"],
  // An hour that there are two of.
  [
    BERLIN,
    "2025-10-26T02:00+02:00",
    "2025-10-26T02:00+01:00",
    "2025-10-26T00:00Z",
    "2025-10-26T01:00Z",
  ],
  [BERLIN, "2025-10-26T02:00+01:00", "2025-10-26T03:00", "2025-10-26T01:00Z", "2025-10-26T02:00Z"],
  // In a zone that repeats nothing, there is an hour still.
  [
    "UTC",
    "2025-10-26T02:00+02:00",
    "2025-10-26T02:00+01:00",
    "2025-10-26T02:00Z",
    "2025-10-26T03:00Z",
  ],
] as const) {
  test(`a range begins and ends by the clock of the zone: ${from} to ${to}, ${zone}`, () => {
    const query = writeSpan(wholeSpan(range(from, to), zone, NOW), new URLSearchParams());
    assert.deepEqual(Object.fromEntries(query), {
      start: new Date(start).toISOString(),
      end: new Date(Date.parse(end) - 1).toISOString(),
    });
  });
}

test("weeks, months, quarters and years end with their last day", () => {
  for (const [period, end] of [
    ["week", "2025-03-17T00:00+01:00"],
    ["month", "2025-04-01T00:00+02:00"],
    ["quarter", "2025-04-01T00:00+02:00"],
    ["year", "2026-01-01T00:00+01:00"],
  ] as const) {
    assert.equal(wholeSpan(period, BERLIN, NOW).end.valueOf(), Date.parse(end), period);
  }
});

test("all time has no start", () => {
  const query = writeSpan(spanUntilNow("all", "UTC", NOW), new URLSearchParams());
  assert.deepEqual(Object.fromEntries(query), { end: "2025-03-12T14:20:29.999Z" });
});

const LAST_SUMMER = range("2024-07-01", "2024-09-30");
const STEPS: [Period, Period | undefined, Period | undefined][] = [
  ["today", "yesterday", undefined],
  ["yesterday", range("2025-03-10", "2025-03-10"), "today"],
  ["24h", range("2025-03-10T15:21", "2025-03-11T15:21"), undefined],
  ["7d", range("2025-02-27", "2025-03-05"), undefined],
  ["30d", range("2025-01-12", "2025-02-10"), undefined],
  ["90d", range("2024-09-14", "2024-12-12"), undefined],
  ["week", "last-week", undefined],
  ["last-week", range("2025-02-24", "2025-03-02"), "week"],
  ["month", "last-month", undefined],
  ["last-quarter", range("2024-07-01", "2024-09-30"), "quarter"],
  ["last-year", range("2023-01-01", "2023-12-31"), "year"],
  ["ytd", range("2024-01-01", "2024-03-12"), undefined],
  ["6mo", range("2024-03-13", "2024-09-12"), undefined],
  ["12mo", range("2023-03-13", "2024-03-12"), undefined],
  ["all", undefined, undefined],
  [range("2025-03-10", "2025-03-10"), range("2025-03-09", "2025-03-09"), "yesterday"],
  [
    range("2025-03-07", "2025-03-09"),
    range("2025-03-04", "2025-03-06"),
    range("2025-03-10", "2025-03-12"),
  ],
  // Whole months are followed by whole months.
  [range("2025-03-01", "2025-03-31"), "last-month", undefined],
  [range("2025-02-01", "2025-02-28"), range("2025-01-01", "2025-01-31"), "month"],
  [range("2024-04-01", "2024-06-30"), range("2024-01-01", "2024-03-31"), LAST_SUMMER],
  [
    range("2024-12-01", "2025-01-31"),
    range("2024-10-01", "2024-11-30"),
    range("2025-02-01", "2025-03-31"),
  ],
  [
    range("2025-03-10T09:00", "2025-03-11T10:00"),
    range("2025-03-09T08:00", "2025-03-10T09:00"),
    range("2025-03-11T10:00", "2025-03-12T11:00"),
  ],
];
for (const [period, earlier, later] of STEPS) {
  test(`the periods before and after ${JSON.stringify(period)}`, () => {
    assert.deepEqual(stepped(period, -1, BERLIN, NOW), earlier);
    assert.deepEqual(stepped(period, 1, BERLIN, NOW), later);
  });
}

const NOWS = [
  "2025-03-12T15:20:30+01:00",
  // The ends of months and years, leap days, and days on which clocks change.
  "2024-02-28T10:00+01:00",
  "2024-02-29T23:59+01:00",
  "2024-12-31T23:59+01:00",
  "2025-01-01T00:01+01:00",
  "2025-03-30T12:00+02:00",
  "2025-03-31T10:00+02:00",
  "2025-05-01T00:01+02:00",
  "2025-08-29T10:00+02:00",
  "2025-08-30T10:00+02:00",
  "2025-08-31T10:00+02:00",
  "2025-10-26T12:00+01:00",
  // Before these, 28 and 30 days are a month.
  "2025-03-28T10:00+01:00",
  "2025-11-30T10:00+01:00",
  "2025-12-30T10:00+01:00",
  // Mondays and Sundays.
  "2025-03-10T10:00+01:00",
  "2025-03-16T10:00+01:00",
].map((text) => new Date(text));

for (const now of NOWS) {
  test(`steps are reversible on ${now.toISOString()}`, () => {
    const periods = PERIODS.filter((period) => period !== "all");
    for (const period of periods) {
      const way = walk(period, -1, now);
      assert.deepEqual(walk(way.at(-1), 1, now).toReversed(), way, period);
    }
  });
}

for (const now of NOWS.slice(0, 3)) {
  test(`steps of ranges are reversible on ${now.toISOString()}`, () => {
    for (const [from, length] of RANGES) {
      const first = new TZDateMini(`${from}T00:00`, BERLIN);
      const chosen = daysBetween(first, addDays(first, length - 1));
      // What was chosen may have a name; then it returns as that.
      const [period, ...earlier] = walk(chosen, -1, now).map((one) => one as Period);
      const way = [period, ...earlier] as Period[];
      const back = walk(way.at(-1), 1, now).map((one) => one as Period);
      assert.deepEqual(
        back.toReversed().map((one) => inWords(wholeSpan(one, BERLIN, now))),
        way.map((one) => inWords(wholeSpan(one, BERLIN, now))),
        `${from} ${length}`,
      );
    }
  });
}

test("days that are a month step on as what they came from", () => {
  const now = new Date("2025-03-28T10:00+01:00");
  const february = { from: "2025-02-01", to: "2025-02-28" };
  assert.deepEqual(stepped("28d", -1, BERLIN, now), { ...february, step: "28d" });
  assert.equal(stepped({ ...february, step: "28d" }, 1, BERLIN, now), "28d");
  assert.equal(stepped(february, 1, BERLIN, now), "month");
  assert.deepEqual(stepped(range("2025-03-01", "2025-03-28"), -1, BERLIN, now), {
    ...february,
    step: "28d",
  });
  // A day later they are part of no others, and 28 days before 28 days.
  const later = new Date("2025-03-29T10:00+01:00");
  assert.deepEqual(stepped({ ...february, step: "days" }, 1, BERLIN, later), {
    from: "2025-03-01",
    to: "2025-03-28",
  });
});

test("days from one month to another step back and return", () => {
  for (const period of [
    range("2023-08-29", "2024-02-28"),
    range("2024-03-31", "2024-10-30"),
    range("2024-01-29", "2024-07-28"),
    range("2024-01-28", "2024-07-27"),
  ]) {
    const before = stepped(period, -1, BERLIN, NOW) as Period;
    assert.deepEqual(stepped(before, 1, BERLIN, NOW), period);
  }
});

test("the months before the last ones end where these begin", () => {
  const now = new Date("2025-08-30T10:00+02:00");
  assert.deepEqual(walk("6mo", -1, now), [
    "6mo",
    range("2024-08-31", "2025-02-28"),
    range("2024-03-01", "2024-08-30"),
    range("2023-08-31", "2024-02-29"),
  ]);
});

/** First days and lengths of ranges. */
const RANGES = [2, 3, 7, 28, 29, 30, 31, 59, 60, 61, 90, 91, 92, 181, 184, 365, 366].flatMap(
  (length) => ["2023-01-01", "2023-03-01", "2023-08-31"].map((first) => [first, length] as const),
);

/** A period and the three that follow it. */
function walk(first: Period | undefined, by: 1 | -1, now: Date): (Period | undefined)[] {
  const way = [first];
  for (let count = 0; count < 3; count += 1) {
    const last = way.at(-1);
    way.push(last && stepped(last, by, BERLIN, now));
  }
  return way;
}

test("the way back leads to the last 24 hours, also a minute later", () => {
  const before = stepped("24h", -1, BERLIN, NOW) as Period;
  const later = new Date(NOW.valueOf() + 60_000);
  assert.equal(stepped(before, 1, BERLIN, later), "24h");
  assert.equal(stepped("24h", 1, BERLIN, later), undefined);
});

test("days that have a name are called by it", () => {
  for (const [from, to, name] of [
    ["2025-03-12", "2025-03-12", "today"],
    ["2025-03-11", "2025-03-11", "yesterday"],
    ["2025-03-10", "2025-03-10", undefined],
    // Only asked for by steps.
    ["2025-03-06", "2025-03-12", undefined],
  ]) {
    const days = { from: from as string, to: to as string };
    assert.deepEqual(named(days, BERLIN, NOW), name ?? days);
  }
});

test("the zone is the browser's", (context) => {
  const { TZ } = process.env;
  context.after(() => {
    process.env.TZ = TZ;
  });
  for (const zone of ["America/New_York", "Asia/Tokyo", BERLIN]) {
    process.env.TZ = zone;
    assert.equal(ownZone(), zone);
  }
});

const INTERVALS: [string, string, Interval[], Interval][] = [
  ["2025-03-10T09:00Z", "2025-03-10T11:00Z", ["minute"], "minute"],
  ["2025-03-10T09:00Z", "2025-03-10T12:00Z", ["minute", "hour"], "minute"],
  ["2025-03-10T00:00Z", "2025-03-11T00:00Z", ["minute", "hour"], "hour"],
  ["2025-03-10T00:00Z", "2025-03-12T00:00Z", ["hour", "day"], "hour"],
  ["2025-03-10T00:00Z", "2025-03-13T00:00Z", ["hour", "day"], "day"],
  ["2025-03-01T00:00Z", "2025-04-01T00:00Z", ["hour", "day", "week"], "day"],
  ["2025-01-01T00:00Z", "2025-04-01T00:00Z", ["day", "week", "month"], "day"],
  ["2024-10-10T00:00Z", "2025-04-11T00:00Z", ["day", "week", "month"], "day"],
  ["2024-04-11T00:00Z", "2025-04-11T00:00Z", ["day", "week", "month"], "month"],
  ["2015-01-01T00:00Z", "2025-01-01T00:00Z", ["week", "month"], "month"],
  ["2005-01-01T00:00Z", "2025-01-01T00:00Z", ["month"], "month"],
];
for (const [start, end, fitting, usual] of INTERVALS) {
  test(`the intervals from ${start} to ${end}`, () => {
    assert.deepEqual(intervalsFor(new Date(start), new Date(end)), fitting);
    assert.equal(usualInterval(new Date(start), new Date(end)), usual);
  });
}

const PARTS: [string, string, Interval, string, string][] = [
  ["2025-03-10T23:00Z", "2025-03-11T23:00Z", "day", "2025-03-11", "2025-03-11"],
  ["2025-03-09T23:00Z", "2025-03-16T23:00Z", "week", "2025-03-10", "2025-03-16"],
  ["2025-02-28T23:00Z", "2025-03-30T22:00Z", "month", "2025-03-01", "2025-03-30"],
  ["2025-03-11T08:00Z", "2025-03-11T09:00Z", "hour", "2025-03-11T09:00", "2025-03-11T10:00"],
  // A part that ends in the midst of a day.
  ["2025-03-10T23:00Z", "2025-03-11T11:00Z", "day", "2025-03-11T00:00", "2025-03-11T12:00"],
  // Both hours from two to three.
  [
    "2025-10-26T00:00Z",
    "2025-10-26T01:00Z",
    "hour",
    "2025-10-26T02:00+02:00",
    "2025-10-26T02:00+01:00",
  ],
  ["2025-10-26T01:00Z", "2025-10-26T02:00Z", "hour", "2025-10-26T02:00+01:00", "2025-10-26T03:00"],
];
for (const [start, end, interval, from, to] of PARTS) {
  test(`a part of a chart as a range: ${interval} from ${from}`, () => {
    assert.deepEqual(rangeOf(new Date(start), new Date(end), interval, BERLIN), { from, to });
  });
}

test("intervals follow the clock of the zone", () => {
  for (const [start, interval, next] of [
    ["2025-03-29T23:00Z", "day", "2025-03-30T22:00Z"],
    ["2025-03-30T00:00Z", "hour", "2025-03-30T01:00Z"],
    ["2025-10-23T22:00Z", "week", "2025-10-30T23:00Z"],
    ["2025-09-30T22:00Z", "month", "2025-10-31T23:00Z"],
  ] as const) {
    assert.equal(nextStart(new Date(start), interval, BERLIN).valueOf(), Date.parse(next));
  }
});

test("intervals go on to the end of a day that an hour is missing from", () => {
  const first = { date: "2025-03-29T23:00:00Z" };
  const starts = startsUntil([first], "hour", BERLIN, new Date("2025-03-30T22:00Z"));
  const hours = starts.map((start) => start.getHours());
  assert.deepEqual([hours.length, ...hours.slice(0, 4)], [23, 0, 1, 3, 4]);
});
