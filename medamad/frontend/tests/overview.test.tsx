// The tiles and the chart of a website's page.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { waitFor } from "@testing-library/dom";
import type { Figures, Summary } from "../dashboard/api/types.ts";
import { Change } from "../dashboard/view/change.tsx";
import { Overview } from "../dashboard/view/overview.tsx";
import { drawn, wipe, written } from "./support/canvas.ts";
import { bucket, figures, visited } from "./support/figures.ts";
import { type Answers, type Asked, refusal, show, showOnPage } from "./support/page.tsx";
import { plain } from "./support/text.ts";

const THREE_DAYS = "?from=2025-03-10&to=2025-03-12&zone=UTC";
const SHOWN: Summary = {
  current: visited(5, 6, 0.8, 31_000),
  interval: [
    bucket("2025-03-10T00:00:00Z", visited(2, 2, 1, 12_000)),
    bucket("2025-03-11T00:00:00Z", visited(1, 2, 0, 50_000)),
    bucket("2025-03-12T00:00:00Z", visited(2, 2, 1, 40_000)),
  ],
};
const BEFORE: Summary = {
  current: visited(2, 2, 1, 16_000),
  interval: [
    bucket("2025-03-07T00:00:00Z"),
    bucket("2025-03-08T00:00:00Z", visited(2, 2, 1, 16_000)),
    bucket("2025-03-09T00:00:00Z"),
  ],
};
const EMPTY_DAY = bucket("2025-03-11T00:00:00Z");
const ROWS = [
  ["Mon, March 10, 2025", "2", "2", "2", "1", "100%", "12s", "Fri, March 7, 2025", "0"],
  ["Tue, March 11, 2025", "1", "1", "2", "2", "0%", "50s", "Sat, March 8, 2025", "2"],
  ["Wed, March 12, 2025", "2", "2", "2", "1", "100%", "40s", "Sun, March 9, 2025", "0"],
];

/** The figures of the three days, and of those before. */
function summary({ query }: Asked): Summary {
  return (query.get("start") ?? "") < "2025-03-10" ? BEFORE : SHOWN;
}

/** Show the overview and wait for its figures and what they are compared with. */
async function overview(query = THREE_DAYS, answers: Answers = {}) {
  const shown = showOnPage(<Overview />, query, { summary, ...answers });
  await waitFor(() => {
    assert.equal(document.querySelectorAll(".tile-figure").length, 6);
    assert.equal(document.querySelectorAll("[aria-busy=true]").length, 0);
  });
  return { ...shown, chart: () => shown.getByRole("group", { name: /^Chart: / }) };
}

/** Wait until the intervals of the previous period are there. */
async function compared(): Promise<void> {
  await waitFor(() => assert.equal(document.querySelectorAll("thead th").length, 9));
}

function texts(selector: string): string[] {
  return [...document.querySelectorAll(selector)].map(({ textContent }) => plain(textContent));
}

function tileFigures(): string[] {
  return texts(".tile-figure");
}

function rows(): string[][] {
  return [...document.querySelectorAll("tbody tr")].map((row) =>
    [...row.children].map(({ textContent }) => plain(textContent)),
  );
}

/** The lines of the chart's tip. */
function tip(): string[] {
  const [value = "", name = "", ...lines] = [...(document.querySelector(".tip")?.childNodes ?? [])]
    .map(({ textContent }) => plain(textContent))
    .filter(Boolean);
  return value ? [`${value} ${name}`, ...lines] : [];
}

test("tiles show how figures changed", async () => {
  await overview();
  await compared();
  assert.deepEqual(tileFigures(), ["5", "5", "6", "1.2", "80%", "31s"]);
  const changes = [...document.querySelectorAll<HTMLElement>(".tiles .change")];
  assert.deepEqual(
    changes.map(({ title, className, children: [mark, words] }) => [
      mark?.textContent,
      className,
      words?.textContent,
      title,
    ]),
    [
      ["▲150%", "change good", "150% more than in the comparison period", "2"],
      ["▲150%", "change good", "150% more than in the comparison period", "2"],
      ["▲200%", "change good", "200% more than in the comparison period", "2"],
      ["▲20%", "change good", "20% more than in the comparison period", "1"],
      ["▼20%", "change good", "20% less than in the comparison period", "100%"],
      ["▲94%", "change good", "94% more than in the comparison period", "16s"],
    ].map(([mark, tone, words, before]) => [
      mark,
      tone,
      words,
      `${before} in the comparison period`,
    ]),
  );
  assert.deepEqual(texts(".chart-head p"), ["Mar 10-12, 2025 · compared with Mar 7-9, 2025"]);
});

