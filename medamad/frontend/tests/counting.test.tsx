// What counts on a website: its settings, and their preview.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import { owner } from "./support/account.ts";
import { type Asked, showApp } from "./support/page.tsx";

const SETTINGS = {
  bots: null,
  hosting: null,
  respect_gpc: true,
  blocked_networks: [],
  blocked_countries: ["DE", "AT"],
  allowed_hosts: [],
  excluded_paths: [],
  redacted_paths: [],
  redact_uuids: true,
  redact_hexadecimal: false,
  redact_emails: true,
  kept_parameters: [],
};
const CONFIGURED = {
  bots: "declared",
  hosting: "count",
  respect_gpc: false,
  origins: "website",
};

function answers(preview: object = {}) {
  const path = "websites/example.com/settings";
  return {
    ...owner(),
    websites: [{ hostname: "example.com" }],
    [path]: { ...SETTINGS, configured: CONFIGURED },
    [`${path}/preview`]: preview,
  };
}

async function open(preview?: object) {
  const shown = showApp("settings/websites", answers(preview));
  const button = await shown.findByRole("button", { name: "Counting: example.com" });
  await shown.person.click(button);
  const dialog = within(await shown.findByRole("dialog"));
  await dialog.findByRole("textbox", { name: "Pages" });
  return { shown, dialog };
}

const sent = (asked: Asked[]) => asked.filter(({ method }) => method === "PATCH");

test("settings are shown as they are, and what was changed is saved", async () => {
  const { shown, dialog } = await open();
  const programs = dialog.getByRole<HTMLSelectElement>("combobox", { name: "Programs" });
  assert.equal(programs.selectedOptions[0]?.textContent, "Default: Ignore declared ones");
  const networks = dialog.getByRole<HTMLSelectElement>("combobox", {
    name: "Networks of hosting providers",
  });
  assert.equal(networks.selectedOptions[0]?.textContent, "Default: Count");
  await shown.person.selectOptions(networks, "Count with the robots");
  const gpc = dialog.getByRole<HTMLSelectElement>("combobox", { name: "Global Privacy Control" });
  assert.equal(gpc.selectedOptions[0]?.textContent, "Don’t count");
  const countries = dialog.getByRole<HTMLTextAreaElement>("textbox", { name: "Countries" });
  assert.equal(countries.value, "DE\nAT");
  await shown.person.selectOptions(programs, "Count all");
  await shown.person.selectOptions(gpc, "");
  await shown.person.type(dialog.getByRole("textbox", { name: "Pages" }), "/admin/*\n\n /login ");
  await shown.person.clear(countries);
  await shown.person.click(dialog.getByRole("checkbox", { name: "UUIDs" }));
  await shown.person.click(dialog.getByRole("button", { name: "Save" }));
  await waitFor(() => assert.ok(!shown.queryByRole("dialog")));
  assert.deepEqual(
    sent(shown.asked).map(({ path, body }) => [path, body]),
    [
      [
        "websites/example.com/settings",
        {
          bots: "off",
          hosting: "count apart",
          respect_gpc: null,
          blocked_countries: [],
          excluded_paths: ["/admin/*", "/login"],
          redact_uuids: false,
        },
      ],
    ],
  );
  assert.ok(await shown.findByText("What counts on example.com has been saved."));
});

test("a preview shows which stored paths would change", async () => {
  const { shown, dialog } = await open({
    paths: 1200,
    redacted: 1,
    excluded: 1,
    stored: 1199,
    changes: [
      { path: "/reset/kQ2", stored: "/reset/…" },
      { path: "/admin", stored: null },
    ],
  });
  await shown.person.type(dialog.getByRole("textbox", { name: "Parts of paths" }), "/reset/*");
  await shown.person.click(dialog.getByRole("button", { name: "Preview" }));
  await dialog.findByText("Of 1,200 stored paths, 1 would be replaced and 1 not counted.");
  assert.deepEqual(
    dialog.getAllByRole("listitem").map(({ textContent }) => textContent),
    ["/reset/kQ2 → /reset/…", "/admin → not counted"],
  );
  const { query } = shown.asked.at(-1) as Asked;
  assert.deepEqual(JSON.parse(query.get("settings") as string), { redacted_paths: ["/reset/*"] });
  assert.deepEqual(sent(shown.asked), []);
  // It is no longer true once something else is typed.
  await shown.person.click(dialog.getByRole("checkbox", { name: "UUIDs" }));
  assert.equal(dialog.queryByText(/stored paths/), null);
});
