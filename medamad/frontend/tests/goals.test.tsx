// Goals and funnels: their figures, dialogs and page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import { createRef } from "preact";
import { Route, Router } from "preact-iso";
import type { FunnelFigures, Goal, GoalFigures } from "../dashboard/api/types.ts";
import { FilterBar } from "../dashboard/filters/filter-bar.tsx";
import { FunnelPage } from "../dashboard/goals/funnel-page.tsx";
import { Details } from "../dashboard/panels/details.tsx";
import { GoalsPanel } from "../dashboard/panels/goals.tsx";
import { LISTINGS } from "../dashboard/panels/lists.ts";
import { Rows } from "../dashboard/panels/rows.tsx";
import { NoSuchPage } from "../dashboard/ui/no-such-page.tsx";
import {
  type Answers,
  type Asked,
  HOSTNAME,
  held,
  refusal,
  type Shown,
  show,
  showOnPage,
} from "./support/page.tsx";

const VALUE = "With this value (leave empty for any)";
const WEEK = "?period=7d&compare=none";
const GOALS_PATH = `websites/${HOSTNAME}/goals`;
const FUNNELS_PATH = `websites/${HOSTNAME}/funnels`;

const ORDER: GoalFigures = {
  id: "g1",
  name: "Order",
  conversions: 1,
  visits: 1,
  visits_percentage: 0.5,
  revenue: { sum: "12.50", currency: "EUR" },
};
const HOME: GoalFigures = {
  id: "g2",
  name: "Home",
  conversions: 2,
  visits: 2,
  visits_percentage: 1,
};
const DEFINED: Goal[] = [
  { id: "g1", name: "Order", path: "/thanks", revenue: "total", currency: "EUR" },
  { id: "g2", name: "Home", path: "/" },
];
const FUNNEL = { id: "f1", name: "Purchase", goals: ["g2", "g1"] };
const STEPS: FunnelFigures["steps"] = [
  { goal: "g2", name: "Home", visits: 4, visits_percentage: 1 },
  { goal: "g1", name: "Order", visits: 1, visits_percentage: 0.25 },
];

/** What a preview is of. */
function definitionIn({ query }: Asked) {
  return JSON.parse(query.get("definition") ?? "");
}

const ANSWERS: Answers = {
  goals: [ORDER, HOME],
  [GOALS_PATH]: DEFINED,
  [FUNNELS_PATH]: [FUNNEL],
  "funnels/f1": { ...FUNNEL, steps: STEPS },
  "goals/preview": (asked) => {
    const { path, revenue, currency } = definitionIn(asked);
    const reached = path === "/thanks" ? 1 : 0;
    return {
      conversions: reached,
      visits: reached,
      visits_percentage: reached / 2,
      ...(revenue && currency && { revenue: { sum: 12.5, currency } }),
    };
  },
  "funnels/preview": (asked) => ({
    steps: definitionIn(asked).goals.map((goal: string, place: number) => ({
      goal,
      visits: 2 - place,
      visits_percentage: 1 - place / 2,
    })),
  }),
  pages: ({ query }: Asked) =>
    ["/", "/thanks"]
      .filter((path) => path.includes(query.get("path[contains]") ?? ""))
      .map((path) => ({ path, visitors: 1 })),
  properties: [{ name: "total", events: 1 }],
  "user/usage": { service: { demo: false } },
};

function showPanel(answers: Answers = {}, query = WEEK): Shown {
  return showOnPage(<GoalsPanel />, query, { ...ANSWERS, ...answers });
}

/** The rows below an element: names and figures. */
function rowsIn(place: HTMLElement): string[] {
  return [...place.querySelectorAll("tbody tr")].map((row) =>
    [row.querySelector("bdi"), ...row.querySelectorAll("td")]
      .map((cell) => cell?.textContent)
      .join(" ")
      .trim(),
  );
}