for (const [measure, now, before, shown] of [
  ["visitors", 1, 2, "▼50% bad"],
  ["visitors", 3, 2, "▲50% good"],
  ["visitors", 1_004, 1_000, "="],
  ["visitors", 0, 2, "▼100% bad"],
  ["visit_bounce_percentage", 0.6, 0.5, "▲20% bad"],
  ["visit_bounce_percentage", 0.4, 0.5, "▼20% good"],
  // A change from nothing has no percentage, and what is unknown has not changed.
  ["visitors", 2, 0, undefined],
  ["visit_duration", null, 16_000, undefined],
  ["visit_duration", 16_000, null, undefined],
] as const) {
  test(`a change from ${before} to ${now}: ${measure}`, () => {
    show(<Change measure={measure} now={now} before={before} />);
    const change = document.querySelector(".change");
    const tone = change?.className.replace("change", "").trim();
    const mark = change?.querySelector("[aria-hidden]")?.textContent;
    assert.equal(change ? [mark, tone].filter(Boolean).join(" ") : undefined, shown);
  });
}

test("nothing is compared if that is switched off", async () => {
  const { asked } = await overview(`${THREE_DAYS}&compare=none`);
  assert.equal(document.querySelectorAll(".change").length, 0);
  assert.deepEqual(texts(".chart-head p"), ["Mar 10-12, 2025"]);
  assert.deepEqual(
    rows(),
    ROWS.map((row) => row.slice(0, 7)),
  );
  assert.deepEqual(
    [...new Set(asked.map(({ query }) => query.get("start")))],
    ["2025-03-10T00:00:00.000Z"],
  );
});

test("an empty previous period is not compared", async () => {
  await overview(THREE_DAYS, {
    summary: ({ query }) =>
      (query.get("start") ?? "") < "2025-03-10" ? { current: figures(), interval: [] } : SHOWN,
  });
  await waitFor(() => {
    assert.deepEqual(texts(".chart-head p"), [
      "Mar 10-12, 2025 · no visits in the comparison period (Mar 7-9, 2025)",
    ]);
  });
  assert.equal(document.querySelectorAll(".change").length, 0);
});

test("figures of the period and the one before are requested", async () => {
  const { asked } = await overview(`${THREE_DAYS}&path[eq]=/about`);
  await compared();
  const requested = asked.map(({ path, query }) => [path, Object.fromEntries(query)]);
  const parameters = { interval: "day", timezone: "UTC", visits: "true", "path[eq]": "/about" };
  assert.deepEqual(requested, [
    [
      "website/past.example/summary",
      {
        start: "2025-03-10T00:00:00.000Z",
        end: "2025-03-12T23:59:59.999Z",
        ...parameters,
      },
    ],
    [
      "website/past.example/summary",
      {
        start: "2025-03-07T00:00:00.000Z",
        end: "2025-03-09T23:59:59.999Z",
        ...parameters,
      },
    ],
  ]);
});

test("a named period is requested until now, in the browser's zone", async () => {
  mock.timers.enable({ apis: ["Date"], now: new Date("2025-03-12T15:20:30+01:00") });
  const { asked } = await overview("?period=7d&compare=none");
  assert.deepEqual(Object.fromEntries(asked[0]?.query ?? []), {
    start: "2025-03-05T23:00:00.000Z",
    end: "2025-03-12T14:20:29.999Z",
    interval: "day",
    timezone: "Europe/Berlin",
    visits: "true",
  });
});

