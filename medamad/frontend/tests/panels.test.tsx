// The panels of a website's page, and their rows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fireEvent, waitFor, within } from "@testing-library/dom";
import { speak } from "../dashboard/i18n/index.ts";
import { LISTINGS, type ListingName } from "../dashboard/panels/lists.ts";
import { Panels } from "../dashboard/panels/panels.tsx";
import { PropertiesPanel } from "../dashboard/panels/properties.tsx";
import { Rows } from "../dashboard/panels/rows.tsx";
import { TotalsContext } from "../dashboard/panels/totals.ts";
import { World } from "../dashboard/panels/world.tsx";
import { countsVisitors, keepsVisits } from "../dashboard/view/visits.ts";
import { HOSTILE, KNOWN, RIGHT_TO_LEFT, SUMMARY, TOTALS } from "./support/known.ts";
import { type Answers, type Asked, HOSTNAME, type Shown, showOnPage } from "./support/page.tsx";

const WEEK = "?period=7d&compare=none";

const PANELS = {
  Pages: {
    Top: ["pages", "Pages"],
    Entry: ["entries", "Entry pages"],
    Exit: ["exits", "Exit pages"],
    Time: ["time", "Pages by time on page"],
  },
  Referrers: {
    Referrers: ["referrers", "Referrers"],
    Campaigns: ["sources", "UTM source"],
  },
  Locations: {
    Map: ["countries", "Countries"],
    Countries: ["countries", "Countries"],
    Languages: ["languages", "Languages"],
    "Languages (regional)": ["languages?locale", "Languages (regional)"],
  },
  Technology: {
    Browsers: ["browsers", "Browsers"],
    "Operating systems": ["os", "Operating systems"],
    Devices: ["devices", "Devices"],
  },
} as const;

/** Show the rows of a list alone. */
function showRows(name: ListingName, query = WEEK, answers: Answers = KNOWN): Shown {
  return showOnPage(
    <TotalsContext.Provider value={TOTALS}>
      <Rows listing={LISTINGS[name]} />
    </TotalsContext.Provider>,
    query,
    answers,
  );
}

/** The rows below an element, once there are any: names, figures and shares. */
async function rowsIn(place: HTMLElement): Promise<string[][]> {
  await within(place).findByRole("table");
  return [...place.querySelectorAll("tbody tr")].map((row) => [
    row.querySelector("th button")?.textContent ?? "",
    ...[...row.querySelectorAll("td")].map(({ textContent }) => textContent),
  ]);
}

function panelOf(shown: Shown, title: string) {
  const panel = shown.getByRole("region", { name: title });
  return {
    ...within(panel),
    panel,
    tab: (name: string) => within(panel).getByRole("tab", { name }),
    isSelected: (name: string) => within(panel).queryByRole("tab", { name, selected: true }),
  };
}

test("each tab of each panel has its list", async () => {
  const shown = showOnPage(<Panels />, WEEK, KNOWN);
  for (const [title, tabs] of Object.entries(PANELS)) {
    const { tab, isSelected, ...panel } = panelOf(shown, title);
    assert.deepEqual(
      panel.getAllByRole("tab").map(({ textContent }: HTMLElement) => textContent),
      Object.keys(tabs),
    );
    for (const [name, [statistic, list]] of Object.entries(tabs)) {
      await shown.person.click(tab(name));
      assert.ok(isSelected(name));
      assert.ok(panel.getByRole("tabpanel", { name }));
      assert.ok(panel.getByRole("button", { name: `Show all: ${list}` }));
      await panel.findByRole(name === "Map" ? "img" : "table");
      const requests = shown.asked.map(
        ({ path, query }) => path + (query.has("locale") ? "?locale" : ""),
      );
      assert.ok(requests.includes(`website/${HOSTNAME}/${statistic}`), name);
    }
  }
});

