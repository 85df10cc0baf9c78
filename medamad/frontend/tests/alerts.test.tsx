// The alerts of the server and of websites, in the settings.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import { DEMO, owner } from "./support/account.ts";
import { type Shown, showApp } from "./support/page.tsx";

const FIRED = Date.UTC(2026, 5, 1, 12) / 1000;
const QUIET = {
  id: "quiet",
  kind: "quiet",
  url: "https://hooks.example.com/",
  format: "json",
  secret: "5ec3e7",
  dateFired: FIRED,
  dateBegan: null,
  failure: null,
};
const ORDER = {
  ...QUIET,
  id: "order",
  kind: "goal",
  threshold: 5,
  goal: "paid",
  hours: 24,
  format: "slack",
  secret: undefined,
  dateBegan: FIRED,
  failure: "500 Internal Server Error",
};
const GOALS = [
  { id: "cart", name: "Cart", path: "/cart" },
  { id: "paid", name: "Order paid", path: "/thanks" },
];
const REPORTS = [
  { id: "asked", address: "bob@example.com", confirmed: false },
  { id: "wanted", address: "ada@example.com", confirmed: true },
];
const TRIAL = { text: "This is a test.", firing: false, failure: null };

function answers(others: Record<string, unknown> = {}) {
  return {
    "user/alerts": [],
    "user/reports": REPORTS,
    "websites/a.example/alerts": [QUIET, ORDER],
    "websites/a.example/goals": GOALS,
    ...others,
  };
}

/** What was changed: method, path and body of each request but the reading ones. */
function changes({ asked }: Shown) {
  return asked
    .filter(({ method }) => method !== "GET")
    .map(({ method, path, body }) => [method, path, body]);
}

async function ofWebsite(shown: Shown) {
  const of = await shown.findByLabelText("Website or server");
  await shown.person.selectOptions(of, "a.example");
  await shown.findByText("The website has gone quiet", { selector: "strong" });
}

test("alerts are listed in plain words, with when each last fired", async () => {
  const shown = showApp("settings/alerts", owner(["a.example"], answers()));
  assert.ok(await shown.findByText("No alerts yet."));
  await ofWebsite(shown);
  const [quiet, order] = shown
    .getAllByRole("listitem")
    .filter((item) => item.querySelector("strong"))
    .map((item) => within(item));
  assert.ok(quiet?.getByText("Sent to https://hooks.example.com/ as JSON (signed)"));
  assert.ok(quiet?.getByText(/^Last fired: Jun 1, 2026/));
  assert.ok(quiet?.getByText("5ec3e7"));
  await waitFor(() =>
    assert.ok(order?.getByText("The goal Order paid is reached 5 or more times within 24 h")),
  );
  assert.ok(order?.getByText(/^Going on since Jun 1, 2026/));
  assert.ok(order?.getByText("500 Internal Server Error"));
  assert.equal(order?.queryByText("Secret for checking the signature"), null);
});

test("an alert is tried", async () => {
  const path = "websites/a.example/alerts/quiet/test";
  const shown = showApp("settings/alerts", owner(["a.example"], answers({ [path]: TRIAL })));
  await ofWebsite(shown);
  const name = "Try it now: The website has gone quiet";
  await shown.person.click(shown.getByRole("button", { name }));
  assert.ok(await shown.findByText("Sent: This is a test."));
  assert.deepEqual(changes(shown), [["POST", path, undefined]]);
});

test("why a test did not arrive is shown", async () => {
  const path = "websites/a.example/alerts/quiet/test";
  const failed = { ...TRIAL, failure: "404 Not Found: no_service" };
  const shown = showApp("settings/alerts", owner(["a.example"], answers({ [path]: failed })));
  await ofWebsite(shown);
  const name = "Try it now: The website has gone quiet";
  await shown.person.click(shown.getByRole("button", { name }));
  assert.ok(await shown.findByText("Not delivered: 404 Not Found: no_service"));
});

test("an alert is made, with what its kind needs alone", async () => {
  const shown = showApp("settings/alerts", owner(["a.example"], answers()));
  await ofWebsite(shown);
  const form = within(shown.getByRole("region", { name: "New alert" }));
  const make = async () => {
    await shown.person.type(form.getByLabelText("Webhook URL"), "https://hooks.example.com/T0P");
    await shown.person.click(form.getByRole("button", { name: "Create alert" }));
    const url = form.getByLabelText<HTMLInputElement>("Webhook URL");
    await waitFor(() => assert.equal(url.value, ""));
  };
  assert.equal(form.queryByRole("spinbutton"), null);
  await make();
  const kinds = form.getByLabelText("What it reports");
  await shown.person.selectOptions(kinds, "An hour with fewer views than usual");
  const percent = form.getByLabelText("Percent fewer, at least");
  await shown.person.clear(percent);
  await shown.person.type(percent, "60");
  await make();
  await shown.person.selectOptions(kinds, "A goal is not reached");
  await shown.person.selectOptions(form.getByLabelText("Goal"), "Order paid");
  await shown.person.selectOptions(form.getByLabelText("Format"), "Slack");
  await make();
  const url = "https://hooks.example.com/T0P";
  const path = "websites/a.example/alerts";
  assert.deepEqual(changes(shown), [
    ["POST", path, { kind: "quiet", url, format: "json" }],
    ["POST", path, { kind: "drop", url, format: "json", threshold: 60 }],
    ["POST", path, { kind: "no-goal", url, format: "slack", goal: "paid", hours: 24 }],
  ]);
});

