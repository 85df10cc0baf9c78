// The settings.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import { DEMO, owner, USAGE } from "./support/account.ts";
import { held, type Shown, showApp } from "./support/page.tsx";

/** What was changed: method, path and body of each request but the reading ones. */
function changes({ asked }: Shown) {
  return asked
    .filter(({ method }) => method !== "GET")
    .map(({ method, path, body }) => [method, path, body]);
}

function partOf({ getByRole }: Shown, name: string) {
  return within(getByRole("region", { name }));
}

test("each section has its address and its title", async () => {
  const shown = showApp("", owner());
  await shown.findByRole("heading", { name: "Websites" });
  await shown.person.keyboard("gs");
  await shown.findByRole("heading", { level: 1, name: "Settings" });
  const sections = within(shown.getByRole("navigation", { name: "Settings" }));
  for (const name of [
    "Account",
    "Websites",
    "Alerts",
    "Reports",
    "Tokens",
    "Tracker",
    "Usage",
    "About",
  ]) {
    await shown.person.click(sections.getByRole("link", { name }));
    assert.ok(await sections.findByRole("link", { name, current: "page" }));
    assert.equal(location.pathname, `/dashboard/settings/${name.toLowerCase()}`);
    assert.equal(document.title, `${name} · Settings · medamad`);
    assert.equal(sections.getAllByRole("link", { current: "page" }).length, 1);
  }
});

test("the username is changed", async () => {
  const shown = showApp("settings", owner());
  const name = within(await shown.findByRole("region", { name: "Username" }));
  const button = name.getByRole<HTMLButtonElement>("button");
  assert.equal(name.getByRole<HTMLInputElement>("textbox").value, "ada");
  assert.ok(button.disabled);
  await shown.person.clear(name.getByRole("textbox"));
  await shown.person.type(name.getByRole("textbox"), "grace");
  await shown.person.click(button);
  await waitFor(() => assert.equal(name.getByRole("status").textContent, "Saved"));
  assert.deepEqual(changes(shown), [["PATCH", "user", { username: "grace" }]]);
  assert.ok(button.disabled);
});

test("the password is changed once it is repeated", async () => {
  const shown = showApp("settings/account", owner());
  await shown.findByRole("region", { name: "Password" });
  const form = partOf(shown, "Password");
  const again = form.getByLabelText<HTMLInputElement>("Repeat new password");
  await shown.person.type(form.getByLabelText(/^New password/), "another password");
  await shown.person.type(again, "another pasword");
  await shown.person.click(form.getByRole("button"));
  assert.equal(form.getByText("The passwords don’t match.").role, "alert");
  assert.deepEqual(changes(shown), []);
  await shown.person.clear(again);
  await shown.person.type(again, "another password");
  assert.ok(!form.queryByText("The passwords don’t match."));
  await shown.person.click(form.getByRole("button"));
  await waitFor(() => assert.equal(form.getByRole("status").textContent, "Saved"));
  assert.deepEqual(changes(shown), [["PATCH", "user", { password: "another password" }]]);
  assert.equal(again.value, "");
});

test("the language is changed", async () => {
  const shown = showApp("settings/account", owner());
  const languages = within(await shown.findByRole("region", { name: "Language" }));
  assert.deepEqual(
    languages.getAllByRole("option").map(({ textContent }) => textContent),
    ["English", "Deutsch", "Français", "Español", "日本語", "中文"],
  );
  await waitFor(() => assert.ok(!languages.getByRole<HTMLSelectElement>("combobox").disabled));
  await shown.person.selectOptions(languages.getByRole("combobox"), "de");
  await shown.findByRole("heading", { level: 1, name: "Einstellungen" });
  assert.equal(document.documentElement.lang, "de");
  assert.deepEqual(changes(shown), [["PATCH", "user", { settings: { language: "de" } }]]);
  await waitFor(() => {
    const said = shown.getAllByRole("status").filter(({ textContent }) => textContent);
    assert.deepEqual(
      said.map(({ textContent }) => textContent),
      ["Gespeichert"],
    );
  });
});

test("the theme is that of the account's browser", async () => {
  const shown = showApp("settings/account", owner());
  await shown.person.click(await shown.findByRole("radio", { name: "Dark" }));
  assert.equal(document.documentElement.dataset.theme, "dark");
  assert.equal(localStorage.getItem("medamad.theme"), "dark");
  assert.deepEqual(changes(shown), []);
});

