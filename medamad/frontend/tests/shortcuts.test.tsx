// The keyboard shortcuts of a website's page.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { waitFor } from "@testing-library/dom";
import { createRef } from "preact";
import { AddFilter } from "../dashboard/filters/filter-bar.tsx";
import { Shell } from "../dashboard/shell.tsx";
import { refreshes } from "../dashboard/state/data.ts";
import { Controls } from "../dashboard/view/controls.tsx";
import { SiteHead } from "../dashboard/view/site-head.tsx";
import { WebsitesPage } from "../dashboard/websites/list.tsx";
import { HOSTNAME, show, showOnPage } from "./support/page.tsx";

/** Show what of a website's page has shortcuts. */
function page(query = "") {
  mock.timers.enable({ apis: ["Date"], now: new Date("2025-03-12T15:20:30+01:00") });
  return showOnPage(
    <Shell>
      <SiteHead live={undefined} showLive={() => undefined} />
      <Controls />
      <AddFilter button={createRef()} />
    </Shell>,
    query,
    {
      websites: [{ hostname: "other.example" }, { hostname: HOSTNAME }],
      pages: [],
    },
  );
}

const LISTED = {
  "?": "Show this list",
  "g w": "Go to websites",
  "g s": "Go to settings",
  s: "Switch website",
  l: "Live: last 30 minutes",
  t: "Today",
  y: "Yesterday",
  d: "Last 24 hours",
  w: "Last 7 days",
  m: "Last 30 days",
  q: "Last 90 days",
  h: "Last 6 months",
  x: "Last 12 months",
  "2 w": "Last 14 days",
  "4 w": "Last 28 days",
  "⇧W": "This week",
  "p w": "Last week",
  "⇧M": "This month",
  "p m": "Last month",
  "⇧Q": "This quarter",
  "p q": "Last quarter",
  "⇧Y": "This year",
  "p y": "Last year",
  j: "Year to date",
  a: "All time",
  r: "Custom range",
  "←": "Previous period",
  "→": "Next period",
  c: "Turn the comparison on or off",
  "v p": "Compare: Previous period",
  "v y": "Compare: Same period a year earlier",
  "v r": "Compare: Custom comparison",
  "v n": "Compare: No comparison",
  "v w": "Compare: Match days of the week",
  z: "Time zone",
  ".": "Refresh statistics",
  f: "Add filter",
};

test("all keys of a page are listed", async () => {
  const { person, findByRole } = page();
  await findByRole("heading", { level: 1 });
  await person.keyboard("?");
  const dialog = await findByRole("dialog", { name: "Keyboard shortcuts" });
  const listed = [...dialog.querySelectorAll(".keys-row")].map((row) => [
    [...row.querySelectorAll("kbd")].map(({ textContent }) => textContent).join(" "),
    row.querySelector("dd")?.textContent,
  ]);
  assert.deepEqual(Object.fromEntries(listed), LISTED);
});

for (const [keys, address] of [
  ["gw", "/dashboard/"],
  ["gs", "/dashboard/settings"],
  ["y", "/dashboard/websites/past.example?period=yesterday"],
  // A key that begins no sequence, after one that does.
  ["gy", "/dashboard/websites/past.example?period=yesterday"],
  ["c", "/dashboard/websites/past.example?compare=none"],
  ["{ArrowLeft}", "/dashboard/websites/past.example?from=2025-01-12&to=2025-02-10"],
  ["{ArrowLeft}{ArrowRight}", "/dashboard/websites/past.example"],
  ["pw", "/dashboard/websites/past.example?period=last-week"],
  // What ended one sequence begins no other.
  ["vpw", "/dashboard/websites/past.example?period=7d"],
  // Those of the browser are its own.
  ["{Control>}y{/Control}{Meta>}t{/Meta}{Alt>}c{/Alt}", "/dashboard/websites/past.example"],
] as const) {
  test(`keys lead to an address: ${keys}`, async () => {
    const { person, findByRole } = page();
    await findByRole("heading", { level: 1 });
    await person.keyboard(keys);
    assert.equal(location.pathname + location.search, address);
  });
}

for (const [key, name] of [
  ["?", "Keyboard shortcuts"],
  ["r", "Custom range"],
  ["z", "Time zone"],
  ["f", "Add filter"],
] as const) {
  test(`a key opens a dialog, where keys do nothing else: ${key}`, async () => {
    const { person, findByRole, getByRole, queryByRole } = page();
    await findByRole("heading", { level: 1 });
    await person.keyboard(key);
    await findByRole("dialog", { name });
    await person.keyboard("y");
    assert.equal(location.search, "");
    await person.click(getByRole("button", { name: "Close" }));
    assert.equal(queryByRole("dialog"), null);
    await person.keyboard("y");
    assert.equal(location.search, "?period=yesterday");
  });
}

test("a key opens the menu of websites", async () => {
  const { person, findByRole, queryByRole } = page();
  await findByRole("heading", { level: 1 });
  await person.keyboard("s");
  const chosen = await findByRole("menuitemradio", { checked: true });
  assert.equal(chosen.textContent, HOSTNAME);
  assert.equal(document.activeElement, chosen);
  await person.keyboard("{Escape}");
  assert.equal(queryByRole("menu"), null);
});

test("a key refreshes", async () => {
  const { person, findByRole, asked } = page();
  await findByRole("heading", { level: 1 });
  const before = refreshes.value;
  await person.keyboard(".");
  assert.equal(refreshes.value, before + 1);
  await waitFor(() => assert.equal(asked.filter(({ path }) => path === "websites").length, 2));
});

test("keys are letters in a text field", async () => {
  const { person, findByRole, findByLabelText } = page();
  await findByRole("heading", { level: 1 });
  await person.keyboard("f");
  const value = await findByLabelText<HTMLInputElement>("Value");
  value.focus();
  await person.keyboard("ty?");
  assert.equal(value.value, "ty?");
  assert.equal(location.search, "");
});

test("keys work as soon as a page is shown", async () => {
  const pressed = new Promise<void>((done) => {
    const observer = new MutationObserver(() => {
      if (!document.querySelector(".controls")) return;
      observer.disconnect();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "c", bubbles: true }));
      done();
    });
    observer.observe(document.body, { childList: true, subtree: true });
  });
  page();
  await pressed;
  assert.equal(location.search, "?compare=none");
});

test("a key adds a website", async () => {
  const { person, findByRole } = show(
    <Shell>
      <WebsitesPage />
    </Shell>,
    "",
    { websites: [], "user/usage": { service: { demo: false } } },
  );
  await findByRole("link", { name: "Add website" });
  await person.keyboard("?");
  const dialog = await findByRole("dialog");
  const row = [...dialog.querySelectorAll(".keys-row")].find(
    (row) => row.querySelector("dd")?.textContent === "Add website",
  );
  assert.equal(row?.querySelector("kbd")?.textContent, "n");
  await person.click(await findByRole("button", { name: "Close" }));
  await person.keyboard("n");
  assert.equal(location.pathname, "/dashboard/add");
});

test("keys are letters in a search", async () => {
  const websites = Array.from({ length: 9 }, (_one, place) => ({ hostname: `${place}.example` }));
  const { person, findByRole } = show(
    <Shell>
      <WebsitesPage />
    </Shell>,
    "",
    { websites, "user/usage": { service: { demo: false } } },
  );
  await findByRole("link", { name: "Add website" });
  const search = await findByRole<HTMLInputElement>("searchbox");
  await person.type(search, "n?");
  assert.equal(search.value, "n?");
  assert.equal(location.pathname, "/dashboard/");
});