/** Open a dialog by a button, and wait for its form. */
async function open(shown: Shown, button: string) {
  await shown.person.click(await shown.findByRole("button", { name: button }));
  const element = await shown.findByRole("dialog");
  const dialog = within(element);
  await dialog.findByRole("button", { name: "Save" });
  return {
    ...dialog,
    element,
    previewed: () => [...element.querySelectorAll(".preview dd")].map((one) => one.textContent),
    save: () => dialog.getByRole<HTMLButtonElement>("button", { name: "Save" }),
    types: async (label: string | RegExp, text: string) => {
      const field = dialog.getByLabelText<HTMLInputElement>(label);
      await shown.person.clear(field);
      if (text) await shown.person.type(field, text);
      return field;
    },
  };
}

/** What was changed, as methods, paths and bodies. */
function changesIn({ asked }: Shown) {
  return asked
    .filter(({ method }) => method !== "GET")
    .map(({ method, path, body }) => [method, path, body]);
}

test("goals have conversions, a rate and revenue", async () => {
  const { root, findByRole, getByRole } = showPanel();
  await findByRole("button", { name: "Order", pressed: false });
  assert.deepEqual(rowsIn(root), ["Order 1 50% €12.50", "Home 2 100%"]);
  assert.ok(getByRole("columnheader", { name: "Revenue" }));
});

test("goals are compared with the period before", async () => {
  const { root } = showPanel(
    {
      goals: ({ query }) =>
        query.get("start")?.startsWith("2025-03-12")
          ? [ORDER, HOME]
          : [
              { ...ORDER, conversions: 2 },
              { ...HOME, conversions: 0 },
            ],
    },
    "?from=2025-03-12&to=2025-03-12&zone=UTC",
  );
  await waitFor(() =>
    assert.deepEqual(
      [...root.querySelectorAll(".change")].map(({ textContent }) => textContent),
      ["▼50%50% less than in the comparison period"],
    ),
  );
});

test("without goals, the panel says what they are", async () => {
  const { findByText, getByRole } = showPanel({ goals: [] });
  await findByText("No goals yet");
  assert.ok(getByRole("button", { name: "New goal" }));
});

test("a goal is a filter", async () => {
  const shown = showOnPage(
    <>
      <FilterBar button={createRef()} />
      <GoalsPanel />
    </>,
    WEEK,
    ANSWERS,
  );
  const { person, findByRole } = shown;
  await person.click(await findByRole("button", { name: "Order", pressed: false }));
  assert.equal(location.search, `${WEEK}&goal[eq]=g1`);
  assert.ok(await findByRole("button", { name: "Remove: Goal is Order" }));
  // Whether it was reached is all that can be asked of it.
  assert.ok((await findByRole<HTMLButtonElement>("button", { name: "Goal is Order" })).disabled);
  await person.click(await findByRole("button", { name: "Order", pressed: true }));
  assert.equal(location.search, WEEK);
});

const CONVERTED = {
  pages: [{ path: "/", visitors: 2, conversions: 1, conversion_percentage: 0.5 }],
};

test("under a filter on a goal, only that one has a rate", async () => {
  const shown = showPanel({}, `${WEEK}&compare=none&goal[eq]=g1`);
  await shown.findByRole("button", { name: "Order" });
  const rates = [...shown.root.querySelectorAll("tbody tr")].map((row) => [
    row.querySelector("bdi")?.textContent,
    row.querySelectorAll("td")[1]?.textContent,
  ]);
  assert.deepEqual(
    rates.filter(([, rate]) => rate !== "–").map(([name]) => name),
    ["Order"],
  );
});

test("under a goal, rows have conversions", async () => {
  const shown = showOnPage(<Rows listing={LISTINGS.pages} />, "?goal[eq]=g1", CONVERTED);
  await shown.findByRole("table");
  assert.deepEqual(
    shown.getAllByRole("columnheader").map(({ textContent }) => textContent),
    ["Page", "Visitors", "Conversions", "Rate"],
  );
  assert.deepEqual(rowsIn(shown.root), ["/ 2 1 50%"]);
  assert.equal(shown.asked[0]?.query.get("conversions"), "g1");
});