for (const [name, rows] of [
  [
    "pages",
    [
      ["/", "4", "33%"],
      ["/about", "3", "25%"],
      [HOSTILE, "1", "8.3%"],
      ["/=1+1", "1", "8.3%"],
      ["/a,b", "1", "8.3%"],
      [RIGHT_TO_LEFT, "1", "8.3%"],
    ],
  ],
  [
    "time",
    [
      ["/", "1m 3s", "20s"],
      ["/a,b", "1m 0s", "1m 0s"],
      ["/about", "1m 0s", "20s"],
    ],
  ],
  [
    "referrers",
    [
      ["Direct / none", "7", "58%"],
      ["blog.example", "3", "25%"],
      ["Google", "2", "17%"],
    ],
  ],
  [
    "sources",
    [
      ["(none)", "11", "92%"],
      ["news", "1", "8.3%"],
    ],
  ],
  [
    "countries",
    [
      ["Germany", "10", "83%"],
      ["Singapore", "1", "8.3%"],
      ["United States", "1", "8.3%"],
    ],
  ],
  [
    "locales",
    [
      ["Swiss High German", "10", "83%"],
      ["American English", "1", "8.3%"],
      ["British English", "1", "8.3%"],
    ],
  ],
  ["devices", [["Desktop", "12", "100%"]]],
  [
    "hosting",
    [
      ["Other network", "10", "83%"],
      ["Hosting provider’s network", "2", "17%"],
    ],
  ],
  ["properties", [["plan", "4", "100%"]]],
] as const) {
  test(`rows have a name, a figure and a share: ${name}`, async () => {
    const { root } = showRows(name);
    assert.deepEqual(await rowsIn(root), rows);
  });
}

for (const [name, value, filter] of [
  ["pages", "/about", "path[eq]=/about"],
  ["entries", "/about", "entry_page[eq]=/about"],
  ["exits", "/about", "exit_page[eq]=/about"],
  ["time", "/a,b", "path[eq]=/a,b"],
  ["referrers", "Direct / none", "visit_referrer[eq]="],
  ["addresses", "blog.example/post/2", "visit_referrer[eq]=blog.example/post/2"],
  ["sources", "news", "visit_utm_source[eq]=news"],
  ["mediums", "(none)", "visit_utm_medium[eq]="],
  ["campaigns", "(none)", "visit_utm_campaign[eq]="],
  ["terms", "(none)", "utm_term[eq]="],
  ["contents", "(none)", "utm_content[eq]="],
  ["countries", "United States", "country[eq]=United+States"],
  ["languages", "German", "language[eq]=German"],
  ["locales", "British English", "language[eq]=British+English"],
  ["browsers", "Chrome", "browser[eq]=Chrome"],
  ["os", "Linux", "os[eq]=Linux"],
  ["devices", "Desktop", "device[eq]=Desktop"],
  ["hosting", "Hosting provider’s network", "hosting[eq]=true"],
] as const) {
  test(`a row is a filter: ${filter}`, async () => {
    const { person, findByRole, getByRole } = showRows(name);
    await person.click(await findByRole("button", { name: value, pressed: false }));
    assert.equal(location.search, `${WEEK}&${filter}`);
    await person.click(await findByRole("button", { name: value, pressed: true }));
    assert.equal(location.search, WEEK);
    assert.ok(getByRole("button", { name: value, pressed: false }));
  });
}

test("the row of a filter is chosen however its value is written", async () => {
  const { person, findByRole } = showRows("browsers", `${WEEK}&browser[eq]=firefox`);
  await person.click(await findByRole("button", { name: "Firefox", pressed: true }));
  assert.equal(location.search, WEEK);
});

test("rows are requested under the filters", async () => {
  const { asked } = showRows("browsers", `${WEEK}&path[eq]=/`);
  assert.equal(asked[0]?.query.get("path[eq]"), "/");
  assert.equal(asked[0]?.query.get("summary"), "true");
  assert.equal(asked[0]?.query.get("limit"), "9");
});

