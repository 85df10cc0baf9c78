// The page of robots, and the link to it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import { Route, Router } from "preact-iso";
import { LANGUAGES, PURPOSES, type RobotRow } from "../dashboard/api/types.ts";
import { ROBOT_TEXTS } from "../dashboard/i18n/robots.ts";
import { comparedDays } from "../dashboard/robots/compared.ts";
import { barsOf } from "../dashboard/robots/days.tsx";
import { RobotsPage } from "../dashboard/robots/page.tsx";
import { NoSuchPage } from "../dashboard/ui/no-such-page.tsx";
import { readView } from "../dashboard/view/address.ts";
import { type Answers, type Asked, HOSTNAME, refusal, type Shown, show } from "./support/page.tsx";

const WEEK = "?period=7d&zone=UTC&compare=none";

function row(requests: number, of: Partial<RobotRow>): RobotRow {
  return { ...of, requests, requests_percentage: requests / 10 };
}

const GPTBOT = { name: "GPTBot", operator: "OpenAI", purpose: "ai-training" } as const;
const CURL = { name: "curl", operator: "", purpose: "library" } as const;
const ROWS: Record<string, RobotRow[]> = {
  purpose: [row(8, { purpose: "ai-training" }), row(2, { purpose: "library" })],
  name: [row(8, GPTBOT), row(1, CURL), row(1, { ...CURL, name: "Unknown" })],
  path: [row(6, { path: "/" }), row(4, { path: "(other)" })],
  day: [row(7, { date: "2026-03-01" }), row(3, { date: "2026-03-03" })],
};

function showRobots(answers: Answers = {}, query = WEEK): Shown {
  return show(
    <Router>
      <Route path="/dashboard/websites/:hostname/robots" component={RobotsPage} />
      <Route default component={NoSuchPage} />
    </Router>,
    `websites/${HOSTNAME}/robots${query}`,
    {
      robots: ({ query }: Asked) => ROWS[query.get("by") ?? ""] ?? [],
      "blind-spot": { loads: 0, robots: 0, counted: 0, unseen: 0, rows: [] },
      ...answers,
    },
  );
}

/** The rows of a list: names and figures. */
async function rowsOf(shown: Shown, list: string): Promise<string[]> {
  const panel = await shown.findByRole("region", { name: list });
  await within(panel).findByRole("table");
  return [...panel.querySelectorAll("tbody tr")].map((one) =>
    [one.querySelector("bdi, .robots-day"), ...one.querySelectorAll("td")]
      .map((cell) => cell?.textContent)
      .join(" "),
  );
}

test("robots are listed by purpose, name, page and day, the latest first", async () => {
  const shown = showRobots();
  await shown.findByText("10 page requests by robots");
  assert.deepEqual(await rowsOf(shown, "Purposes"), [
    "AI training 8 80%",
    "Program or library 2 20%",
  ]);
  const robots = ["GPTBot, OpenAI 8 80%", "curl 1 10%", "Unknown 1 10%"];
  assert.deepEqual(await rowsOf(shown, "Robots"), robots);
  assert.deepEqual(await rowsOf(shown, "Pages"), ["/ 6 60%", "(other) 4 40%"]);
  assert.deepEqual(await rowsOf(shown, "Days"), ["Mar 3, 2026 3 30%", "Mar 1, 2026 7 70%"]);
});

test("a row narrows the other lists but not its own, until all robots count again", async () => {
  const shown = showRobots();
  const purpose = await shown.findByRole("button", { name: "AI training" });
  const since = shown.asked.length;
  await shown.person.click(purpose);
  await waitFor(() => assert.ok(shown.asked.length >= since + 3));
  const asked = shown.asked
    .slice(since)
    .map(({ query }) => [query.get("by"), query.get("purpose")]);
  assert.ok(asked.every(([by, chosen]) => (chosen === "ai-training") === (by !== "purpose")));
  assert.deepEqual(new Set(asked.map(([by]) => by)), new Set(["day", "name", "path"]));
  assert.equal(purpose.getAttribute("aria-pressed"), "true");
  await shown.person.click(shown.getByRole("button", { name: "Count all robots" }));
  assert.equal(purpose.getAttribute("aria-pressed"), "false");
  assert.equal(shown.queryByRole("button", { name: "Count all robots" }), null);
});

test("filters of people are not asked for, the period is", async () => {
  const shown = showRobots({}, `${WEEK}&browser[eq]=Firefox`);
  await shown.findByText("10 page requests by robots");
  for (const { query } of shown.asked.filter(({ path }) => path.endsWith("robots"))) {
    assert.equal(query.get("browser[eq]"), null);
    assert.ok(query.get("start"));
  }
});

test("rows are compared with the period before, by its whole days", async () => {
  const shown = showRobots(
    {
      robots: ({ query }: Asked) => {
        const by = query.get("by") ?? "";
        if (by !== "purpose") return ROWS[by] ?? [];
        const isWhole = query.get("end")?.endsWith("T23:59:59.999Z");
        const requests = query.get("limit") === "500" ? 4 : isWhole ? 6 : 80;
        return [row(requests, { purpose: "search" })];
      },
    },
    "?period=7d&zone=UTC&compare=previous",
  );
  const panel = await shown.findByRole("region", { name: "Purposes" });
  const change = await within(panel).findByTitle("4 in the comparison period");
  assert.match(change.textContent ?? "", /50%/);
  within(panel).getByText("80");
});