test("under a goal, full lists have conversions", async () => {
  const list = <Details listing={LISTINGS.pages} further={{}} onClose={() => {}} />;
  const shown = showOnPage(list, "?goal[eq]=g1", CONVERTED);
  await shown.findByRole("table");
  const last = [...shown.root.querySelectorAll("tr")].map(
    ({ lastChild }) => lastChild?.textContent,
  );
  assert.deepEqual(last, ["Conversion rate", "50%"]);
  assert.equal(shown.asked[0]?.query.get("conversions"), "g1");
});

test("a goal of a page is previewed and made", async () => {
  const shown = showPanel({ [GOALS_PATH]: ({ method }) => (method === "GET" ? [] : DEFINED[0]) });
  const { person } = shown;
  const dialog = await open(shown, "New goal");
  assert.ok(dialog.getByRole("heading", { name: "New goal" }));
  assert.deepEqual(dialog.previewed(), ["–", "–"]);
  assert.ok(dialog.save().disabled);
  await dialog.types("Page", "/thanks");
  await waitFor(() => assert.deepEqual(dialog.previewed(), ["1", "1 (50%)"]));
  await dialog.types("Page", "");
  assert.deepEqual(dialog.previewed(), ["–", "–"]);
  const page = await dialog.types("Page", "/th");
  await waitFor(() => assert.deepEqual(dialog.previewed(), ["0", "0 (0%)"]));
  await person.type(page, "{ArrowDown}{Enter}");
  assert.equal(page.value, "/thanks");
  await waitFor(() => assert.deepEqual(dialog.previewed(), ["1", "1 (50%)"]));
  await dialog.types("Revenue property (optional)", "total");
  // An amount without its currency is not complete yet.
  assert.deepEqual(dialog.previewed(), ["1", "1 (50%)", "–"]);
  await dialog.types("Currency (ISO 4217)", "eur");
  await waitFor(() => assert.deepEqual(dialog.previewed(), ["1", "1 (50%)", "€12.50"]));
  await person.click(dialog.save());
  await waitFor(() => assert.ok(!shown.queryByRole("dialog")));
  const made = { path: "/thanks", event: null, value: null, revenue: "total", currency: "EUR" };
  assert.deepEqual(changesIn(shown), [["POST", GOALS_PATH, { ...made, name: "/thanks" }]]);
  // The figures on the page are read again.
  assert.ok(shown.asked.slice(-4).some(({ path }) => path === `website/${HOSTNAME}/goals`));
});

test("a goal of an event is made, under a name that is free", async () => {
  let names = 0;
  const shown = showPanel({
    [GOALS_PATH]: ({ method }) => {
      if (method === "GET") return DEFINED;
      names += 1;
      return names === 1 ? refusal(409, "name: known") : ORDER;
    },
  });
  const dialog = await open(shown, "New goal");
  await shown.person.selectOptions(dialog.getByLabelText("Reached when"), "an event happens");
  await shown.person.click(await dialog.findByRole("option", { name: "total 1" }));
  await shown.person.click(dialog.save());
  await waitFor(() =>
    assert.match(dialog.getByRole("alert").textContent ?? "", /^This name is already taken/),
  );
  await dialog.types("Name", "Paid");
  assert.equal(dialog.getByRole("alert").textContent, "");
  await dialog.types(VALUE, "2");
  await shown.person.click(dialog.save());
  await waitFor(() => assert.ok(!shown.queryByRole("dialog")));
  const made = { path: null, event: "total", revenue: null, currency: null };
  assert.deepEqual(changesIn(shown), [
    ["POST", GOALS_PATH, { ...made, value: null, name: "total" }],
    ["POST", GOALS_PATH, { ...made, value: "2", name: "Paid" }],
  ]);
});