function inOrderOf({ query }: Asked) {
  return (
    {
      null: [
        { browser: "Two", visitors: 1, visitors_percentage: 0.5 },
        { browser: "One", visitors: 1, visitors_percentage: 0.5 },
        { browser: "Three", visitors: 0, visitors_percentage: 0 },
      ],
      pageviews: [
        { browser: "Three", visitors: 0, pageviews: 5 },
        { browser: "Two", visitors: 1, pageviews: 3 },
        { browser: "One", visitors: 1, pageviews: 1 },
      ],
      visits: [
        { browser: "Two", visitors: 1, visits: 1, visits_percentage: 0.5 },
        { browser: "One", visitors: 1, visits: 1, visits_percentage: 0.5 },
        { browser: "Three", visitors: 0, visits: 0, visits_percentage: 0 },
      ],
    }[String(query.get("order"))] ?? []
  );
}

const ORDERED: Answers = { browsers: inOrderOf };

test("rows are sorted by visitors, views or visits", async () => {
  const { root, asked, person, getByRole, findByRole } = showRows("browsers", WEEK, ORDERED);
  // Nobody came with Three first.
  assert.deepEqual(await rowsIn(root), [
    ["Two", "1", "50%"],
    ["One", "1", "50%"],
  ]);
  await person.click(getByRole("button", { name: "Visitors" }));
  assert.equal(asked.at(-1)?.query.get("views"), "true");
  await waitFor(async () =>
    assert.deepEqual(await rowsIn(root), [
      ["Three", "5", "42%"],
      ["Two", "3", "25%"],
      ["One", "1", "8.3%"],
    ]),
  );
  await person.click(await findByRole("button", { name: "Views" }));
  assert.equal(asked.at(-1)?.query.get("visits"), "true");
  await waitFor(async () =>
    assert.deepEqual(await rowsIn(root), [
      ["Two", "1", "50%"],
      ["One", "1", "50%"],
    ]),
  );
  await person.click(await findByRole("button", { name: "Visits" }));
  assert.ok(await findByRole("button", { name: "Visitors" }));
});

test("rows are sorted by visits where visitors are not counted", async () => {
  countsVisitors.value = false;
  const { root, asked, person, findByRole } = showRows("browsers", WEEK, ORDERED);
  assert.deepEqual(await rowsIn(root), [
    ["Two", "1", "50%"],
    ["One", "1", "50%"],
  ]);
  assert.equal(asked[0]?.query.get("order"), "visits");
  await person.click(await findByRole("button", { name: "Visits" }));
  await person.click(await findByRole("button", { name: "Views" }));
  assert.ok(await findByRole("button", { name: "Visits" }));
});

test("until rows in another order come, their figures are unknown", async () => {
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const browsers = async (asked: Asked) => {
    if (asked.query.get("order") === "pageviews") await answered;
    return inOrderOf(asked);
  };
  const { root, person, findByRole, findByText } = showRows("browsers", WEEK, { browsers });
  await person.click(await findByRole("button", { name: "Visitors" }));
  await findByRole("button", { name: "Views" });
  assert.deepEqual(await rowsIn(root), [
    ["Two", "–", "–"],
    ["One", "–", "–"],
    ["Three", "–", "–"],
  ]);
  answer();
  await findByText("5");
});

test("the order of rows is remembered", async () => {
  const { person, findByRole } = showRows("browsers", WEEK, ORDERED);
  await person.click(await findByRole("button", { name: "Visitors" }));
  const later = showRows("browsers", WEEK, ORDERED);
  assert.equal(later.asked[0]?.query.get("order"), "pageviews");
});