test("weeks that are cut differently are compared as totals alone", async () => {
  await overview("?from=2025-11-01&to=2025-11-20&interval=week&zone=UTC", {
    summary: ({ query }) => {
      const isBefore = (query.get("start") ?? "") < "2025-11";
      const dates = isBefore
        ? ["2025-10-06", "2025-10-13", "2025-10-20", "2025-10-27"]
        : ["2025-10-27", "2025-11-03", "2025-11-10", "2025-11-17"];
      const interval = dates.map((day) => bucket(`${day}T00:00:00Z`, visited(1, 1, 1, 1_000)));
      return { current: isBefore ? BEFORE.current : SHOWN.current, interval };
    },
  });
  await waitFor(() => assert.ok(texts(".chart-note").join().includes("only totals are compared.")));
  assert.deepEqual(
    rows().map(([time, visitors, ...others]) => [time, visitors, others.length]),
    [
      ["Nov 1-2, 2025", "1", 5],
      ["Nov 3-9, 2025", "1", 5],
      ["Nov 10-16, 2025", "1", 5],
      ["Nov 17-20, 2025", "1", 5],
    ],
  );
  assert.equal(document.querySelectorAll(".tiles .change").length, 6);
});

test("days that are compared say nothing of totals", async () => {
  await overview();
  await compared();
  assert.deepEqual(texts(".chart-note"), []);
});

// Visitors who are only some of all.

const BY_PAGE = "Visitors who viewed several of the matching pages count once for each.";
const BY_EVENT = "Visitors are only those whose first view of the day had a matching event.";
const BY_EVENT_OF_PAGE =
  "Visitors are only those whose first view of the page that day had a matching event.";
const OF_PAGE = "6 views of this page, 11 in these visits.";
const MATCHING = "6 views match, 11 in these visits.";
const OF_VISITS = "11 views in these visits.";
for (const [filters, notes] of [
  ["", []],
  ["&browser[eq]=Firefox", [MATCHING]],
  ["&path[eq]=/about", [OF_PAGE]],
  ["&path[contains]=a&path[eq]=/about", [MATCHING]],
  ["&path[contains]=a", [MATCHING, BY_PAGE]],
  ["&path[neq]=/", [MATCHING, BY_PAGE]],
  ["&path[in]=/,/about", [MATCHING, BY_PAGE]],
  ["&prop_name[eq]=plan", [MATCHING, BY_EVENT]],
  ["&prop_value[contains]=x&path[eq]=/about", [MATCHING, BY_EVENT_OF_PAGE]],
  ["&prop_value[neq]=x&path[contains]=a", [MATCHING, BY_PAGE, BY_EVENT_OF_PAGE]],
  ["&entry_page[eq]=/about", [OF_VISITS]],
  ["&visit_referrer[eq]=news.example", [OF_VISITS]],
  ["&referrer[eq]=news.example", [MATCHING]],
  ["&goal[eq]=g", [OF_VISITS]],
  ["&goal[eq]=g&path[eq]=/about", [OF_PAGE]],
  ["&country[eq]=Japan", [OF_VISITS]],
] as const) {
  test(`which views and visitors count is explained: ${filters || "without filters"}`, async () => {
    await overview(THREE_DAYS + filters);
    assert.deepEqual(texts(".tiles-note"), notes);
  });
}

test("views of visits that began earlier are not told apart as some of the period's", async () => {
  const current = { ...visited(5, 6, 0.8, 31_000), visit_pageviews: 4 };
  await overview(`${THREE_DAYS}&browser[eq]=Firefox`, { summary: { ...SHOWN, current } });
  assert.deepEqual(texts(".tiles-note"), []);
});

test("under a filter on a goal, visits come first", async () => {
  const { person, getByRole, chart } = await overview(`${THREE_DAYS}&goal[eq]=g`);
  assert.deepEqual(texts(".tile-name").slice(0, 3), ["Visits", "Visitors", "Views"]);
  assert.match(chart().getAttribute("aria-label") ?? "", /^Chart: Visits, By day/);
  await person.click(getByRole("button", { name: /^Visitors \d/ }));
  assert.equal(location.search, `${THREE_DAYS}&measure=visitors&goal[eq]=g`);
  assert.match(chart().getAttribute("aria-label") ?? "", /^Chart: Visitors, By day/);
});