test("the values of an event and the property with its amount are suggested", async () => {
  const shown = showPanel({
    properties: ({ query }) =>
      query.get("prop_name[eq]") === "event"
        ? [
            { name: "event", value: "order", events: 2, events_percentage: 0.5 },
            { name: "event", value: "signup", events: 1, events_percentage: 0.25 },
          ]
        : [
            { name: "event", events: 3, events_percentage: 0.75 },
            { name: "total", events: 2, events_percentage: 0.5 },
          ],
  });
  const dialog = await open(shown, "New goal");
  await shown.person.selectOptions(dialog.getByLabelText("Reached when"), "an event happens");
  const offered = (label: string) =>
    texts(dialog.getByLabelText(label).parentElement as HTMLElement, "datalist option");
  assert.deepEqual(offered(VALUE), []);
  await shown.person.click(await dialog.findByRole("option", { name: "event 3" }));
  await waitFor(() => assert.deepEqual(offered(VALUE), ["order", "signup"]));
  assert.deepEqual(offered("Revenue property (optional)"), ["event", "total"]);
  await dialog.types(VALUE, "order");
  assert.equal(dialog.getByLabelText<HTMLInputElement>("Name").placeholder, "order");
});

test("an asterisk in a path that exists is written as such", async () => {
  const shown = showPanel({ pages: [{ path: "/*", visitors: 1 }] });
  const dialog = await open(shown, "New goal");
  await shown.person.click(await dialog.findByRole("option", { name: "/* 1" }));
  assert.equal(dialog.getByLabelText<HTMLInputElement>("Page").value, "/%2A");
});

test("a preview that is refused has no figures, and one of before is faded", async () => {
  const late = held({ conversions: 1, visits: 1, visits_percentage: 0.5 });
  const shown = showPanel({
    "goals/preview": (asked) => {
      const { path } = definitionIn(asked);
      if (path === "thanks") return refusal(400, "path: must begin with a slash");
      if (path === "/t*") return late.wait();
      return { conversions: 7, visits: 7, visits_percentage: 1 };
    },
  });
  const dialog = await open(shown, "New goal");
  await dialog.types("Page", "/thanks");
  await waitFor(() => assert.deepEqual(dialog.previewed(), ["7", "7 (100%)"]));
  await dialog.types("Page", "thanks");
  await waitFor(() => assert.deepEqual(dialog.previewed(), ["–", "–"]));
  await shown.person.clear(dialog.getByLabelText("Page"));
  assert.deepEqual(dialog.previewed(), ["–", "–"]);
  assert.equal(dialog.element.querySelector(".preview .stale"), null);
  await dialog.types("Page", "/");
  await waitFor(() => assert.deepEqual(dialog.previewed(), ["7", "7 (100%)"]));
  await dialog.types("Page", "/t*");
  assert.ok(dialog.element.querySelector(".preview .stale"));
  const isAsked = ({ query }: Asked) => query.get("definition")?.includes('"/t*"');
  await waitFor(() => assert.ok(shown.asked.some(isAsked)));
  assert.ok(dialog.element.querySelector(".preview .stale"));
  late.letGo();
  await waitFor(() => assert.ok(!dialog.element.querySelector(".preview .stale")));
  assert.deepEqual(dialog.previewed(), ["1", "1 (50%)"]);
});

test("a goal is renamed", async () => {
  const shown = showPanel({ [`${GOALS_PATH}/g1`]: {} });
  const dialog = await open(shown, "Edit: Order");
  assert.equal(dialog.getByLabelText<HTMLInputElement>("Page").value, "/thanks");
  await dialog.types("Name", "Sale");
  await shown.person.click(dialog.save());
  await waitFor(() => assert.ok(!shown.queryByRole("dialog")));
  const [[method, path, body] = []] = changesIn(shown);
  assert.deepEqual([method, path], ["PATCH", `${GOALS_PATH}/g1`]);
  assert.equal((body as Goal).name, "Sale");
});

test("a goal is deleted by a second press", async () => {
  const shown = showPanel({ [`${GOALS_PATH}/g1`]: null });
  const dialog = await open(shown, "Edit: Order");
  await shown.person.click(dialog.getByRole("button", { name: "Delete" }));
  assert.deepEqual(changesIn(shown), []);
  await shown.person.click(dialog.getByRole("button", { name: "Press again to delete" }));
  await waitFor(() => assert.ok(!shown.queryByRole("dialog")));
  assert.deepEqual(changesIn(shown), [["DELETE", `${GOALS_PATH}/g1`, undefined]]);
});