test("mails go to the address of a report that was confirmed", async () => {
  const mailed = { ...QUIET, url: undefined, secret: undefined, format: "mail", report: "wanted" };
  const lists = answers({ "websites/a.example/alerts": [mailed] });
  const shown = showApp("settings/alerts", owner(["a.example"], lists));
  await ofWebsite(shown);
  assert.ok(await shown.findByText("Sent by mail to ada@example.com"));
  const form = within(shown.getByRole("region", { name: "New alert" }));
  await shown.person.selectOptions(form.getByLabelText("Format"), "Mail");
  assert.equal(form.queryByLabelText("Webhook URL"), null);
  const addresses = within(form.getByLabelText("Address, that of a report"));
  assert.deepEqual(
    addresses.getAllByRole("option").map(({ textContent }) => textContent),
    ["ada@example.com"],
  );
  await shown.person.click(form.getByRole("button", { name: "Create alert" }));
  await waitFor(() =>
    assert.deepEqual(changes(shown), [
      ["POST", "websites/a.example/alerts", { kind: "quiet", format: "mail", report: "wanted" }],
    ]),
  );
});

test("without a confirmed address, there is no alert by mail", async () => {
  const nobody = answers({ "user/reports": [] });
  const shown = showApp("settings/alerts", owner(["a.example"], nobody));
  await ofWebsite(shown);
  const form = within(shown.getByRole("region", { name: "New alert" }));
  await shown.person.selectOptions(form.getByLabelText("Format"), "Mail");
  assert.ok(form.getByText(/There are none yet[.]$/));
  assert.ok(form.getByRole<HTMLButtonElement>("button", { name: "Create alert" }).disabled);
});

test("without a goal, there is no alert of one", async () => {
  const none = answers({ "websites/a.example/goals": [] });
  const shown = showApp("settings/alerts", owner(["a.example"], none));
  await ofWebsite(shown);
  const form = within(shown.getByRole("region", { name: "New alert" }));
  const kinds = form.getByLabelText("What it reports");
  await shown.person.selectOptions(kinds, "A goal is reached");
  assert.ok(form.getByText("Define a goal first, on the page of the website."));
  assert.ok(form.getByRole<HTMLButtonElement>("button", { name: "Create alert" }).disabled);
});

test("an alert is changed; the secret part of its address stays unless another is typed", async () => {
  const path = "websites/a.example/alerts/order";
  const shown = showApp("settings/alerts", owner(["a.example"], answers({ [path]: {} })));
  await ofWebsite(shown);
  const name = "Edit: The goal Order paid is reached 5 or more times within 24 h";
  const edit = async () => {
    await shown.person.click(await shown.findByRole("button", { name }));
    return within(await shown.findByRole("dialog", { name }));
  };
  const dialog = await edit();
  const times = dialog.getByLabelText<HTMLInputElement>("Times, at least");
  assert.equal(times.value, "5");
  assert.equal(dialog.getByLabelText<HTMLSelectElement>("Goal").value, "paid");
  assert.equal(dialog.getByLabelText<HTMLInputElement>("Webhook URL").value, "");
  await shown.person.clear(times);
  await shown.person.type(times, "7");
  await shown.person.click(dialog.getByRole("button", { name: "Save" }));
  await waitFor(() => assert.equal(shown.queryByRole("dialog"), null));
  const again = await edit();
  await shown.person.selectOptions(
    again.getByLabelText("What it reports"),
    "The website has gone quiet",
  );
  await shown.person.selectOptions(again.getByLabelText("Format"), "Mail");
  await shown.person.click(again.getByRole("button", { name: "Save" }));
  await waitFor(() => assert.equal(changes(shown).length, 2));
  const none = { threshold: null, goal: null, hours: null, report: null };
  const goal = { kind: "goal", format: "slack", threshold: 7, goal: "paid", hours: 24 };
  const mailed = { kind: "quiet", format: "mail", report: "wanted", url: null };
  assert.deepEqual(changes(shown), [
    ["PATCH", path, { ...none, ...goal }],
    ["PATCH", path, { ...none, ...mailed }],
  ]);
});

test("an alert is deleted once that is confirmed", async () => {
  const path = "websites/a.example/alerts/quiet";
  const shown = showApp("settings/alerts", owner(["a.example"], answers({ [path]: {} })));
  await ofWebsite(shown);
  const name = "Edit: The website has gone quiet";
  await shown.person.click(shown.getByRole("button", { name }));
  const dialog = within(await shown.findByRole("dialog", { name }));
  await shown.person.click(dialog.getByRole("button", { name: "Delete" }));
  assert.deepEqual(changes(shown), []);
  await shown.person.click(dialog.getByRole("button", { name: "Press again to delete" }));
  await waitFor(() => assert.deepEqual(changes(shown), [["DELETE", path, undefined]]));
});

test("a demo lists alerts, but changes none", async () => {
  const shown = showApp("settings/alerts", owner(["a.example"], answers({ "user/usage": DEMO })));
  await ofWebsite(shown);
  const tries = shown.getAllByRole<HTMLButtonElement>("button", { name: /^Try/ });
  await waitFor(() => assert.ok(tries.every(({ disabled }) => disabled)));
  assert.equal(shown.queryByRole("region", { name: "New alert" }), null);
  await shown.person.click(shown.getByRole("button", { name: "Edit: The website has gone quiet" }));
  const dialog = within(await shown.findByRole("dialog"));
  const buttons = dialog.getAllByRole<HTMLButtonElement>("button", { name: /^(Save|Delete)/ });
  assert.deepEqual(
    buttons.map(({ disabled }) => disabled),
    [true, true],
  );
});
