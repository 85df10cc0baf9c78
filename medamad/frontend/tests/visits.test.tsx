// What the panels of a website's page show of visits, and of the previous period.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@testing-library/dom";
import { LISTINGS, type ListingName } from "../dashboard/panels/lists.ts";
import { PageFlow } from "../dashboard/panels/page-flow.tsx";
import { Rows } from "../dashboard/panels/rows.tsx";
import { TotalsContext } from "../dashboard/panels/totals.ts";
import { keepsVisits } from "../dashboard/view/visits.ts";
import { visited } from "./support/figures.ts";
import { TOTALS } from "./support/known.ts";
import { type Answers, showOnPage } from "./support/page.tsx";

const THREE_DAYS = "?from=2025-03-10&to=2025-03-12&zone=UTC";
const ALONE = `${THREE_DAYS}&compare=none`;

/** Show the rows of a list; `totals` is what is known of all. */
function showRows(name: ListingName, query: string, answers: Answers, totals = TOTALS) {
  return showOnPage(
    <TotalsContext.Provider value={totals}>
      <Rows listing={LISTINGS[name]} />
    </TotalsContext.Provider>,
    query,
    answers,
  );
}

/** The rows below an element, once there are any: names, figures, shares and changes. */
async function rowsIn(place: Element): Promise<string[][]> {
  await waitFor(() => assert.ok(place.querySelector("tbody tr")));
  return [...place.querySelectorAll("tbody tr")].map((row) => [
    row.querySelector("bdi, .row-fixed")?.textContent ?? "",
    ...[...row.querySelectorAll("td")].map(({ textContent }) => textContent ?? ""),
  ]);
}

test("entry and exit pages are counted by visits", async () => {
  const rows = [
    { path: "/", visits: 3, visits_percentage: 0.6 },
    { path: "/about", visits: 2, visits_percentage: 0.4 },
  ];
  for (const name of ["entries", "exits"] as const) {
    const { root } = showRows(name, ALONE, { [name]: rows });
    assert.deepEqual(await rowsIn(root), [
      ["/", "3", "60%"],
      ["/about", "2", "40%"],
    ]);
  }
});

for (const [name, header, words] of [
  ["entries", 'visits="2025-03-10/2025-03-11"', "The visits of this period aren’t known"],
  ["entries", 'figures="2025-03-10/2025-03-11"', "No visits in this period"],
  // Views have sources without visits.
  ["referrers", 'visits="2025-03-10/2025-03-11"', "No visits in this period"],
] as const) {
  test(`a list without rows says whether it may be incomplete: ${name}, ${header}`, async () => {
    const { findByText } = showRows(name, ALONE, {
      [name]: Response.json([], { headers: { "X-Medamad-Partial": header } }),
    });
    await findByText(words);
  });
}

test("the pages before and after a page", async () => {
  const { person, getByRole, findByRole, asked } = showOnPage(
    <PageFlow path="/" />,
    `${ALONE}&path[eq]=/&browser[eq]=Firefox`,
    {
      previous: [
        { path: "", views: 3, views_percentage: 0.75 },
        { path: "/about", views: 1, views_percentage: 0.25 },
      ],
      next: [{ path: "", views: 4, views_percentage: 1 }],
    },
  );
  assert.deepEqual(await rowsIn(getByRole("region", { name: "Came before" })), [
    ["Beginning of the visit", "3", "75%"],
    ["/about", "1", "25%"],
  ]);
  const after = getByRole("region", { name: "Came after" });
  assert.deepEqual(await rowsIn(after), [["End of the visit", "4", "100%"]]);
  assert.equal(after.querySelector("tbody button"), null);
  assert.ok(getByRole("region", { name: "Before and after /" }));
  assert.deepEqual(
    asked.map(({ path, query }) => [path.replace(/.*\//, ""), query.get("of")]),
    [
      ["previous", "/"],
      ["next", "/"],
    ],
  );
  (await findByRole("button", { name: "/about" })).focus();
  await person.keyboard("{Enter}");
  assert.equal(location.search, `${ALONE}&path[eq]=/about&browser[eq]=Firefox`);
});

const SOURCES = {
  referrers: [
    { referrer: "", visitors: 4, visitors_percentage: 0.8 },
    { referrer: "news.example", visitors: 1, visitors_percentage: 0.2 },
  ],
};
const PARTIAL = 'visits="2025-03-10/2025-03-12"';

test("choosing a source again shows all", async () => {
  const { person, findByRole } = showRows(
    "referrers",
    `${ALONE}&visit_referrer[eq]=news.example`,
    SOURCES,
  );
  await person.click(await findByRole("button", { name: "news.example", pressed: true }));
  assert.equal(location.search, ALONE);
});

for (const [what, totals, keeps, filter] of [
  ["known", TOTALS, true, "visit_referrer[eq]="],
  ["known of some days", { ...TOTALS, partial: PARTIAL }, true, "visit_referrer[eq]="],
  [
    "unknown",
    { ...TOTALS, partial: PARTIAL, data: { current: { ...visited(5, 6, 1, 1), visits: 0 } } },
    true,
    "referrer[eq]=",
  ],
  ["not kept", TOTALS, false, "referrer[eq]="],
] as const) {
  test(`a source is that of visits or of views: visits are ${what}`, async () => {
    keepsVisits.value = keeps;
    const { person, findByRole } = showRows("referrers", ALONE, SOURCES, totals);
    await person.click(await findByRole("button", { name: "Direct / none" }));
    assert.equal(location.search, `${ALONE}&${filter}`);
  });
}

// The previous period.

const PAGES: Answers = {
  pages: ({ query }) =>
    (query.get("start") ?? "") < "2025-03-10"
      ? [{ path: "/", visitors: 2, visitors_percentage: 1 }]
      : [
          { path: "/", visitors: 3, visitors_percentage: 0.6 },
          { path: "/about", visitors: 1, visitors_percentage: 0.2 },
        ],
};

test("rows say how they changed", async () => {
  const { root, getAllByRole, asked } = showRows("pages", THREE_DAYS, PAGES);
  await waitFor(() => assert.ok(root.querySelector(".change")));
  assert.equal(getAllByRole("columnheader").at(-1)?.textContent, "Change");
  const [first, second] = root.querySelectorAll("tbody td:last-child");
  assert.equal(first?.querySelector("[aria-hidden]")?.textContent, "▲50%");
  assert.equal(first?.querySelector<HTMLElement>(".change")?.title, "2 in the comparison period");
  // Of nothing there is no percentage.
  assert.equal(second?.textContent, "");
  assert.equal(asked.at(-1)?.query.get("limit"), "200");
});

test("rows do not say how they changed if nothing is compared", async () => {
  const { root, getAllByRole, asked } = showRows("pages", ALONE, PAGES);
  assert.equal((await rowsIn(root))[0]?.length, 3);
  assert.equal(getAllByRole("columnheader").length, 3);
  assert.equal(asked.length, 1);
});
