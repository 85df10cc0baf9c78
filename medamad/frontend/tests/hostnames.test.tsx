// International hostnames, which the API has in ASCII.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import { LISTINGS } from "../dashboard/panels/lists.ts";
import { Rows } from "../dashboard/panels/rows.tsx";
import { fullWordOf, wordOf } from "../dashboard/panels/words.ts";
import { isCalled, nameOf } from "../dashboard/ui/hostnames.ts";
import { inOwnLetters } from "../dashboard/ui/punycode.ts";
import { WebsitesPage } from "../dashboard/websites/list.tsx";
import { owner } from "./support/account.ts";
import { show, showApp, showOnPage } from "./support/page.tsx";

const BOOKS = "xn--bcher-kva.example";

/** A hostname as browsers send it. */
function encoded(hostname: string): string {
  return new URL(`http://${hostname}`).hostname;
}

for (const hostname of [
  "bücher.example",
  "zürich.example",
  "παράδειγμα.example",
  "日本語テストabc.example",
  "한국.example",
  "пример.example",
  "שלום.example",
]) {
  test(`a hostname is shown in its letters: ${hostname}`, () => {
    const [label = ""] = encoded(hostname).split(".");
    assert.match(label, /^xn--/);
    assert.equal(`${inOwnLetters(label)}.example`, hostname);
  });
}

for (const [hostname, looks] of [
  ["\u0430pple.example", "a Cyrillic letter among Latin ones"],
  ["\u0430\u0440\u0440\u04cf\u0435.example", "apple in Cyrillic letters"],
  ["καυιαρ.example", "kaviar in Greek letters"],
  ["\u0261oogle.example", "google with a letter of phonetic alphabets"],
  ["aノb.example", "a slash"],
  ["xn--abc-.example", "no letters but Latin ones"],
  ["xn--a.example", "nothing that can be decoded"],
] as const) {
  test(`letters that mislead are left encoded: ${looks}`, () => {
    const [label = ""] = (hostname.startsWith("xn") ? hostname : encoded(hostname)).split(".");
    assert.match(label, /^xn--/);
    assert.equal(inOwnLetters(label), label);
  });
}

test("each label is decoded by itself", async () => {
  const mixed = encoded("bücher.\u0430pple.example");
  nameOf(mixed);
  await waitFor(() => assert.equal(nameOf(mixed), "bücher.xn--pple-43d.example"));
  assert.equal(nameOf("plain.example"), "plain.example");
  assert.equal(wordOf("referrer", `${BOOKS}/xn--a`), "bücher.example/xn--a");
  assert.equal(fullWordOf("referrer", BOOKS), `bücher.example (${BOOKS})`);
  assert.equal(fullWordOf("referrer", "blog.example"), "blog.example");
  assert.ok(isCalled(BOOKS, " BÜCH"));
  assert.ok(isCalled(BOOKS, "xn--bch"));
  assert.ok(!isCalled(BOOKS, "bäume"));
});

test("a list of websites has their names", async () => {
  const figures = { current: { visitors: 0, pageviews: 0 }, interval: [] };
  const shown = show(
    <WebsitesPage />,
    "",
    owner([BOOKS], { [`website/${BOOKS}/summary`]: figures }),
  );
  const heading = await shown.findByRole("heading", { level: 2 });
  await waitFor(() => assert.equal(heading.textContent, "bücher.example"));
  const link = heading.closest("a") as HTMLAnchorElement;
  assert.equal(link.pathname, `/dashboard/websites/${BOOKS}`);
});

test("a website is renamed and deleted by its name", async () => {
  const trees = "xn--bume-moa.example";
  const shown = showApp(
    "settings/websites",
    owner([BOOKS], {
      [`websites/${BOOKS}`]: { hostname: trees },
    }),
  );
  await shown.person.click(await shown.findByRole("button", { name: "Rename bücher.example" }));
  const dialog = within(shown.getByRole("dialog"));
  const field = dialog.getByLabelText<HTMLInputElement>("Hostname");
  assert.equal(field.value, "bücher.example");
  await shown.person.clear(field);
  await shown.person.type(field, "Bäume.example{Enter}");
  await waitFor(() =>
    assert.equal(shown.getByRole("status").textContent, "bücher.example is now bäume.example."),
  );
});

test("a website is deleted once its name in its own letters is typed", async () => {
  const shown = showApp("settings/websites", owner([BOOKS]));
  await shown.person.click(await shown.findByRole("button", { name: "Delete bücher.example" }));
  const dialog = within(shown.getByRole("dialog"));
  await shown.person.type(dialog.getByLabelText("Hostname"), "bücher.example");
  await shown.person.click(dialog.getByRole("button", { name: "Delete" }));
  await waitFor(() => assert.ok(!shown.queryByRole("dialog")));
  const deleted = shown.asked.find(({ method }) => method === "DELETE");
  assert.equal(deleted?.path, `websites/${BOOKS}`);
});

test("a referrer is shown in its letters, and filtered as the API has it", async () => {
  const { person, findByRole } = showOnPage(
    <Rows listing={LISTINGS.addresses} />,
    "?compare=none",
    {
      referrers: [{ referrer: `${BOOKS}/xn--a`, visitors: 1, visitors_percentage: 1 }],
    },
  );
  const row = await findByRole("button", { name: "bücher.example/xn--a" });
  assert.equal(row.title, `bücher.example/xn--a (${BOOKS}/xn--a)`);
  await person.click(row);
  assert.equal(location.search, `?compare=none&visit_referrer[eq]=${BOOKS}/xn--a`);
});