test("a demonstration cannot be changed", async () => {
  const shown = showPanel({ "user/usage": { service: { demo: true } } });
  const dialog = await open(shown, "Edit: Order");
  await waitFor(() => assert.ok(dialog.save().disabled));
  assert.ok(dialog.getByRole<HTMLButtonElement>("button", { name: "Delete" }).disabled);
});

/** Show the tab of funnels. */
async function showFunnels(answers: Answers = {}): Promise<Shown> {
  const shown = showPanel(answers);
  await shown.person.click(shown.getByRole("tab", { name: "Funnels" }));
  return shown;
}

test("a funnel shows its steps, and links to its page", async () => {
  const shown = await showFunnels();
  const funnel = await shown.findByRole("region", { name: "Purchase" });
  await within(funnel).findByRole("table");
  assert.deepEqual(rowsIn(funnel), ["Home 4 100%", "Order 1 25% 3 (75%)"]);
  assert.equal(
    within(funnel).getByRole("link", { name: "Purchase" }).getAttribute("href"),
    `/dashboard/websites/${HOSTNAME}/funnels/f1${WEEK}`,
  );
});

test("without funnels, the panel says what they are", async () => {
  const shown = await showFunnels({ [FUNNELS_PATH]: [] });
  await shown.findByText("No funnels yet");
});

test("a funnel needs two goals", async () => {
  const shown = await showFunnels({ [GOALS_PATH]: DEFINED.slice(1) });
  const dialog = await open(shown, "New funnel");
  assert.ok(dialog.getByText("A funnel needs two goals or more. Add goals first."));
});

test("the steps of a funnel are added, moved and removed, and the focus stays", async () => {
  const shown = await showFunnels({
    [FUNNELS_PATH]: ({ method }) => (method === "GET" ? [] : FUNNEL),
  });
  const { person } = shown;
  const dialog = await open(shown, "New funnel");
  const adding = () => dialog.getByLabelText("Add a step");
  const steps = () =>
    [...dialog.element.querySelectorAll(".funnel-goals li")].map((step) =>
      [step.querySelector("bdi"), step.querySelector(".soft")]
        .map((part) => part?.textContent ?? "")
        .join(" ")
        .trim(),
    );
  const press = async (name: string) => {
    dialog.getByRole("button", { name }).focus();
    await person.keyboard("{Enter}");
  };
  await dialog.types("Name", "Purchase");
  await person.selectOptions(adding(), "Home");
  assert.deepEqual(steps(), ["Home"]);
  assert.ok(dialog.save().disabled);
  await person.selectOptions(adding(), "Order");
  await waitFor(() => assert.deepEqual(steps(), ["Home 2 (100%)", "Order 1 (50%)"]));
  assert.ok(!dialog.queryByLabelText("Add a step"));
  await press("Move up: Order");
  assert.equal(document.activeElement, dialog.getByRole("button", { name: "Move up: Order" }));
  await waitFor(() => assert.deepEqual(steps(), ["Order 2 (100%)", "Home 1 (50%)"]));
  assert.equal(document.activeElement?.getAttribute("aria-disabled"), "true");
  await press("Move down: Order");
  await waitFor(() => assert.deepEqual(steps(), ["Home 2 (100%)", "Order 1 (50%)"]));
  await press("Remove Order");
  assert.equal(document.activeElement, adding());
  await person.selectOptions(adding(), "Order");
  await person.click(dialog.save());
  await waitFor(() => assert.ok(!shown.queryByRole("dialog")));
  assert.deepEqual(changesIn(shown), [
    ["POST", FUNNELS_PATH, { name: "Purchase", goals: ["g2", "g1"] }],
  ]);
});