test("the language of a demo can be chosen once it is known to be one", async () => {
  const usage = held(DEMO);
  const shown = showApp("settings/account", owner([], { "user/usage": usage.wait }));
  const languages = within(await shown.findByRole("region", { name: "Language" }));
  const choice = languages.getByRole<HTMLSelectElement>("combobox");
  assert.ok(choice.disabled);
  usage.letGo();
  await waitFor(() => assert.ok(!choice.disabled));
  await shown.person.selectOptions(choice, "de");
  await waitFor(() => assert.equal(document.documentElement.lang, "de"));
  assert.deepEqual(changes(shown), []);
});

test("a demo cannot be changed", async () => {
  const shown = showApp("settings/account", owner(["a.example"], { "user/usage": DEMO }));
  const isDisabled = (name: string | RegExp) =>
    shown.getAllByRole<HTMLButtonElement>("button", { name }).every(({ disabled }) => disabled);
  await shown.findByText("This is a demo, so nothing can be changed.");
  assert.ok(isDisabled(/^Change (username|password)$/));
  await shown.person.click(shown.getByRole("link", { name: "Tracker" }));
  await shown.person.click(await shown.findByLabelText("File downloads"));
  assert.ok(isDisabled("Save"));
  const sections = within(shown.getByRole("navigation", { name: "Settings" }));
  await shown.person.click(sections.getByRole("link", { name: "Websites" }));
  await shown.findByRole("button", { name: "Rename a.example" });
  assert.ok(isDisabled(/^(Rename|Delete) a.example$/));
});

test("a website is renamed", async () => {
  const shown = showApp("settings/websites", owner(["before.example"]));
  await shown.person.click(await shown.findByRole("button", { name: "Rename before.example" }));
  const dialog = within(shown.getByRole("dialog", { name: "Rename before.example" }));
  await shown.person.clear(dialog.getByLabelText("Hostname"));
  await shown.person.type(dialog.getByLabelText("Hostname"), "https://after.example/");
  await shown.person.click(dialog.getByRole("button", { name: "Rename" }));
  assert.ok(await shown.findByRole("link", { name: "after.example" }));
  assert.ok(!shown.queryByRole("dialog"));
  assert.equal(shown.getByRole("status").textContent, "before.example is now after.example.");
  assert.deepEqual(changes(shown), [
    ["PATCH", "websites/before.example", { hostname: "after.example" }],
  ]);
});

test("a name that a website cannot have is explained", async () => {
  const shown = showApp("settings/websites", owner(["one.example", "two.example"]));
  await shown.person.click(await shown.findByRole("button", { name: "Rename one.example" }));
  const dialog = within(shown.getByRole("dialog"));
  const field = dialog.getByLabelText("Hostname");
  for (const [name, reason] of [
    ["two.example", "two.example has already been added."],
    ["192.0.2.1", "This isn’t a valid hostname. "],
  ] as const) {
    await shown.person.clear(field);
    await shown.person.type(field, name);
    assert.equal(dialog.getByRole("alert").textContent, "");
    await shown.person.click(dialog.getByRole("button", { name: "Rename" }));
    await waitFor(() => assert.ok(dialog.getByRole("alert").textContent.startsWith(reason)));
  }
  await shown.person.click(dialog.getByRole("button", { name: "Cancel" }));
  assert.ok(!shown.queryByRole("dialog"));
  assert.ok(shown.getByRole("link", { name: "one.example" }));
});

test("a website is deleted once its name is typed", async () => {
  const shown = showApp("settings/websites", owner(["after.example"]));
  await shown.person.click(await shown.findByRole("button", { name: "Delete after.example" }));
  const dialog = within(shown.getByRole("dialog"));
  const button = dialog.getByRole<HTMLButtonElement>("button", { name: "Delete" });
  assert.ok(button.disabled);
  await shown.person.type(dialog.getByRole("textbox"), "after.exampl{Enter}");
  assert.ok(button.disabled);
  assert.deepEqual(changes(shown), []);
  await shown.person.type(dialog.getByRole("textbox"), "e{Enter}");
  assert.ok(await shown.findByText("after.example has been deleted."));
  assert.ok(!shown.queryByRole("link", { name: "after.example" }));
  assert.deepEqual(changes(shown), [["DELETE", "websites/after.example", undefined]]);
});