test("sources are those of visits, where visits are known", async () => {
  const referrers = ({ query }: Asked) =>
    query.get("order") === "visits"
      ? [
          { referrer: "", visitors: 1, visits: 3, visits_percentage: 0.75 },
          { referrer: "one.example", visitors: 1, visits: 1, visits_percentage: 0.25 },
          // Of a view within a visit.
          { referrer: "two.example", visitors: 1, visits: 0, visits_percentage: 0 },
        ]
      : [{ referrer: "", visitors: 2, visitors_percentage: 1 }];
  const { root, asked } = showRows("referrers", WEEK, { referrers });
  assert.deepEqual(await rowsIn(root), [
    ["Direct / none", "3", "75%"],
    ["one.example", "1", "25%"],
  ]);
  assert.equal(asked[0]?.query.get("visits"), "true");
  assert.equal(root.querySelector("thead")?.textContent, "ReferrerVisitsShare");
  keepsVisits.value = false;
  const without = showRows("referrers", WEEK, { referrers });
  assert.deepEqual(await rowsIn(without.root), [["Direct / none", "2", "100%"]]);
});

test("rows of later views alone are shown", async () => {
  const { root } = showRows("browsers", WEEK, {
    browsers: [{ browser: "Three", visitors: 0, visitors_percentage: 0 }],
  });
  assert.deepEqual(await rowsIn(root), [["Three", "0", "0%"]]);
});

test("a page has its share of all visitors, if these are among them", async () => {
  const { root } = showRows("pages", WEEK, {
    pages: [
      { path: "/", visitors: 12, visitors_percentage: 0.4 },
      { path: "/a", visitors: 6, visitors_percentage: 0.2 },
      // These saw another page first, which the filters do not let through.
      { path: "/b", visitors: 13, visitors_percentage: 0.4 },
    ],
  });
  assert.deepEqual(await rowsIn(root), [
    ["/", "12", "100%"],
    ["/a", "6", "50%"],
    ["/b", "13", "–"],
  ]);
});

test("bars are as long as their shares", async () => {
  const { root } = showRows("pages");
  await rowsIn(root);
  const widths = [...root.querySelectorAll<HTMLElement>(".row-bar")].map(
    ({ style }) => style.width,
  );
  assert.deepEqual(widths, ["100%", "75%", ...Array.from({ length: 4 }, () => "25%")]);
});

test("the addresses behind a referrer are shown, and all referrers again", async () => {
  const shown = showOnPage(<Panels />, WEEK, KNOWN);
  const { panel, findByRole } = panelOf(shown, "Referrers");
  await shown.person.click(await findByRole("button", { name: "Show URLs of blog.example" }));
  await findByRole("button", { name: "blog.example/post/1" });
  assert.deepEqual(await rowsIn(panel), [
    ["blog.example/post/2", "2", "67%"],
    ["blog.example/post/1", "1", "33%"],
  ]);
  const request = shown.asked.find(({ query }) => query.get("grouped") === "false");
  assert.equal(request?.query.get("visit_referrer[eq]"), "blog.example");
  await findByRole("button", { name: "Show all: Referrer URLs" });
  assert.equal(document.activeElement, await findByRole("button", { name: "All referrers" }));
  await shown.person.keyboard("{Enter}");
  await findByRole("button", { name: "Direct / none" });
  assert.equal((await rowsIn(panel)).length, 3);
});

test("the values of a property are shown, and one is a filter", async () => {
  const { root, person, findByRole } = showOnPage(<PropertiesPanel />, WEEK, KNOWN);
  await person.click(await findByRole("button", { name: "plan" }));
  assert.ok(await findByRole("button", { name: "All properties" }));
  await findByRole("button", { name: "pro" });
  assert.deepEqual(await rowsIn(root), [
    ["pro", "3", "75%"],
    ["=1+1;=2", "1", "25%"],
  ]);
  await person.click(await findByRole("button", { name: "pro", pressed: false }));
  assert.equal(location.search, `${WEEK}&prop_name[eq]=plan&prop_value[eq]=pro`);
  await person.click(await findByRole("button", { name: "pro", pressed: true }));
  assert.equal(location.search, WEEK);
});