// The intervals.

test("an interval is chosen", async () => {
  const { person, getByRole, getAllByRole, asked } = await overview();
  await person.click(getByRole("button", { name: /^Interval: / }));
  assert.deepEqual(
    getAllByRole("menuitemradio").map(({ textContent }) => textContent),
    ["By hour", "By day"],
  );
  await person.click(getByRole("menuitemradio", { name: "By hour" }));
  assert.equal(location.search, `${THREE_DAYS}&interval=hour`);
  await waitFor(() => assert.equal(asked.at(-1)?.query.get("interval"), "hour"));
  await waitFor(() => getByRole("group", { name: /^Chart: Visitors, By hour/ }));
});

for (const [query, interval] of [
  ["?from=2025-03-10T09:00&to=2025-03-10T11:00&interval=minute", "minute"],
  ["?from=2025-03-01&to=2025-03-31&interval=week", "week"],
  ["?from=2025-01-01&to=2025-03-31&interval=month", "month"],
  // What does not fit is not taken.
  ["?from=2025-01-01&to=2025-03-31&interval=minute", "day"],
  ["?from=2025-03-10&to=2025-03-10&interval=month", "hour"],
] as const) {
  test(`the interval of an address: ${query}`, async () => {
    const { asked, getByRole } = await overview(`${query}&zone=UTC&compare=none`);
    assert.equal(asked[0]?.query.get("interval"), interval);
    getByRole("group", { name: new RegExp(`^Chart: Visitors, By ${interval}`) });
  });
}

test("all time begins with the first view", async () => {
  const { asked } = await overview("?period=all&zone=UTC", {
    summary: ({ query }) =>
      query.has("start")
        ? SHOWN
        : { current: SHOWN.current, interval: [bucket("2015-03-01T00:00:00Z")] },
  });
  assert.deepEqual(
    asked.map(({ query }) => [query.get("start"), query.get("interval")]),
    [
      [null, "month"],
      [null, "month"],
    ],
  );
});

// The chart.

for (const [name, measure, words] of [
  ["Visitors", "", "2 Visitors"],
  ["Visits", "visits", "2 Visits"],
  ["Views", "pageviews", "2 Views"],
  ["Views per visit", "views_per_visit", "1 Views per visit"],
  ["Bounce rate", "visit_bounce_percentage", "100% Bounce rate"],
  ["Time per visit", "visit_duration", "12s Time per visit"],
] as const) {
  test(`a tile has its measure drawn: ${name}`, async () => {
    const start = measure === "visits" ? "" : "&measure=visits";
    const { person, getByRole, chart } = await overview(THREE_DAYS + start);
    const tile = getByRole("button", { name: new RegExp(`^${name} \\d`) });
    assert.equal(tile.getAttribute("aria-pressed"), "false");
    await person.click(tile);
    assert.equal(tile.getAttribute("aria-pressed"), "true");
    assert.equal(location.search, THREE_DAYS + (measure && `&measure=${measure}`));
    assert.match(chart().getAttribute("aria-label") ?? "", new RegExp(`^Chart: ${name}, By day`));
    chart().focus();
    await person.keyboard("{Home}");
    assert.deepEqual(tip().slice(0, 2), [words, "Mon, March 10, 2025"]);
  });
}

test("each measure has its own lines", async () => {
  const { person } = await overview(`${THREE_DAYS}&compare=none`);
  const lines = new Set<string>();
  for (const tile of document.querySelectorAll(".tile [aria-pressed]")) {
    wipe();
    await person.click(tile);
    await waitFor(() => assert.notEqual(drawn.length, 0));
    lines.add(JSON.stringify(drawn.at(-1)));
  }
  // There were as many visits as visitors.
  assert.equal(lines.size, 5);
});

