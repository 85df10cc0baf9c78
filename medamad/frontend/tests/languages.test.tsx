// The language of the dashboard, and its formats of numbers and dates.

import assert from "node:assert/strict";
import { afterEach, mock, test } from "node:test";
import { waitFor } from "@testing-library/dom";
import { LANGUAGES, type Language, type User, type UserChange } from "../dashboard/api/types.ts";
import {
  changeOf,
  duration,
  figure,
  language,
  percent,
  shortFigure,
  shortMoney,
  speak,
  speakAsBefore,
  t,
} from "../dashboard/i18n/index.ts";
import { Account } from "../dashboard/settings/account.tsx";
import { changeUser, user } from "../dashboard/state/session.ts";
import { partLabel } from "../dashboard/view/spans.ts";
import { ADA, owner } from "./support/account.ts";
import { show, showApp } from "./support/page.tsx";
import { plain } from "./support/text.ts";

/** The languages that the browser prefers. */
function prefer(...languages: string[]): void {
  mock.getter(navigator, "languages", () => languages);
}

afterEach(() => mock.restoreAll());

// Of one day.
const PART = {
  date: "2025-03-11T00:00:00Z",
  start: new Date("2025-03-11T00:00:00Z"),
  end: new Date("2025-03-12T00:00:00Z"),
  isWhole: true,
  visitors: 0,
  pageviews: 0,
  bounce_percentage: 0,
  duration: 0,
};
const SHOWN: Record<Language, string[]> = {
  en: ["Visitors", "1,234", "12,345", "1.23m", "1.2%", "+5%", "Tue, 11 March 2025"],
  de: ["Besucher", "1.234", "12.345", "1,23 Mio.", "1,2 %", "+5 %", "Di., 11. März 2025"],
  fr: ["Visiteurs", "1 234", "12 345", "1,23 M", "1,2 %", "+5 %", "mar. 11 mars 2025"],
  // Spanish leaves four digits together.
  es: ["Visitantes", "1234", "12.345", "1,23 M", "1,2 %", "+5 %", "mar, 11 de marzo de 2025"],
  ja: ["訪問者数", "1,234", "12,345", "123万", "1.2%", "+5%", "2025年3月11日(火)"],
  zh: ["访客数", "1,234", "12,345", "123万", "1.2%", "+5%", "2025年3月11日周二"],
};
for (const spoken of LANGUAGES) {
  test(`texts, numbers and dates follow the language: ${spoken}`, async () => {
    prefer("en-GB");
    await speak(spoken);
    assert.equal(document.documentElement.lang, spoken);
    const shown = [
      t("measure.visitors"),
      figure(1_234),
      figure(12_345),
      shortFigure(1_234_567),
      percent(0.0123),
      changeOf(0.05),
      partLabel(PART, "day", "UTC"),
    ];
    assert.deepEqual(shown.map(plain), SHOWN[spoken]);
  });
}

test("only very large numbers are shortened, and never without a suffix", async () => {
  prefer("en-GB", "de-DE");
  await speak("de");
  assert.equal(shortFigure(12_507), "12.507");
  assert.equal(shortFigure(999_999), "999.999");
  for (const spoken of LANGUAGES) {
    await speak(spoken);
    for (const value of [1_000_000, 1_234_567, 98_765_432, 1_234_567_890]) {
      const short = shortFigure(value);
      assert.ok(short === figure(value) || /\p{L}/u.test(short), short);
    }
  }
});

test("what a button says is part of its label", async () => {
  prefer("en-GB");
  for (const spoken of LANGUAGES) {
    await speak(spoken);
    const shown = showApp("settings/websites", owner(["one.example"]));
    await shown.findByRole("link", { name: "one.example" });
    const labelled = [...document.querySelectorAll("li [aria-label]")];
    assert.ok(labelled.length >= 4);
    for (const element of labelled) {
      const [label, said] = [element.getAttribute("aria-label") ?? "", element.textContent].map(
        (text) => text.toLocaleLowerCase(spoken),
      ) as [string, string];
      assert.ok(label.includes(said), `${spoken}: ${said} is not in ${label}`);
    }
  }
});

test("a figure and its unit stay on one line", async () => {
  prefer("en-GB");
  for (const spoken of ["de", "fr", "es"] as const) {
    await speak(spoken);
    assert.match(t("panels.column.bounce_percentage"), /5\u00a0s/);
  }
});

test("an amount of money is never shortened without a suffix", async () => {
  prefer("en-GB", "de-DE");
  for (const [spoken, shown] of [
    ["en", ["€12.50", "€1,235", "€123,456", "€1.23m"]],
    ["de", ["12,50 €", "1.235 €", "123.456 €", "1,23 Mio. €"]],
  ] as const) {
    await speak(spoken);
    assert.deepEqual(
      [12.5, 1_234.6, 123_456, 1_234_567].map((amount) => plain(shortMoney(amount, "EUR"))),
      shown,
    );
  }
});

