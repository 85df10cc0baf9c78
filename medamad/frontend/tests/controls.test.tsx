// The controls for the period, the time zone and the comparison.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import { refreshes } from "../dashboard/state/data.ts";
import { Controls } from "../dashboard/view/controls.tsx";
import { showOnPage } from "./support/page.tsx";
import { plain } from "./support/text.ts";

const NOW = new Date("2025-03-12T15:20:30+01:00");
const THREE_DAYS = "?from=2025-03-10&to=2025-03-12&zone=UTC";

/** Show the controls at NOW. */
async function controls(query = "") {
  mock.timers.enable({ apis: ["Date"], now: NOW });
  const shown = showOnPage(<Controls />, query);
  await shown.findByRole("button", { name: /^Period: / });
  const button = (name: RegExp | string) => shown.getByRole<HTMLButtonElement>("button", { name });
  return { ...shown, button };
}

for (const [label, key, query] of [
  ["Today", "t", "?period=today"],
  ["Yesterday", "y", "?period=yesterday"],
  ["Last 24 hours", "d", "?period=24h"],
  ["Last 7 days", "w", "?period=7d"],
  ["Last 30 days", "m", ""],
  ["Last 90 days", "q", "?period=90d"],
  ["Last 6 months", "h", "?period=6mo"],
  ["Last 12 months", "x", "?period=12mo"],
  ["All time", "a", "?period=all"],
  ["Last 14 days", "2 w", "?period=14d"],
  ["Last 28 days", "4 w", "?period=28d"],
  ["This week", "⇧W", "?period=week"],
  ["Last week", "p w", "?period=last-week"],
  ["This month", "⇧M", "?period=month"],
  ["Last month", "p m", "?period=last-month"],
  ["This quarter", "⇧Q", "?period=quarter"],
  ["Last quarter", "p q", "?period=last-quarter"],
  ["This year", "⇧Y", "?period=year"],
  ["Last year", "p y", "?period=last-year"],
  ["Year to date", "j", "?period=ytd"],
] as const) {
  test(`a period is chosen: ${label}`, async () => {
    const { person, button, getByRole } = await controls(`${THREE_DAYS}&interval=hour`);
    await person.click(button(/^Period: /));
    const choice = getByRole("menuitemradio", { name: new RegExp(`^${label}`) });
    assert.equal(choice.querySelector("kbd")?.textContent, key);
    await person.click(choice);
    // The interval of the period before need not fit this one.
    const zone = query ? "&zone=UTC" : "?zone=UTC";
    assert.equal(location.search, query + zone);
    assert.equal(plain(button(/^Period: /).textContent), `Period: ${label}`);
    await person.keyboard("r");
    await waitFor(() => getByRole("dialog", { name: "Custom range" }));
  });

  test(`a key chooses a period: ${label}`, async () => {
    const { person } = await controls(`${THREE_DAYS}&interval=hour&compare=none`);
    await person.keyboard(key.replace(/[⇧ ]/g, ""));
    const others = `${query ? "&" : "?"}zone=UTC&compare=none`;
    assert.equal(location.search, query + others);
  });
}

test("the days of a range are its label", async () => {
  const { button } = await controls(THREE_DAYS);
  assert.equal(plain(button(/^Period: /).textContent), "Period: Mar 10-12, 2025");
});

test("arrows lead to the periods before and after", async () => {
  const { person, button } = await controls("?from=2025-03-07&to=2025-03-09");
  await person.click(button("Earlier"));
  assert.equal(location.search, "?from=2025-03-04&to=2025-03-06");
  await person.click(button("Later"));
  await person.click(button("Later"));
  assert.equal(location.search, "?from=2025-03-10&to=2025-03-12");
  assert.equal(button("Later").disabled, true);
});

test("steps stop at now and use the names of periods", async () => {
  const { person, button } = await controls("?period=today");
  const steps: string[] = [];
  assert.equal(button("Later").disabled, true);
  for (const key of ["ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowRight", "ArrowRight"]) {
    await person.keyboard(`{${key}}`);
    steps.push(location.search);
  }
  assert.deepEqual(steps, [
    "?period=yesterday",
    "?from=2025-03-10&to=2025-03-10",
    "?period=yesterday",
    "?period=today",
    "?period=today",
  ]);
});