test("keys move along the chart", async () => {
  const { person, chart } = await overview();
  await compared();
  chart().focus();
  for (const [key, day] of [
    ["ArrowLeft", "Wed, March 12, 2025"],
    ["ArrowLeft", "Tue, March 11, 2025"],
    ["Home", "Mon, March 10, 2025"],
    ["ArrowLeft", "Mon, March 10, 2025"],
    ["ArrowRight", "Tue, March 11, 2025"],
    ["End", "Wed, March 12, 2025"],
    ["ArrowRight", "Wed, March 12, 2025"],
    ["Escape", undefined],
  ] as const) {
    await person.keyboard(`{${key}}`);
    assert.equal(tip()[1], day, key);
  }
  await person.keyboard("{Home}{ArrowRight}");
  assert.deepEqual(tip(), [
    "1 Visitors",
    "Tue, March 11, 2025",
    "2 ▼50%50% less than in the comparison periodSat, March 8, 2025",
  ]);
  await person.keyboard("{Enter}");
  assert.equal(location.search, "?from=2025-03-11&to=2025-03-11&zone=UTC");
  assert.equal(document.activeElement, chart());
});

test("the values of another interval are shown in the tip", async () => {
  const { person, chart } = await overview(`${THREE_DAYS}&interval=hour&compare=none`);
  chart().focus();
  await person.keyboard("{Home}{Enter}");
  assert.deepEqual(tip(), ["2 Visitors", "Mon, Mar 10, 12:00 AM"]);
});

for (const [key, words, range] of [
  ["Home", ["6 Visitors", "Oct 25-26, 2025"], "from=2025-10-25&to=2025-10-26"],
  ["End", ["1 Visitors", "Nov 17-20, 2025"], "from=2025-11-17&to=2025-11-20"],
] as const) {
  test(`a week that the period cuts is shown as it is counted: ${key}`, async () => {
    const { person, chart } = await overview(
      "?from=2025-10-25&to=2025-11-20&interval=week&zone=Europe/Berlin&compare=none",
      {
        summary: {
          current: SHOWN.current,
          interval: [
            bucket("2025-10-20T00:00:00+02:00", visited(6, 6, 1, 1_000)),
            bucket("2025-10-27T00:00:00+01:00"),
            bucket("2025-11-03T00:00:00+01:00"),
            bucket("2025-11-10T00:00:00+01:00"),
            bucket("2025-11-17T00:00:00+01:00", visited(1, 1, 1, 1_000)),
          ],
        },
      },
    );
    chart().focus();
    await person.keyboard(`{${key}}`);
    assert.deepEqual(tip(), words);
    await person.keyboard("{Enter}");
    assert.equal(location.search, `?${range}&zone=Europe/Berlin&compare=none`);
  });
}

test("an hour that there are two of is shown by itself", async () => {
  const { person, chart } = await overview(
    "?from=2025-10-26&to=2025-10-26&zone=Europe/Berlin&compare=none",
    {
      summary: {
        current: SHOWN.current,
        interval: Array.from({ length: 25 }, (_hour, place) =>
          bucket(new Date(Date.UTC(2025, 9, 25, 22 + place)).toISOString()),
        ),
      },
    },
  );
  chart().focus();
  await person.keyboard("{Home}{ArrowRight}{ArrowRight}{ArrowRight}{Enter}");
  assert.equal(
    location.search,
    "?from=2025-10-26T02:00%2B01:00&to=2025-10-26T03:00&zone=Europe/Berlin&compare=none",
  );
});

test("the axis labels what the period has of its first week", async () => {
  await overview("?from=2025-10-01&to=2025-10-31&zone=UTC&interval=week&compare=none", {
    summary: {
      current: SHOWN.current,
      interval: ["09-29", "10-06", "10-13", "10-20", "10-27"].map((day) =>
        bucket(`2025-${day}T00:00:00Z`),
      ),
    },
  });
  await waitFor(() => assert.ok(written.includes("Oct 6")));
  // A Wednesday; its week began in September.
  assert.ok(written.includes("Oct 1"));
  assert.ok(!written.includes("Sep 29"));
});