test("durations are written in their two largest units", async () => {
  prefer("en-GB");
  await speak("en");
  const durations = [0, 1, 999, 1_000, 59_400, 59_600, 123_000, 3_599_000, 3_900_000, 90_000_000];
  assert.deepEqual(
    durations.map((ms) => plain(duration(ms))),
    ["0s", "1ms", "999ms", "1s", "59s", "1m 0s", "2m 3s", "59m 59s", "1h 5m", "25h 0m"],
  );
  await speak("de");
  assert.equal(plain(duration(282_000)), "4 min 42 s");
});

test("numbers and dates follow the browser's variant of the language", async () => {
  prefer("en-US", "de-CH");
  await speak("de");
  assert.match(figure(1_000), /^1['’]000$/);
  await speak("en");
  assert.equal(partLabel(PART, "day", "UTC"), "Tue, March 11, 2025");
});

for (const [preferred, spoken] of [
  [["fr-CA"], "fr"],
  [["zh-CN"], "zh"],
  [["it", "ja", "de"], "ja"],
  [["it"], "en"],
] as const) {
  test(`nobody is logged in yet, and the browser prefers ${preferred}`, async () => {
    prefer(...preferred);
    localStorage.clear();
    await speakAsBefore();
    assert.equal(language.value, spoken);
  });
}

test("the last language of this browser comes before those that it prefers", async () => {
  prefer("fr");
  await speak("es");
  await speak("en");
  localStorage.setItem("medamad.language", "es");
  await speakAsBefore();
  assert.equal(language.value, "es");
});

test("a language is remembered in this browser", async () => {
  prefer("de");
  localStorage.clear();
  await speakAsBefore();
  await speak("de");
  assert.equal(localStorage.getItem("medamad.language"), "de");
});

test("a language that nobody chose follows the browser's", async () => {
  localStorage.clear();
  for (const preferred of ["fr", "es"] as const) {
    prefer(preferred);
    await speakAsBefore();
    assert.equal(language.value, preferred);
  }
});

test("a language that was wanted before does not come after the one that is wanted", async () => {
  const spoken: (Language | undefined)[] = [];
  const stop = language.subscribe((value) => void spoken.push(value));
  // The browser's, then the account's.
  await Promise.all([speak("de"), speak("ja")]);
  stop();
  assert.deepEqual(spoken, ["en", "ja"]);
  assert.equal(document.documentElement.lang, "ja");
});

/** Show the settings of an account, and the list of languages. */
async function account(isDemo: boolean) {
  const of = (language: Language): User => ({
    username: "ada",
    settings: { language, script_type: ["default"] },
    dateCreated: 0,
    dateUpdated: 1,
  });
  user.value = of("en");
  const shown = show(<Account />, "settings/account", {
    "user/usage": { service: { demo: isDemo } },
    user: ({ body }) => of((body as { settings: { language: Language } }).settings.language),
  });
  const list = shown.getByRole<HTMLSelectElement>("combobox", { name: "Language" });
  await waitFor(() => assert.equal(list.disabled, false));
  return { ...shown, list };
}

test("a new account has the language of the browser, until something of it is changed", async () => {
  prefer("de-DE");
  localStorage.clear();
  const fresh: User = { ...ADA, dateUpdated: ADA.dateCreated };
  let changed: UserChange | undefined;
  const answers = owner([], {
    user: ({ method, body }) => {
      if (method !== "PATCH") return fresh;
      changed = body as UserChange;
      return { ...fresh, settings: { ...fresh.settings, ...changed.settings }, dateUpdated: 2e9 };
    },
  });
  showApp("settings/account", answers);
  await waitFor(() => assert.equal(document.documentElement.lang, "de"));
  await waitFor(() => assert.ok(user.value));
  await changeUser({ username: "grace" });
  assert.deepEqual(changed, { username: "grace", settings: { language: "de" } });
  assert.equal(document.documentElement.lang, "de");
});

test("the account keeps the language that is chosen", async () => {
  const { person, list, findByText, asked } = await account(false);
  await person.selectOptions(list, "日本語");
  await findByText("保存しました");
  assert.deepEqual(asked.at(-1), {
    method: "PATCH",
    path: "user",
    query: new URLSearchParams(),
    body: { settings: { language: "ja" } },
  });
  assert.equal(document.documentElement.lang, "ja");
  await findByText("このブラウザからログアウト");
});

test("a demo keeps no language", async () => {
  const { person, list, findByText, asked } = await account(true);
  await person.selectOptions(list, "Deutsch");
  await findByText("In diesem Browser abmelden");
  assert.deepEqual(
    asked.map(({ method }) => method),
    ["GET"],
  );
});