test("the tab of campaigns has a list for each part of their links", async () => {
  const shown = showOnPage(<Panels />, WEEK, KNOWN);
  const { panel, tab, isSelected, ...inPanel } = panelOf(shown, "Referrers");
  const choose = async (kind: string) => {
    await shown.person.click(inPanel.getByRole("button", { name: /^Campaigns by: / }));
    await shown.person.click(inPanel.getByRole("menuitemradio", { name: kind }));
  };
  for (const [kind, statistic] of [
    ["UTM medium", "mediums"],
    ["UTM campaign", "campaigns"],
    ["UTM term", "terms"],
    ["UTM content", "contents"],
    ["UTM source", "sources"],
  ] as const) {
    await choose(kind);
    assert.ok(isSelected("Campaigns"));
    assert.ok(inPanel.getByRole("button", { name: `Campaigns by: ${kind}` }));
    assert.ok(inPanel.getByRole("button", { name: `Show all: ${kind}` }));
    await inPanel.findByRole("columnheader", { name: kind });
    assert.ok(
      shown.asked.some(({ path }) => path === `website/${HOSTNAME}/${statistic}`),
      kind,
    );
  }
  // The last kind is remembered, by the tab and for the next time.
  await choose("UTM term");
  await shown.person.click(tab("Referrers"));
  await inPanel.findByRole("columnheader", { name: "Referrer" });
  await shown.person.click(tab("Campaigns"));
  await inPanel.findByRole("columnheader", { name: "UTM term" });
  const later = panelOf(showOnPage(<Panels />, WEEK, KNOWN), "Referrers");
  assert.ok(later.isSelected("Campaigns"));
  await later.findByRole("columnheader", { name: "UTM term" });
});

test("networks have a tab where the server knows those of hosting providers", async () => {
  const answers = { ...KNOWN, summary: { ...SUMMARY, hosting_known: true } };
  const shown = showOnPage(<Panels />, WEEK, answers);
  await shown.findByRole("tab", { name: "Networks" });
  const { panel, tab } = panelOf(shown, "Technology");
  await shown.person.click(tab("Networks"));
  await waitFor(async () => assert.equal((await rowsIn(panel))[0]?.[0], "Other network"));
  const without = showOnPage(<Panels />, WEEK, KNOWN);
  await waitFor(() => assert.equal(without.queryByRole("tab", { name: "Networks" }), null));
  assert.ok(panelOf(without, "Technology").isSelected("Browsers"));
});

test("arrow keys move between tabs, and the last one is remembered", async () => {
  const shown = showOnPage(<Panels />, WEEK, KNOWN);
  const { panel, tab, isSelected } = panelOf(shown, "Technology");
  tab("Browsers").focus();
  for (const [key, name] of [
    ["{ArrowLeft}", "Devices"],
    ["{ArrowRight}", "Browsers"],
    ["{End}", "Devices"],
    ["{Home}", "Browsers"],
    ["{ArrowRight}", "Operating systems"],
  ] as const) {
    await shown.person.keyboard(key);
    assert.equal(document.activeElement, tab(name));
    assert.ok(isSelected(name));
  }
  await waitFor(async () => assert.equal((await rowsIn(panel))[0]?.[0], "Linux"));
  // Elsewhere on the page they change the period.
  assert.equal(location.search, WEEK);
  const later = panelOf(showOnPage(<Panels />, WEEK, KNOWN), "Technology");
  assert.ok(later.isSelected("Operating systems"));
});

test("the map is shaded by visitors, and a country is a filter", async () => {
  const { root, person, findByText } = showOnPage(<World />, WEEK, KNOWN);
  const country = (code: string) => root.querySelector(`[data-code=${code}]`) as SVGPathElement;
  await waitFor(() => assert.equal(country("DE").getAttribute("data-step"), "5"));
  assert.equal(country("SG").getAttribute("data-step"), "2");
  assert.equal(country("FR").getAttribute("data-step"), "0");
  fireEvent.pointerMove(country("DE"));
  assert.equal(
    (await findByText("Germany")).parentElement?.textContent,
    "Germany10 visitors · 83%",
  );
  fireEvent.pointerMove(country("FR"));
  assert.equal((await findByText("France")).parentElement?.textContent, "France0 visitors");
  await person.click(country("DE"));
  assert.equal(location.search, `${WEEK}&country[eq]=Germany`);
  assert.ok(country("DE").hasAttribute("data-chosen"));
  assert.ok(!country("SG").hasAttribute("data-chosen"));
});