function showFunnel(query = WEEK, answers: Answers = {}): Shown {
  return show(
    <Router>
      <Route path="/dashboard/websites/:hostname/funnels/:funnel" component={FunnelPage} />
      <Route default component={NoSuchPage} />
    </Router>,
    `websites/${HOSTNAME}/funnels/f1${query}`,
    { ...ANSWERS, [`${FUNNELS_PATH}/f1`]: {}, ...answers },
  );
}

function texts(root: HTMLElement, selector: string) {
  return [...root.querySelectorAll(selector)].map(
    (found) => (found as HTMLOptionElement).value || found.textContent,
  );
}

test("a funnel's page says how many went on from each step", async () => {
  const { root, findByRole, getByRole } = showFunnel();
  await findByRole("heading", { name: "Purchase" });
  await waitFor(() => assert.match(document.title, /^Purchase/));
  assert.equal(document.title, `Purchase · ${HOSTNAME} · medamad`);
  assert.deepEqual(texts(root, ".funnel-total"), ["1 of 4 visits reached the last step (25%)"]);
  assert.deepEqual(texts(root, ".funnel-line"), ["Home4100%", "Order125%"]);
  assert.deepEqual(texts(root, ".funnel-between"), ["1 went on (25%)3 dropped off (75%)"]);
  assert.equal(
    getByRole("link", { name: HOSTNAME }).getAttribute("href"),
    `/dashboard/websites/${HOSTNAME}${WEEK}`,
  );
});

test("a funnel without visits has no shares of them", async () => {
  const steps = STEPS.map((step) => ({ ...step, visits: 0, visits_percentage: 0 }));
  const { root, findByRole } = showFunnel(WEEK, { "funnels/f1": { ...FUNNEL, steps } });
  await findByRole("heading", { name: "Purchase" });
  assert.deepEqual(texts(root, ".funnel-line"), ["Home00%", "Order00%"]);
  assert.deepEqual(texts(root, ".funnel-between"), []);
});

test("a funnel has filters and a period, and stays on its page", async () => {
  const { asked, person, findByRole } = showFunnel(`${WEEK}&goal[eq]=g1`);
  await person.click(await findByRole("button", { name: "Remove: Goal is Order" }));
  assert.equal(location.pathname, `/dashboard/websites/${HOSTNAME}/funnels/f1`);
  assert.equal(location.search, WEEK);
  const figures = asked.filter(({ path }) => path.endsWith("funnels/f1"));
  assert.deepEqual(
    figures.map(({ query }) => query.get("goal[eq]")),
    ["g1", null],
  );
  await person.keyboard("{ArrowLeft}");
  assert.equal(location.pathname, `/dashboard/websites/${HOSTNAME}/funnels/f1`);
  assert.match(location.search, /^\?from=/);
});

test("a funnel is renamed on its page", async () => {
  const shown = showFunnel();
  const dialog = await open(shown, "Edit: Purchase");
  await dialog.types("Name", "Checkout");
  await shown.person.click(dialog.save());
  await waitFor(() => assert.ok(!shown.queryByRole("dialog")));
  assert.deepEqual(changesIn(shown), [
    ["PATCH", `${FUNNELS_PATH}/f1`, { name: "Checkout", goals: ["g2", "g1"] }],
  ]);
});

test("when a funnel is deleted on its page, that of the website follows", async () => {
  const shown = showFunnel(`${WEEK}&goal[eq]=g1`);
  const dialog = await open(shown, "Edit: Purchase");
  await shown.person.click(dialog.getByRole("button", { name: "Delete" }));
  await shown.person.click(dialog.getByRole("button", { name: "Press again to delete" }));
  await waitFor(() => assert.equal(location.pathname, `/dashboard/websites/${HOSTNAME}`));
  assert.equal(location.search, `${WEEK}&goal[eq]=g1`);
});

test("a funnel that is not there has no page", async () => {
  const { findByRole, getByRole } = showFunnel(WEEK, {
    "funnels/f1": refusal(404, "no such funnel"),
  });
  await findByRole("heading", { name: /^This page doesn/ });
  const back = getByRole("link", { name: HOSTNAME });
  assert.equal(back.getAttribute("href"), `/dashboard/websites/${HOSTNAME}`);
});
