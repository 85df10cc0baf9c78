// What the address of a website's page says, and what of it is ignored.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { readView, type View, writeView } from "../dashboard/view/address.ts";

const NOW = new Date("2025-03-12T15:20:30+01:00");
const USUAL: View = {
  period: "30d",
  zone: undefined,
  comparison: "previous",
  weekdays: undefined,
  measure: undefined,
  interval: undefined,
  filters: [],
};

function read(query: string): View {
  return readView(new URLSearchParams(query));
}

const WRITTEN: [string, Partial<View>][] = [
  ["", {}],
  ["?period=today", { period: "today" }],
  ["?period=12mo&compare=none", { period: "12mo", comparison: "none" }],
  ["?period=last-quarter&compare=year", { period: "last-quarter", comparison: "year" }],
  ["?period=month&weekdays=true", { period: "month", weekdays: true }],
  ["?weekdays=false", { weekdays: false }],
  [
    "?period=7d&compare=2024-11-25..2024-12-01",
    { period: "7d", comparison: { from: "2024-11-25", to: "2024-12-01" } },
  ],
  [
    "?from=2025-02-01&to=2025-02-28&step=28d",
    { period: { from: "2025-02-01", to: "2025-02-28", step: "28d" } },
  ],
  ["?from=2025-03-10&to=2025-03-10", { period: { from: "2025-03-10", to: "2025-03-10" } }],
  [
    "?from=2025-03-10T09:00&to=2025-03-10T09:01",
    { period: { from: "2025-03-10T09:00", to: "2025-03-10T09:01" } },
  ],
  [
    "?from=2024-10-27T02:00%2B02:00&to=2024-10-27T02:00%2B01:00",
    { period: { from: "2024-10-27T02:00+02:00", to: "2024-10-27T02:00+01:00" } },
  ],
  ["?zone=America/New_York", { zone: "America/New_York" }],
  ["?measure=visit_duration&interval=week", { measure: "visit_duration", interval: "week" }],
  [
    "?from=2025-03-10&to=2025-03-12&zone=UTC&compare=none&measure=pageviews&interval=hour" +
      "&path[eq]=/about&browser[not_in]=Chrome,Firefox",
    {
      period: { from: "2025-03-10", to: "2025-03-12" },
      zone: "UTC",
      comparison: "none",
      measure: "pageviews",
      interval: "hour",
      filters: [
        { field: "path", operator: "eq", values: ["/about"] },
        { field: "browser", operator: "not_in", values: ["Chrome", "Firefox"] },
      ],
    },
  ],
];
for (const [query, shown] of WRITTEN) {
  test(`an address is read and written: ${query || "without a query"}`, () => {
    mock.timers.enable({ apis: ["Date"], now: NOW });
    assert.deepEqual(read(query), { ...USUAL, ...shown });
    assert.equal(writeView({ ...USUAL, ...shown }), query);
    mock.timers.reset();
  });
}

for (const query of [
  "period=fortnight",
  "from=2025-03-12&to=2025-03-10",
  "from=2025-02-30&to=2025-03-10",
  "from=2025-03-10&to=2025-13-01",
  "from=2025-03-10",
  "to=2025-03-10",
  "from=2025-03-10&to=2025-03-11T09:00",
  "from=2025-03-10T09:00&to=2025-03-10T09:00",
  "from=2025-03-10T09:00&to=2025-03-10T08:59",
  "from=2025-03-10T24:30&to=2025-03-11T09:00",
  "from=2024-10-27T02:00%2B01:00&to=2024-10-27T02:00%2B02:00",
  // The 14th has not begun anywhere.
  "from=2025-03-14&to=2025-03-15",
  "from=2999-11-20&to=2999-11-21",
  "zone=Nowhere/Atlantis&measure=joy&interval=second&compare=all&colour[eq]=red&goal[neq]=g",
  "compare=previous&weekdays=perhaps&step=7d",
  "compare=2025-03-01..2025-02-01",
  "compare=2025-03-01..",
  "compare=2025-03-01T09:00..2025-03-01T10:00",
  "compare=2999-11-20..2999-11-21",
]) {
  test(`what is invalid is ignored: ${query}`, () => {
    mock.timers.enable({ apis: ["Date"], now: NOW });
    assert.deepEqual(read(query), USUAL);
    mock.timers.reset();
  });
}

test("a day that has begun somewhere on earth can be shown", () => {
  mock.timers.enable({ apis: ["Date"], now: NOW });
  assert.deepEqual(read("from=2025-03-13&to=2025-03-14").period, {
    from: "2025-03-13",
    to: "2025-03-14",
  });
  mock.timers.reset();
});

test("a step that is not known, or of times, is ignored", () => {
  for (const [query, period] of [
    ["from=2025-03-10&to=2025-03-10&step=far", { from: "2025-03-10", to: "2025-03-10" }],
    [
      "from=2025-03-10T09:00&to=2025-03-10T10:00&step=7d",
      { from: "2025-03-10T09:00", to: "2025-03-10T10:00" },
    ],
  ] as const) {
    assert.deepEqual(read(query).period, period);
  }
});

test("an invalid range leaves the named period", () => {
  assert.equal(read("period=7d&from=2025-03-10").period, "7d");
});
