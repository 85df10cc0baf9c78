// Reports by mail, in the settings.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import type { Report } from "../dashboard/api/types.ts";
import { DEMO, owner } from "./support/account.ts";
import { refusal, showApp } from "./support/page.tsx";

const SHOP: Report = {
  id: "0123456789ab",
  address: "ada@example.com",
  websites: ["a.example", "b.example"],
  every: "week",
  day: 5,
  hour: 8,
  timezone: "Europe/Berlin",
  language: "en",
  confirmed: true,
  dateCreated: 1_750_000_000,
};
const FAILED: Report = {
  ...SHOP,
  id: "0123456789ac",
  address: "new@example.com",
  every: "month",
  day: 28,
  confirmed: false,
  failure: "mail.example.com:587: 550 no such user",
};

test("reports are listed with when they are mailed and what is wrong", async () => {
  const shown = showApp("settings/reports", owner([], { "user/reports": () => [SHOP, FAILED] }));
  const region = within(await shown.findByRole("region", { name: "Reports" }));
  const [shop, failed] = (await region.findAllByRole("listitem")) as [HTMLElement, HTMLElement];
  assert.match(shop.textContent ?? "", /Every week · Friday, 8:00/);
  assert.match(shop.textContent ?? "", /\(Europe\/Berlin\)a\.example, b\.example · English/);
  assert.ok(!within(shop).queryByText("Not confirmed yet"));
  assert.match(failed.textContent ?? "", /Every month · Day 28 of the month/);
  assert.ok(within(failed).getByText("Not confirmed yet"));
  assert.ok(within(failed).getByText("mail.example.com:587: 550 no such user"));
});

test("a report is added, and the address is asked", async () => {
  const reports: Report[] = [];
  const answers = owner(["a.example", "b.example"], {
    "user/reports": ({ method, body }) => {
      if (method === "POST") reports.push({ ...SHOP, ...(body as Report), confirmed: false });
      return method === "POST" ? reports.at(-1) : reports;
    },
  });
  const shown = showApp("settings/reports", answers);
  const form = within(await shown.findByRole("region", { name: "Add report" }));
  await form.findByRole("option", { name: "b.example" });
  await shown.person.type(form.getByLabelText("Email address"), "new@example.com");
  await shown.person.selectOptions(form.getByLabelText("Websites"), "b.example");
  await shown.person.selectOptions(form.getByLabelText("How often"), "month");
  await shown.person.selectOptions(form.getByLabelText("Day"), "28");
  await shown.person.selectOptions(form.getByLabelText("Time"), "17");
  await shown.person.clear(form.getByLabelText("Time zone"));
  await shown.person.type(form.getByLabelText("Time zone"), "Asia/Tokyo");
  await shown.person.click(form.getByRole("button"));
  await waitFor(() =>
    assert.equal(
      form.getByRole("status").textContent,
      "new@example.com has been asked to confirm.",
    ),
  );
  const { id: _id, confirmed: _confirmed, dateCreated: _date, ...sent } = reports[0] as Report;
  assert.deepEqual(sent, {
    address: "new@example.com",
    websites: ["b.example"],
    every: "month",
    day: 28,
    hour: 17,
    timezone: "Asia/Tokyo",
    language: "en",
  });
  assert.ok(await shown.findByText("Not confirmed yet"));
});

test("a mail that is refused is explained in the mail server's words", async () => {
  const said = "mail.example.com:587: 535 wrong password";
  const shown = showApp(
    "settings/reports",
    owner([], { "user/reports": () => [], "user/test-mail": () => refusal(409, said) }),
  );
  const form = within(await shown.findByRole("region", { name: "Send test email" }));
  await shown.person.type(form.getByLabelText("Email address"), "ada@example.com");
  await shown.person.click(form.getByRole("button"));
  const alert = await form.findByText(said);
  assert.equal(alert.lang, "en");
  assert.equal(form.getByRole("status").textContent, "");
});

test("a report is changed, but for its address", async () => {
  const shown = showApp(
    "settings/reports",
    owner(["a.example", "b.example", "c.example"], {
      "user/reports": () => [SHOP],
      [`user/reports/${SHOP.id}`]: SHOP,
    }),
  );
  const name = "Edit: ada@example.com";
  await shown.person.click(await shown.findByRole("button", { name }));
  const dialog = within(await shown.findByRole("dialog", { name }));
  await dialog.findByRole("option", { name: "c.example" });
  assert.equal(dialog.queryByLabelText("Email address"), null);
  await shown.person.deselectOptions(dialog.getByLabelText("Websites"), "a.example");
  await shown.person.selectOptions(dialog.getByLabelText("Time"), "17");
  await shown.person.selectOptions(dialog.getByLabelText("Language"), "ja");
  await shown.person.click(dialog.getByRole("button", { name: "Save" }));
  await waitFor(() => assert.equal(shown.queryByRole("dialog"), null));
  const sent = shown.asked.filter(({ method }) => method === "PATCH").map(({ body }) => body);
  const { every, day, timezone } = SHOP;
  assert.deepEqual(sent, [
    { websites: ["b.example"], every, day, hour: 17, timezone, language: "ja" },
  ]);
});

test("a report is ended when its button is pressed twice", async () => {
  let reports = [SHOP];
  const answers = owner([], {
    "user/reports": () => reports,
    [`user/reports/${SHOP.id}`]: () => {
      reports = [];
      return null;
    },
  });
  const shown = showApp("settings/reports", answers);
  await shown.person.click(await shown.findByRole("button", { name: "Edit: ada@example.com" }));
  const dialog = within(await shown.findByRole("dialog"));
  await shown.person.click(dialog.getByRole("button", { name: "Delete" }));
  assert.equal(reports.length, 1);
  await shown.person.click(dialog.getByRole("button", { name: "Press again to delete" }));
  assert.ok(await shown.findByText("No reports yet."));
});

test("a demo shows reports, and changes none", async () => {
  const answers = owner([], { "user/reports": () => [SHOP], "user/usage": () => DEMO });
  const shown = showApp("settings/reports", answers);
  await shown.person.click(await shown.findByRole("button", { name: "Edit: ada@example.com" }));
  const dialog = within(await shown.findByRole("dialog"));
  const buttons = dialog.getAllByRole<HTMLButtonElement>("button", { name: /^(Save|Delete)/ });
  await waitFor(() => assert.ok(buttons.every(({ disabled }) => disabled)));
  assert.ok(!shown.queryByRole("region", { name: "Add report" }));
});
