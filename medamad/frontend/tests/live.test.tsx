// What is going on at a website: the dialog with lists of the last half hour.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import type { Live } from "../dashboard/api/types.ts";
import { SitePage } from "../dashboard/view/page.tsx";
import "./support/canvas.ts";
import {
  type Answers,
  type Asked,
  HOSTNAME,
  refusal,
  type Shown,
  showOnPage,
} from "./support/page.tsx";

const VISITORS = { visitors: 1, visitors_percentage: 1 };
const LIVE: Live = {
  visitors: 2,
  pages: [
    { path: "/", ...VISITORS, pageviews: 1_200 },
    { path: "/about", ...VISITORS, pageviews: 300 },
  ],
  sources: [
    { referrer: "", ...VISITORS, visits: 3, visits_percentage: 0.75 },
    { referrer: "Google", ...VISITORS, visits: 1, visits_percentage: 0.25 },
    { referrer: "blog.example", ...VISITORS, visits: 0, visits_percentage: 0 },
  ],
  countries: [{ country: "Austria", ...VISITORS, visits: 4, visits_percentage: 1 }],
  events: [{ name: "event", value: "order", events: 2, events_percentage: 1 }],
};
const NOTHING: Live = { visitors: 0, pages: [], sources: [], countries: [], events: [] };

/** Show the page of HOSTNAME, and open the dialog by its key. */
async function opened(live: Live | Response): Promise<Shown> {
  const unknown = refusal(400, "busy");
  const shown = showOnPage(
    <SitePage />,
    "",
    new Proxy<Answers>(
      {},
      {
        get: (_, path) =>
          path === `website/${HOSTNAME}/live`
            ? ({ query }: Asked) => (query.has("lists") ? live : { visitors: 2 })
            : unknown,
      },
    ),
  );
  await shown.findByRole("button", { name: "2 pages open now" });
  await shown.person.keyboard("l");
  await shown.findByRole("dialog", { name: "Live: last 30 minutes" });
  return shown;
}

/** The rows of a list, each with its cells. */
function rowsOf({ getByRole }: Shown, name: string): string[][] {
  const table = within(getByRole("dialog")).getByRole<HTMLTableElement>("table", { name });
  return [...table.rows].map(({ cells }) => [...cells].map(({ textContent }) => textContent));
}

test("lists have pages, referrers, countries and events with their numbers", async () => {
  const shown = await opened(LIVE);
  await waitFor(() =>
    assert.deepEqual(rowsOf(shown, "Pages"), [
      ["Pages", "Views"],
      ["/", "1,200"],
      ["/about", "300"],
    ]),
  );
  // A referrer of later views alone is none of a visit.
  assert.deepEqual(rowsOf(shown, "Referrers"), [
    ["Referrers", "Visits"],
    ["Direct / none", "3"],
    ["Google", "1"],
  ]);
  assert.deepEqual(rowsOf(shown, "Countries"), [
    ["Countries", "Visits"],
    ["Austria", "4"],
  ]);
  assert.deepEqual(rowsOf(shown, "Events"), [
    ["Events", "Events"],
    ["event: order", "2"],
  ]);
  const widths = [...shown.root.querySelectorAll<HTMLElement>(".live-lists .row-bar")].map(
    ({ style }) => style.width,
  );
  assert.deepEqual(widths.slice(0, 3), ["100%", "25%", "100%"]);
  assert.ok(shown.getByText(/those of the visits that began/));
});

test("what counts views where there are no visits says so", async () => {
  const shown = await opened({
    ...LIVE,
    sources: [{ referrer: "", ...VISITORS, pageviews: 5 }],
    countries: [{ country: "Austria", ...VISITORS, pageviews: 5 }],
  });
  await waitFor(() =>
    assert.deepEqual(rowsOf(shown, "Referrers"), [
      ["Referrers", "Views"],
      ["Direct / none", "5"],
    ]),
  );
  assert.equal(shown.queryByText(/those of the visits that began/), null);
});

test("an empty list says so in words", async () => {
  const shown = await opened(NOTHING);
  await waitFor(() =>
    assert.deepEqual(rowsOf(shown, "Pages"), [["Pages", "Views"], ["No views in this period"]]),
  );
  assert.deepEqual(rowsOf(shown, "Events"), [["Events", "Events"], ["No events in this period"]]);
});

test("visits that all began earlier are told apart from none", async () => {
  const sources = [{ referrer: "", ...VISITORS, visits: 0, visits_percentage: 0 }];
  const shown = await opened({ ...LIVE, sources });
  await waitFor(() =>
    assert.deepEqual(rowsOf(shown, "Referrers"), [
      ["Referrers", "Visits"],
      ["No visit began in this period"],
    ]),
  );
});

test("a refusal takes the place of the lists", async () => {
  const shown = await opened(refusal(500, "broken"));
  const dialog = within(shown.getByRole("dialog"));
  assert.ok(await dialog.findByRole("alert"));
  assert.equal(dialog.queryByRole("table"), null);
});

test("the dialog returns the focus to what opened it", async () => {
  const { person, getByRole, findByRole, queryByRole } = await opened(LIVE);
  await person.click(getByRole("button", { name: "Close" }));
  await waitFor(() => assert.equal(queryByRole("dialog"), null));
  const opener = getByRole("button", { name: "2 pages open now" });
  await person.click(opener);
  await findByRole("dialog");
  await person.click(getByRole("button", { name: "Close" }));
  await waitFor(() => assert.equal(document.activeElement, opener));
});
