// The icons beside rows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@testing-library/dom";
import { Mark } from "../dashboard/panels/mark.tsx";
import type { Field } from "../dashboard/view/filters.ts";
import { show } from "./support/page.tsx";

const SPRITE = "/dashboard/assets/icons.svg";

/** The symbol, or the letter, beside each value. */
async function marks(field: Field, ...values: string[]): Promise<(string | null | undefined)[]> {
  const { root } = show(
    <section>
      {values.map((value) => (
        <p key={value}>
          <Mark field={field} value={value} />
        </p>
      ))}
    </section>,
  );
  await waitFor(() => assert.ok(root.querySelector("use, [data-letter]")));
  return [...root.querySelectorAll("p")].map((place) => {
    assert.equal(place.textContent, "");
    assert.equal(place.firstElementChild?.getAttribute("aria-hidden"), "true");
    const symbol = place.querySelector("use")?.getAttribute("href");
    return symbol?.replace(SPRITE, "") ?? place.querySelector("span")?.dataset.letter;
  });
}

test("browsers and systems have their logos, others their first letters", async () => {
  const browsers = ["Chrome", "Firefox", "Samsung Internet", "Unknown", "constructor"];
  assert.deepEqual(await marks("browser", ...browsers), [
    "#chrome",
    "#firefox",
    "S",
    "#browser-unknown",
    "C",
  ]);
  assert.deepEqual(await marks("os", "macOS", "Windows", "Tizen"), [
    "#apple",
    "#microsoft-windows-icon",
    "T",
  ]);
});

test("countries have their flags", async () => {
  const countries = ["Germany", "Türkiye", "Unknown", "Atlantis", "(other)"];
  assert.deepEqual(await marks("country", ...countries), [
    "#DE",
    "#TR",
    "#country-unknown",
    "A",
    "…",
  ]);
});

test("referrers have logos by their names and hosts", async () => {
  const known = ["Google", "Hacker News", "www.google.co.uk/search", "reddit.com/r/garden", ""];
  assert.deepEqual(await marks("referrer", ...known), [
    "#google-icon",
    "#ycombinator",
    "#google-icon",
    "#reddit-icon",
    "#referrer-none",
  ]);
  const others = ["www.shed.example/a", "google.example.com", "__proto__"];
  assert.deepEqual(await marks("referrer", ...others), ["S", "G", "P"]);
  // The letter of an international name is that which is read.
  await waitFor(async () =>
    assert.deepEqual(await marks("referrer", "xn--bcher-kva.example"), ["B"]),
  );
});

test("there are none beside pages", () => {
  const { root } = show(<Mark field="path" value="/" />);
  assert.equal(root.childElementCount, 0);
});