const view = (query: string) => readView(new URLSearchParams(query));

test("only whole days are compared", () => {
  const noon = new Date("2026-03-10T12:00:00Z");
  const days = (query: string) => {
    const found = comparedDays(view(query), "UTC", noon);
    const of = (span?: { start: Date; end: Date }) =>
      span && [span.start, span.end].map((date) => date.toISOString().slice(0, 13));
    return found && [of(found.now), of(found.before)];
  };
  assert.deepEqual(days("period=7d&compare=previous"), [
    ["2026-03-04T00", "2026-03-10T00"],
    ["2026-02-25T00", "2026-03-03T00"],
  ]);
  assert.deepEqual(days("period=yesterday&compare=previous"), [
    undefined,
    ["2026-03-08T00", "2026-03-09T00"],
  ]);
  for (const query of ["period=today&compare=previous", "period=7d&compare=none"]) {
    assert.equal(days(query), undefined);
  }
});

test("long lists are shown whole on request", async () => {
  const paths = Array.from({ length: 12 }, (_nothing, place) => row(1, { path: `/${place}` }));
  const shown = showRobots({
    robots: ({ query }: Asked) =>
      query.get("by") === "path" ? paths : (ROWS[query.get("by") ?? ""] ?? []),
  });
  assert.equal((await rowsOf(shown, "Pages")).length, 9);
  await shown.person.click(shown.getByRole("button", { name: "Pages: show all" }));
  assert.equal((await rowsOf(shown, "Pages")).length, 12);
});

test("a period without robots says how they are counted", async () => {
  const shown = showRobots({ robots: [] });
  await shown.findByText("No robots in this period");
  await shown.findByText(/all others are counted in/);
  assert.equal(shown.queryByRole("table"), null);
});

test("page loads that the script did not see are shown if a log is followed", async () => {
  const rows: Record<string, object[]> = {
    browser: [{ browser: "Firefox", loads: 50, counted: 40, unseen: 10 }],
    path: [{ path: "(other)", loads: 50, counted: 60, unseen: 0 }],
    day: [
      { date: "2026-03-01", loads: 20, counted: 20, unseen: 0 },
      { date: "2026-03-02", loads: 30, counted: 20, unseen: 10 },
    ],
  };
  const shown = showRobots({
    "blind-spot": ({ query }: Asked) => ({
      ...{ first: "2026-03-01", last: "2026-03-02", loads: 100 },
      ...{ robots: 50, counted: 40, unseen: 10, rows: rows[query.get("by") ?? ""] },
    }),
  });
  const title = "What the script doesn’t see";
  const panel = within(await shown.findByRole("region", { name: title }));
  panel.getByText(/of 100 page loads .* 50 were made by robots and 40 were .* 10 \(10%\) weren’t/);
  assert.deepEqual(await rowsOf(shown, title), ["Firefox 50 40 10 (20%)"]);
  await shown.person.click(panel.getByRole("tab", { name: "Pages" }));
  await panel.findByText("(other)");
  await shown.person.click(panel.getByRole("tab", { name: "Days" }));
  await panel.findByText("Mar 2, 2026");
  assert.deepEqual(await rowsOf(shown, title), [
    "Mar 2, 2026 30 20 10 (33%)",
    "Mar 1, 2026 20 20 0 (0%)",
  ]);
});

test("nothing is said of what the script sees without a followed log", async () => {
  const shown = showRobots();
  await shown.findByText("10 page requests by robots");
  await waitFor(() => assert.ok(shown.asked.some(({ path }) => path.endsWith("blind-spot"))));
  assert.equal(shown.queryByText("What the script doesn’t see"), null);
});

test("a website that is not registered is named", async () => {
  const shown = showRobots({
    robots: () => refusal(404, "hostname: no website"),
    "blind-spot": () => refusal(404, "hostname: no website"),
  });
  await shown.findByText(new RegExp(HOSTNAME));
});

test("bars are of all days between, and of several where there are many", () => {
  assert.deepEqual(barsOf(ROWS.day ?? []), [
    { date: "2026-03-01", requests: 7 },
    { date: "2026-03-02", requests: 0 },
    { date: "2026-03-03", requests: 3 },
  ]);
  assert.deepEqual(barsOf([]), []);
  const year = barsOf([row(1, { date: "2025-01-01" }), row(2, { date: "2025-12-31" })]);
  assert.equal(year.length, 92);
  assert.equal(year[0]?.requests, 1);
  assert.equal(year.at(-1)?.requests, 2);
});

test("each language names each purpose differently", () => {
  for (const language of LANGUAGES) {
    const names = PURPOSES.map((purpose) => ROBOT_TEXTS[language][`purpose.${purpose}`]);
    assert.equal(new Set(names).size, PURPOSES.length);
  }
});