test("what is unknown of a day is a dash", async () => {
  const { person, chart } = await overview(`${THREE_DAYS}&compare=none&measure=visit_duration`, {
    summary: { current: SHOWN.current, interval: SHOWN.interval?.with(1, EMPTY_DAY) ?? [] },
  });
  assert.deepEqual(rows()[1], ["Tue, March 11, 2025", "0", "0", "0", "-", "-", "-"]);
  chart().focus();
  await person.keyboard("{Home}{ArrowRight}");
  assert.deepEqual(tip(), ["- Time per visit", "Tue, March 11, 2025"]);
});

// The table behind the chart.

test("a table says what the chart shows", async () => {
  const { person, getByRole, queryByRole, getAllByRole, chart } = await overview();
  await compared();
  assert.deepEqual(
    getAllByRole("columnheader").map(({ textContent }) => textContent),
    [
      "Time",
      "Visitors",
      "Visits",
      "Views",
      "Views per visit",
      "Bounce rate",
      "Time per visit",
      "Comparison period",
      "Visitors, Comparison period",
    ],
  );
  assert.deepEqual(rows(), ROWS);
  // Nothing out of sight takes the focus.
  assert.equal(document.querySelectorAll("table button").length, 0);
  assert.ok(chart());
  await person.click(getByRole("button", { name: "Show as table" }));
  assert.equal(queryByRole("group", { name: /^Chart: / }), null);
  assert.deepEqual(rows(), ROWS);
  await person.click(getByRole("button", { name: /March 12, 2025/ }));
  assert.equal(location.search, "?from=2025-03-12&to=2025-03-12&zone=UTC");
});

// Without views.

const NEVER = { current: figures(), interval: [] };
for (const query of ["", "?period=all", "?period=24h", "?period=12mo"]) {
  test(`a website without any view: ${query || "the usual period"}`, async () => {
    const { findByRole, asked } = await overview(query, { summary: NEVER });
    assert.deepEqual(tileFigures(), ["0", "0", "0", "-", "-", "-"]);
    const setup = await findByRole("link", { name: "Script and setup" });
    assert.equal(setup.getAttribute("href"), "/dashboard/websites/past.example/setup");
    assert.ok(texts(".overview").join().includes("No visits in this period"));
    assert.equal(document.querySelectorAll(".change, .skeleton").length, 0);
    assert.ok(asked.length > 0);
  });
}

test("a website with views in other periods is set up", async () => {
  const { asked } = await overview(THREE_DAYS, {
    summary: ({ query }) => (query.has("start") ? NEVER : SHOWN),
  });
  await waitFor(() => assert.ok(asked.some(({ query }) => !query.has("start"))));
  await new Promise((wake) => setTimeout(wake));
  assert.equal(document.querySelector(".overview a"), null);
});

test("means of a period without views are unknown, and not compared", async () => {
  await overview(THREE_DAYS, {
    summary: ({ query }) =>
      (query.get("start") ?? "") < "2025-03-10" ? BEFORE : { ...SHOWN, current: figures() },
  });
  await compared();
  assert.deepEqual(tileFigures(), ["0", "0", "0", "-", "-", "-"]);
  assert.deepEqual(texts(".change [aria-hidden]"), ["▼100%", "▼100%", "▼100%"]);
});

// Days of which not all is known.

test("visits of which some days are unknown are not compared", async () => {
  await overview(THREE_DAYS, {
    summary: (asked) =>
      Response.json(summary(asked), {
        headers: { "X-Medamad-Partial": 'visits="2025-03-10/2025-03-10"' },
      }),
  });
  await waitFor(() => assert.equal(document.querySelectorAll(".change").length, 2));
  assert.deepEqual(tileFigures(), ["5", "5", "6", "1.2", "80%", "31s"]);
});

test("visits of days with totals alone are unknown", async () => {
  const day = (date: number, of: Figures) => bucket(`2025-03-0${date}T00:00:00Z`, of);
  const totals = (visitors: number, pageviews: number) => figures({ visitors, pageviews });
  await overview("?from=2025-03-01&to=2025-03-03&zone=UTC&compare=none", {
    summary: () =>
      Response.json(
        {
          current: totals(6, 12),
          interval: [day(1, totals(4, 9)), day(2, totals(2, 3)), day(3, figures())],
        },
        { headers: { "X-Medamad-Partial": 'visits="2025-03-01/2025-03-02"' } },
      ),
  });
  assert.deepEqual(tileFigures(), ["6", "-", "12", "-", "-", "-"]);
  assert.deepEqual(rows(), [
    ["Sat, March 1, 2025", "4", "-", "9", "-", "-", "-"],
    ["Sun, March 2, 2025", "2", "-", "3", "-", "-", "-"],
    ["Mon, March 3, 2025", "0", "0", "0", "-", "-", "-"],
  ]);
});