test("the tracker has the selected features", async () => {
  const shown = showApp("settings/tracker", owner());
  const save = await shown.findByRole<HTMLButtonElement>("button", { name: "Save" });
  const toggle = async () => {
    await shown.person.click(shown.getByLabelText("File downloads"));
    await shown.person.click(shown.getByLabelText("Clicks on marked elements"));
  };
  const saved = "Saved. Browsers will load the new script within an hour.";
  assert.ok(save.disabled);
  await toggle();
  assert.equal(
    shown.getByRole("figure", { name: "Different features for one website" }).textContent,
    '<script defer src="http://localhost/scripts/click-events.file-downloads.js"></script>',
  );
  await shown.person.click(save);
  await shown.findByText(saved);
  assert.ok(save.disabled);
  await toggle();
  assert.ok(!shown.queryByText(saved));
  await shown.person.click(save);
  await shown.findByText(saved);
  assert.deepEqual(
    changes(shown).map(([, , body]) => body),
    [
      { settings: { script_type: ["click-events", "file-downloads"] } },
      { settings: { script_type: ["default"] } },
    ],
  );
});

test("usage says what was counted, and why the rest was not", async () => {
  mock.timers.enable({ apis: ["Date"], now: new Date("2025-03-12T12:00:00Z") });
  const last = Date.parse("2025-03-12T11:58:00Z") / 1000;
  const hits = {
    accepted: 12,
    refused: [{ reason: "unknown-website", hits: 3, last }],
    unknown_hostnames: [{ hostname: "unknown.example", hits: 3, last }],
  };
  const shown = showApp("settings/usage", owner([], { "user/usage": { ...USAGE, hits } }));
  await shown.findByRole("region", { name: "Hits in the last 24 hours" });
  const counted = partOf(shown, "Hits in the last 24 hours");
  assert.deepEqual(
    counted
      .getAllByRole("row")
      .map((row: HTMLElement) => [...row.children].map(({ textContent }) => textContent)),
    [
      ["Reason", "Hits", "Latest"],
      ["The page’s hostname isn’t one of your websites.", "3", "2m ago"],
    ],
  );
  for (const [name, share, text] of [
    ["CPU", 0.25, "25% · 4 cores"],
    ["Memory", 0.25, "1 GB of 4 GB"],
    ["Disk", 0.95, "95 GB of 100 GB"],
    ["Stored data", 0.01, "1 GB of 100 GB"],
  ] as const) {
    const meter = shown.getByRole<HTMLMeterElement>("meter", { name });
    assert.deepEqual(
      [Number(meter.getAttribute("value")), meter.getAttribute("aria-valuetext")],
      [share, text],
    );
  }
  await shown.person.click(shown.getByRole("link", { name: "Add unknown.example" }));
  assert.equal(
    (await shown.findByLabelText<HTMLInputElement>("Hostname")).value,
    "unknown.example",
  );
});

test("usage says whose it is, and what is missing", async () => {
  const collectors = { this: 2, silent: [1, 3] };
  const shown = showApp("settings/usage", owner([], { "user/usage": { ...USAGE, collectors } }));
  assert.ok(await shown.findByText(/those of collector 2, and the hits those of all collectors/));
  assert.ok(shown.getByText(/don’t answer: 1, 3\./));
});

test("where all was counted, usage says so", async () => {
  const shown = showApp("settings/usage", owner());
  assert.ok(await shown.findByText("Every hit was counted."));
  assert.ok(!shown.queryByRole("table"));
});

test("usage is requested again only once it has arrived", async () => {
  mock.timers.enable({ apis: ["setInterval"] });
  const usage = held(USAGE);
  const shown = showApp("settings/usage", owner([], { "user/usage": usage.wait }));
  const count = () => shown.asked.filter(({ path }) => path === "user/usage").length;
  await waitFor(() => assert.ok(shown.root.querySelector(".settings-content .skeleton")));
  // Effects begin the interval.
  await new Promise((done) => setTimeout(done));
  const before = count();
  mock.timers.tick(20_000);
  await new Promise((done) => setTimeout(done));
  assert.equal(count(), before);
  usage.letGo();
  await shown.findByRole("meter", { name: "Memory" });
  assert.equal(count(), before);
  mock.timers.tick(5_000);
  await waitFor(() => assert.ok(count() > before));
});

test("about says what runs", async () => {
  const shown = showApp("settings/about", owner());
  await shown.findByText("1.2.3");
  assert.deepEqual(
    shown.getAllByRole("definition").map(({ textContent }: HTMLElement) => textContent),
    ["1.2.3", "abcdef0", "GPL-3.0-or-later"],
  );
});
