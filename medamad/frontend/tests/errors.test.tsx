// Errors of the server, in the reader's language.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import { ApiError } from "../dashboard/api/client.ts";
import { en } from "../dashboard/i18n/en/index.ts";
import { type Key, speak } from "../dashboard/i18n/index.ts";
import { ja } from "../dashboard/i18n/ja.ts";
import { LISTINGS } from "../dashboard/panels/lists.ts";
import { Rows } from "../dashboard/panels/rows.tsx";
import { Refusal } from "../dashboard/ui/trouble.tsx";
import { ADA, owner } from "./support/account.ts";
import { type Asked, refusal, show, showApp, showOnPage } from "./support/page.tsx";

const CASES: readonly (readonly [number, string, Key])[] = [
  [403, "words of the server", "refused.forbidden"],
  [404, "words of the server", "refused.gone"],
  [409, "words of the server", "refused.known"],
  [413, "words of the server", "refused.too-large"],
  [429, "words of the server", "refused.too-many"],
  [500, "words of the server", "refused.fault"],
  [501, "words of the server", "refused.fault"],
  [502, "words of the server", "away.title"],
  [503, "", "away.title"],
  [0, "", "away.title"],
  [400, "username: expected 3 to 48 characters, got 1", "refused.username"],
  [400, "password: expected 5 to 128 characters, got 1", "refused.password"],
  [400, "hostname: expected a hostname", "hostname.refused"],
];

for (const [language, texts] of [
  ["en", en],
  ["ja", ja],
] as const) {
  for (const [status, message, key] of CASES) {
    test(`an error is in the reader's language: ${language}, ${status} ${message}`, async () => {
      await speak(language);
      const { getByRole } = show(<Refusal error={new ApiError(status, message)} />);
      assert.equal(getByRole("alert").textContent, texts[key]);
    });
  }

  test(`a server that takes no changes for now says why: ${language}`, async () => {
    await speak(language);
    const message = "logins and changes are for the primary, collector 1";
    const { getByRole, getByText } = show(<Refusal error={new ApiError(503, message)} />);
    assert.equal(getByRole("alert").textContent, `${texts["away.title"]} (${message})`);
    assert.equal(getByText(`(${message})`).lang, "en");
  });

  test(`where there are no words of ours, the server's are quoted: ${language}`, async () => {
    await speak(language);
    const message = "settings.language: expected one of en, de";
    const { getByRole, getByText } = show(<Refusal error={new ApiError(400, message)} />);
    assert.equal(getByRole("alert").textContent, `${texts["refused.request"]} ${message}`);
    assert.equal(getByText(message).lang, "en");
  });
}

test("a form says what a status means to it", () => {
  const { getByRole } = show(
    <Refusal error={new ApiError(409, "name: known")} meaning={{ 409: "Taken" }} />,
  );
  assert.equal(getByRole("alert").textContent, "Taken");
});

test("a form of the account says why it was refused, until something else is typed", async () => {
  const refused = ({ method }: Asked) =>
    method === "GET" ? ADA : refusal(409, "words of the server");
  const shown = showApp("settings/account", owner([], { user: refused }));
  const form = within(await shown.findByRole("region", { name: "Username" }));
  await shown.person.type(form.getByRole("textbox"), "x{Enter}");
  await waitFor(() => assert.equal(form.getByRole("alert").textContent, en["refused.known"]));
  await shown.person.type(form.getByRole("textbox"), "y");
  assert.equal(form.getByRole("alert").textContent, "");
});

test("figures that are refused are replaced by the reason, and requested again", async () => {
  let isRefused = true;
  const { asked, person, findByRole, getByRole, queryByRole } = showOnPage(
    <Rows listing={LISTINGS.languages} />,
    "?compare=none",
    {
      languages: () =>
        isRefused
          ? refusal(400, "language[eq]: not to be read")
          : [{ language: "German", visitors: 1, visitors_percentage: 1 }],
    },
  );
  const trouble = await findByRole("alert");
  assert.match(
    trouble.textContent ?? "",
    /The server rejected this request\. language\[eq\]: not to be read/,
  );
  isRefused = false;
  await person.click(getByRole("button", { name: en["common.retry"] }));
  await findByRole("table");
  await waitFor(() => assert.ok(!queryByRole("alert")));
  assert.equal(asked.length, 2);
});