test("a server that keeps no visits has figures of views", async () => {
  const ofViews = { visitors: 5, pageviews: 6, bounce_percentage: 0.2, duration: 20_000 };
  const shown = showOnPage(<Overview />, THREE_DAYS, {
    summary: ({ query }) =>
      query.has("visits")
        ? refusal(400, "visits: this server keeps none")
        : (query.get("start") ?? "") < "2025-03-10"
          ? { current: { ...ofViews, visitors: 2 } }
          : { current: ofViews },
  });
  await waitFor(() => {
    assert.deepEqual(texts(".tile-name"), ["Visitors", "Views", "Left within 5 s", "Median time"]);
    assert.deepEqual(tileFigures(), ["5", "6", "20%", "20s"]);
    assert.deepEqual(texts(".change [aria-hidden]"), ["▲150%", "=", "=", "="]);
  });
  assert.equal(shown.queryByRole("alert"), null);
});

test("visits come first where visitors are not counted", async () => {
  const uncounted = (of: Figures) => ({ ...of, visitors: 0 });
  const without = (of: Summary): Summary => ({
    visitors_counted: false,
    current: uncounted(of.current),
    interval: of.interval?.map((each) => ({ ...uncounted(each), date: each.date })) ?? [],
  });
  showOnPage(<Overview />, THREE_DAYS, { summary: (asked) => without(summary(asked)) });
  const names = ["Visits", "Views", "Views per visit", "Bounce rate", "Time per visit"];
  await waitFor(() => {
    assert.deepEqual(texts(".tile-name"), names);
    assert.deepEqual(tileFigures().slice(0, 2), ["5", "6"]);
    assert.equal(document.querySelector("[aria-pressed=true] .tile-name")?.textContent, "Visits");
    assert.deepEqual(texts("thead th").slice(1), [
      ...names,
      "Comparison period",
      "Visits, Comparison period",
    ]);
    assert.deepEqual(
      rows(),
      ROWS.map(([day, _visitors, ...rest]) => [day, ...rest]),
    );
  });
});

test("new and returning visitors are shown where the server tells them apart", async () => {
  const week = (first: Partial<Figures>) => figures({ visitors: 5, ...first });
  const [none, some] = [
    week({ new_visitors: 0, returning_visitors: 0, week_visitors: 0 }),
    week({ new_visitors: 1, returning_visitors: 4, week_visitors: 3 }),
  ];
  const { person, chart } = await overview(
    "?from=2025-03-03&to=2025-03-16&zone=UTC&interval=week&compare=none",
    {
      summary: {
        current: figures({ visitors: 5, new_visitors: 1, returning_visitors: 4 }),
        interval: [bucket("2025-03-03T00:00:00Z", none), bucket("2025-03-10T00:00:00Z", some)],
      },
    },
  );
  assert.deepEqual(texts(".tiles-note"), ["New visitors 1 · Returning visitors 4"]);
  const names = ["New visitors", "Returning visitors", "Unique visitors of the week"];
  assert.deepEqual(texts("thead th").slice(7), names);
  assert.deepEqual(
    rows().map((row) => row.slice(7)),
    [
      ["0", "0", "0"],
      ["1", "4", "3"],
    ],
  );
  chart().focus();
  await person.keyboard("{End}");
  assert.deepEqual(texts(".tip-kinds"), [
    "New visitors 1 · Returning visitors 4 · Unique visitors of the week 3",
  ]);
});

test("new and returning visitors are not shown where they are unknown", async () => {
  await overview();
  await compared();
  assert.deepEqual(texts(".tiles-note"), []);
});