test("visitors whose country is unknown are below the map", async () => {
  const { findByText } = showOnPage(<World />, WEEK, {
    countries: [{ country: "Unknown", visitors: 2, visitors_percentage: 1 }],
  });
  await findByText("2 visitors from unknown countries");
});

test("rows link to pages and referrers safely, and show markup as text", async () => {
  const page = showRows("pages");
  await rowsIn(page.root);
  const link = page.getByRole("link", { name: `Open ${HOSTILE} in a new tab` });
  assert.equal(
    link.getAttribute("href"),
    `https://${HOSTNAME}/%3Cimg%20src=x%20onerror=alert(1)%3E`,
  );
  assert.equal(link.getAttribute("rel"), "noopener noreferrer");
  assert.ok(!page.root.querySelector("img"));
});

test("only what is an address is a link", async () => {
  const { root, getAllByRole } = showRows("referrers");
  await rowsIn(root);
  const links = getAllByRole("link");
  assert.deepEqual(
    links.map((link: HTMLElement) => [link.getAttribute("href"), link.getAttribute("rel")]),
    [["https://blog.example/", "noopener noreferrer"]],
  );
});

for (const [name, rows, filter] of [
  ["countries", ["Deutschland", "Singapur", "Vereinigte Staaten"], "country[eq]=Germany"],
  ["languages", ["Deutsch", "Englisch"], "language[eq]=German"],
  [
    "locales",
    ["Schweizer Hochdeutsch", "Englisch (Vereinigte Staaten)", "Englisch (Vereinigtes Königreich)"],
    "language[eq]=Swiss+High+German",
  ],
  ["devices", ["Desktop"], "device[eq]=Desktop"],
  ["hosting", ["Anderes Netz", "Netz eines Hosting-Anbieters"], "hosting[eq]=false"],
] as const) {
  test(`names are translated: ${name}`, async () => {
    await speak("de");
    const { root, person, findByRole } = showRows(name);
    await person.click(await findByRole("button", { name: rows[0] }));
    assert.equal(location.search, `${WEEK}&${filter}`);
    assert.ok(await findByRole("button", { name: rows[0], pressed: true }));
    assert.deepEqual(
      (await rowsIn(root)).map(([word]) => word),
      rows,
    );
  });
}

test("a tiny share is not nothing", async () => {
  const { root } = showRows("browsers", WEEK, {
    browsers: [
      { browser: "Chrome", visitors: 9_999, visitors_percentage: 0.9996 },
      { browser: "Lynx", visitors: 1, visitors_percentage: 0.0004 },
    ],
  });
  assert.deepEqual(await rowsIn(root), [
    ["Chrome", "9,999", "100%"],
    ["Lynx", "1", "<0.1%"],
  ]);
});

test("empty panels say what will be in them, unless filters empty them", async () => {
  const nothing = Object.fromEntries(
    [...Object.keys(KNOWN), "live"].map((name) => [name, name === "summary" ? SUMMARY : []]),
  );
  const shown = showOnPage(<Panels />, "", nothing);
  const { panel, findByText } = panelOf(shown, "Pages");
  await findByText("No visits in this period");
  assert.match(panel.textContent ?? "", /The pages that visitors open will appear here\./);
  await shown.findByText("No properties in this period");
  const filtered = panelOf(showOnPage(<Panels />, "?browser[eq]=Lynx", nothing), "Pages");
  await filtered.findByText("No visits in this period");
  assert.doesNotMatch(filtered.panel.textContent ?? "", /will appear here/);
});