test("all time has nothing before it, and nothing to be compared with", async () => {
  const { person, button, queryByRole } = await controls("?period=all");
  assert.deepEqual(
    ["Earlier", "Later", /^Compare: /].map((name) => button(name).disabled),
    [true, true, true],
  );
  await person.keyboard("vr");
  assert.equal(queryByRole("dialog"), null);
});

test("a key switches the comparison off and on", async () => {
  const { person, button } = await controls("?period=7d");
  assert.equal(plain(button(/^Compare: /).textContent), "Compare: ComparePrevious period");
  await person.keyboard("c");
  assert.equal(location.search, "?period=7d&compare=none");
  assert.equal(plain(button(/^Compare: /).textContent), "Compare: CompareNo comparison");
  await person.keyboard("c");
  assert.equal(location.search, "?period=7d");
});

for (const [label, key, query] of [
  ["Previous period", "v p", ""],
  ["Same period a year earlier", "v y", "compare=year"],
  ["No comparison", "v n", "compare=none"],
] as const) {
  test(`a comparison is chosen: ${label}`, async () => {
    const { person, button, getByRole } = await controls("?period=7d&compare=year");
    await person.click(button(/^Compare: /));
    const choice = getByRole("menuitemradio", { name: new RegExp(`^${label}`) });
    assert.equal(choice.getAttribute("aria-checked"), String(query === "compare=year"));
    assert.equal(choice.querySelector("kbd")?.textContent, key);
    await person.click(choice);
    const address = ["?period=7d", query].filter(Boolean).join("&");
    assert.equal(location.search, address);
    await person.keyboard("c");
    await person.keyboard(key.replace(" ", ""));
    assert.equal(location.search, address);
  });
}

test("weekdays match or not, as is chosen in the menu and by a key", async () => {
  const { person, button, getByRole, queryByRole } = await controls("?period=month");
  const option = async () => {
    await person.click(button(/^Compare: /));
    return getByRole("menuitemcheckbox", { name: /^Match days of the week/ });
  };
  const unchosen = await option();
  assert.equal(unchosen.getAttribute("aria-checked"), "false");
  await person.click(unchosen);
  assert.equal(location.search, "?period=month&weekdays=true");
  assert.equal((await option()).getAttribute("aria-checked"), "true");
  await person.keyboard("{Escape}");
  await person.keyboard("vw");
  assert.equal(location.search, "?period=month");
  // The last 30 days match by default.
  await person.keyboard("m");
  await person.keyboard("vw");
  assert.equal(location.search, "?weekdays=false");
  await person.keyboard("vn");
  await person.click(button(/^Compare: /));
  assert.equal(queryByRole("menuitemcheckbox"), null);
});

test("a range to compare with is chosen, for this period alone", async () => {
  const { person, button, findByRole, getByRole, getByLabelText } = await controls(
    "?period=7d&weekdays=false",
  );
  await person.click(button(/^Compare: /));
  await person.click(getByRole("menuitemradio", { name: /^Custom comparison/ }));
  const dialog = await findByRole("dialog", { name: "Custom comparison" });
  // What is compared with now is offered.
  const [from, to] = ["Start date", "End date"].map((label) =>
    getByLabelText<HTMLInputElement>(label),
  ) as [HTMLInputElement, HTMLInputElement];
  assert.deepEqual([from.value, to.value], ["2025-02-27", "2025-03-05"]);
  for (const [field, day] of [
    [from, "2025-01-01"],
    [to, "2025-01-07"],
  ] as const) {
    field.value = day;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((wake) => setTimeout(wake));
  }
  await person.click(within(dialog).getByRole("button", { name: "Compare" }));
  assert.equal(location.search, "?period=7d&compare=2025-01-01..2025-01-07");
  assert.match(button(/^Compare: /).textContent ?? "", /Custom comparison$/);
  await person.keyboard("{ArrowLeft}");
  assert.equal(location.search, "?from=2025-02-27&to=2025-03-05");
});

for (const [query, shown] of [
  ["", "Time zone: Europe/Berlin"],
  ["?zone=America/New_York", "Time zone: America/New York"],
  ["?zone=Nowhere/Atlantis", "Time zone: Europe/Berlin"],
] as const) {
  test(`the zone is named: ${query || "the browser's"}`, async () => {
    const { button } = await controls(query);
    assert.equal(plain(button(/^Time zone: /).textContent), shown);
  });
}

