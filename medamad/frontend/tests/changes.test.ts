// What changed, in words.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChangedPart, Changes } from "../dashboard/api/types.ts";
import { speak } from "../dashboard/i18n/index.ts";
import { sentences } from "../dashboard/view/change-words.ts";
import "./support/page.tsx";
import { plain } from "./support/text.ts";

function figures(before: number, now: number) {
  return { before, now, difference: now - before };
}

function part(name: string, before: number, now: number, by_chance: boolean | null): ChangedPart {
  return { name, ...figures(before, now), by_chance };
}

/** Return what changed, split by source. */
function changes(by_chance: boolean | null, parts: ChangedPart[], further: Partial<Changes> = {}) {
  const sum = (name: "before" | "now") => parts.reduce((all, one) => all + one[name], 0);
  return {
    metric: "visits",
    earlier_weeks: 12,
    ...figures(sum("before"), sum("now")),
    by_chance,
    dimensions: [{ dimension: "source", parts, others: { parts: 0, ...figures(0, 0) } }],
    pairs: [],
    ...further,
  } satisfies Changes;
}

const said = (found: Changes) => sentences(found, "Visits").map(plain);

test("what chance explains is about as before", () => {
  const found = changes(true, [part("Google", 100, 90, true), part("", 80, 85, true)]);
  assert.deepEqual(said(found), [
    "Visits: about as before, 175 after 180. Chance explains a difference like this.",
    "No part changed by more than chance explains.",
  ]);
});

test("a part may stand out although the whole is about as before", () => {
  const found = changes(true, [part("Google", 100, 40, false), part("", 80, 130, true)]);
  assert.equal(said(found)[1], "What stands out: source “Google”, down by 60, from 100 to 40.");
});

test("the parts furthest from their share stand out, with the pairs first", () => {
  const pair = {
    parts: [
      { dimension: "source", name: "Google" },
      { dimension: "entry_page", name: "/guide" },
    ],
    ...figures(1_100, 100),
  } satisfies Changes["pairs"][number];
  const found = changes(
    false,
    [part("Google", 1_500, 500, false), part("", 200, 260, false), part("x.example", 9, 8, true)],
    { pairs: [pair] },
  );
  assert.deepEqual(said(found), [
    "Visits: down by 941, from 1,709 to 768.",
    "What stands out: source “Google” and entry page “/guide”, down by 1,000, from 1,100 to 100.",
    "What stands out: source “Direct / none”, up by 60, from 200 to 260.",
  ]);
});

test("a single part that has all of the change explains nothing", () => {
  assert.deepEqual(said(changes(false, [part("", 400, 200, false)])), [
    "Visits: down by 200, from 400 to 200.",
    "No part stands out: all changed alike.",
  ]);
});

test("whether it is chance may be unknown", () => {
  const parts = [part("", 400, 200, null)];
  const [, reason] = said(changes(null, parts, { earlier_weeks: 3 }));
  assert.equal(reason, "Fewer than four earlier weeks are known, so this may be chance.");
  assert.match(said(changes(null, parts))[1] ?? "", /^Some days are only partly known/);
});

test("revenue is an amount of money, in the language's format", async () => {
  const found = changes(false, [part("", 1_200.5, 20, false)], { currency: "EUR" });
  assert.equal(said(found)[0], "Visits: down by €1,180.50, from €1,200.50 to €20.00.");
  await speak("de");
  assert.equal(
    plain(sentences(found, "Umsatz: Kauf")[0] ?? ""),
    "Umsatz: Kauf: 1.180,50 € weniger, von 1.200,50 € auf 20,00 €.",
  );
  await speak("en");
});