test("a key refreshes", async () => {
  const { person } = await controls();
  const before = refreshes.value;
  await person.keyboard(".");
  assert.equal(refreshes.value, before + 1);
});

// The dialog for the zone.

async function zones(query = "") {
  const shown = await controls(query);
  await shown.person.keyboard("z");
  const dialog = await shown.findByRole("dialog", { name: "Time zone" });
  return { ...shown, dialog, field: shown.getByLabelText<HTMLInputElement>("Show times in") };
}

for (const [typed, zone] of [
  ["tokyo", "Asia/Tokyo"],
  ["New York", "America/New_York"],
  [" America/New_York ", "America/New_York"],
  ["UTC", "UTC"],
] as const) {
  test(`a zone is found by its name or city: ${typed}`, async () => {
    const { person, field, queryByRole } = await zones("?period=7d");
    await person.clear(field);
    await person.type(field, `${typed}{Enter}`);
    assert.equal(location.search, `?period=7d&zone=${zone}`);
    assert.equal(queryByRole("dialog"), null);
  });
}

test("there may be no zone with a name", async () => {
  const { person, field, button, getByRole } = await zones();
  assert.equal(field.value, "Europe/Berlin");
  assert.equal(plain(getByRole("status").textContent), "Europe/Berlin: Mar 12, 2025, 3:20 PM");
  await person.clear(field);
  await person.type(field, "Nowhere/Atlantis");
  assert.equal(getByRole("status").textContent, "There’s no time zone with this name.");
  assert.equal(button("Use this time zone").disabled, true);
  await person.clear(field);
  await person.type(field, "America/New_York");
  assert.equal(plain(getByRole("status").textContent), "America/New York: Mar 12, 2025, 10:20 AM");
  await person.click(button("Use this time zone"));
  assert.equal(location.search, "?zone=America/New_York");
});

test("the browser's zone is not in the address", async () => {
  const { person, button } = await zones("?zone=UTC");
  await person.click(button("Browser’s time zone: Europe/Berlin"));
  assert.equal(location.search, "");
});

// The dialog for a range of days.

async function days(query = "") {
  const shown = await controls(query);
  await shown.person.keyboard("r");
  await shown.findByRole("dialog", { name: "Custom range" });
  const [from, to] = ["Start date", "End date"].map((label) =>
    shown.getByLabelText<HTMLInputElement>(label),
  ) as [HTMLInputElement, HTMLInputElement];
  const type = async (field: HTMLInputElement, day: string) => {
    field.value = day;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((wake) => setTimeout(wake));
  };
  return { ...shown, from, to, type };
}

for (const [query, from, to] of [
  [THREE_DAYS, "2025-03-10", "2025-03-12"],
  ["?period=7d", "2025-03-06", "2025-03-12"],
  ["?period=yesterday", "2025-03-11", "2025-03-11"],
  // Of what is to come, nothing can be chosen.
  ["?from=2025-03-10&to=2025-03-20", "2025-03-10", "2025-03-12"],
  ["?period=all", "2025-03-12", "2025-03-12"],
] as const) {
  test(`the days that are shown are offered: ${query}`, async () => {
    const shown = await days(query);
    assert.deepEqual([shown.from.value, shown.to.value], [from, to]);
    assert.deepEqual([shown.from.max, shown.to.max], ["2025-03-12", "2025-03-12"]);
  });
}

test("days are typed", async () => {
  const { person, from, to, type, getByRole, queryByRole, button } = await days(THREE_DAYS);
  await type(from, "2025-03-13");
  assert.equal(getByRole("alert").textContent, "The end date is before the start date.");
  await person.click(button("Show this range"));
  assert.equal(location.search, THREE_DAYS);
  assert.ok(queryByRole("dialog"));
  await type(from, "2025-03-07");
  await type(to, "2025-03-08");
  assert.equal(getByRole("alert").textContent, "");
  await person.click(button("Show this range"));
  assert.equal(location.search, "?from=2025-03-07&to=2025-03-08&zone=UTC");
  assert.equal(queryByRole("dialog"), null);
});

test("days that have a name are chosen by it", async () => {
  const { person, from, to, type, button } = await days();
  await type(from, "2025-03-11");
  await type(to, "2025-03-11");
  await person.click(button("Show this range"));
  assert.equal(location.search, "?period=yesterday");
});
