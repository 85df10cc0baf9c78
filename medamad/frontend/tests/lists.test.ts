// The columns of full lists, their order, what a file has, and the links of rows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsOf, inOrder } from "../dashboard/panels/columns.ts";
import { writeCsv } from "../dashboard/panels/csv.ts";
import { addressOfPage, addressOfReferrer } from "../dashboard/panels/links.ts";
import { LISTINGS, type ListingName, type ListRow } from "../dashboard/panels/lists.ts";

const VIEWS = ["Visitors", "% of visitors", "Visits", "Visit bounce rate", "Views"];

for (const [name, labels] of [
  ["pages", ["Page", ...VIEWS, "% of views", "Left within 5 s", "Total time"]],
  [
    "entries",
    [
      "Entry page",
      "Visits",
      "% of visits",
      "Views per visit",
      "Visit bounce rate",
      "Time per visit",
    ],
  ],
  ["exits", ["Exit page", "Visits", "% of visits", "Exit rate"]],
  [
    "time",
    [
      "Page",
      "Total time",
      "Median time",
      "Lower quartile",
      "Upper quartile",
      "% of time",
      "Visitors",
    ],
  ],
  ["referrers", ["Referrer", ...VIEWS, "Left within 5 s", "Total time"]],
  ["locales", ["Language (regional)", ...VIEWS, "Left within 5 s", "Total time"]],
  ["properties", ["Property", "Events", "% of events"]],
  ["values", ["Property value", "Events", "% of events"]],
] as const) {
  test(`a list has every column: ${name}`, () => {
    const columns = columnsOf(LISTINGS[name], false, false);
    assert.deepEqual(
      columns.map(({ label }) => label),
      labels,
    );
  });
}

test("values of several properties have their names", () => {
  const [first, second] = columnsOf(LISTINGS.values, true, false);
  assert.deepEqual([first?.label, second?.label], ["Property", "Property value"]);
});

test("under a goal a list has conversions", () => {
  const columns = columnsOf(LISTINGS.pages, false, true);
  assert.deepEqual(
    columns.slice(-2).map(({ label }) => label),
    ["Conversions", "Conversion rate"],
  );
});

/** What a row's cells are on the page, and in a file. */
function written(name: ListingName, row: ListRow) {
  const columns = columnsOf(LISTINGS[name], false, false);
  return [columns.map(({ shown }) => shown(row)), columns.map(({ inFile }) => inFile(row))];
}

test("a file has figures as they are, shares in percent and seconds", () => {
  const [shown, inFile] = written("pages", {
    path: "/",
    ...{ visitors: 1_234, visitors_percentage: 0.3333, visits: 4, visit_bounce_percentage: 1 },
    ...{ pageviews: 4, pageviews_percentage: 0.3333, bounce_percentage: 0.25, duration: 63_000 },
  });
  assert.deepEqual(shown, ["/", "1,234", "33%", "4", "100%", "4", "33%", "25%", "1m 3s"]);
  assert.deepEqual(inFile, ["/", 1_234, 33.33, 4, 100, 4, 33.33, 25, 63]);
  const heads = columnsOf(LISTINGS.pages, false, false).map(({ fileLabel }) => fileLabel);
  assert.deepEqual(heads.slice(-2), ["Left within 5 s", "Total time (s)"]);
});

for (const [figures, shown, inFile] of [
  // Daily totals of before have no visits, and perhaps no times.
  [
    { visitors: 4, pageviews: 9, bounce_percentage: 0.2, duration: 0 },
    ["4", "–", "–", "–", "9", "20%", "–"],
    [4, "", "", "", 9, 20, ""],
  ],
  [
    { visitors: 2, pageviews: 3, bounce_percentage: 0, duration: 0, visits: 0 },
    ["2", "–", "0", "–", "3", "–", "–"],
    [2, "", 0, "", 3, "", ""],
  ],
] as const) {
  test(`what is unknown is no number: ${JSON.stringify(figures)}`, () => {
    const [cells, file] = written("countries", { country: "Chad", ...figures });
    assert.deepEqual(cells, ["Chad", ...shown]);
    assert.deepEqual(file, ["Chad", ...inFile]);
  });
}

test("rows are sorted by a column, stably", () => {
  const rows = [
    { path: "/b10", visitors: 2, duration: 0 },
    { path: "/b9", visitors: 2, duration: 2 },
    { path: "/a", visitors: 3, duration: 1 },
  ];
  const columns = columnsOf(LISTINGS.pages, false, false);
  const sorted = (name: string, falls: boolean) => {
    const column = columns.find((one) => one.name === name);
    assert.ok(column);
    return inOrder(rows, column, falls).map(({ path }) => path);
  };
  assert.deepEqual(sorted("path", false), ["/a", "/b9", "/b10"]);
  assert.deepEqual(sorted("path", true), ["/b10", "/b9", "/a"]);
  assert.deepEqual(sorted("visitors", true), ["/a", "/b10", "/b9"]);
  assert.deepEqual(sorted("visitors", false), ["/b10", "/b9", "/a"]);
  // An unknown time is less than any.
  assert.deepEqual(sorted("time", false), ["/b10", "/a", "/b9"]);
});

for (const [cell, written] of [
  ["plain", "plain"],
  [12.5, "12.5"],
  [-1, "-1"],
  ["/a,b", '"/a,b"'],
  ['say "hi"', '"say ""hi"""'],
  ["two\nlines", '"two\nlines"'],
  // A spreadsheet would take these for formulas, and split some at semicolons.
  ["=1+1", "'=1+1"],
  ["+1", "'+1"],
  ["-1", "'-1"],
  ["@x", "'@x"],
  ["'quoted", "''quoted"],
  ['"=1"', '"\'""=1"""'],
  ["\uff1d1", "'\uff1d1"],
  ["=1+1;=2", "'=1+1;'=2"],
  ["a\t=1", "a\t'=1"],
  ["/=1+1", "/=1+1"],
] as const) {
  test(`a cell of a file is safe in a spreadsheet: ${JSON.stringify(cell)}`, () => {
    assert.equal(writeCsv([[cell, 0]]), `${written},0\r\n`);
  });
}

for (const [path, address] of [
  ["/", "https://past.example/"],
  ["/a b", "https://past.example/a%20b"],
  ["/<img src=x onerror=alert(1)>", "https://past.example/%3Cimg%20src=x%20onerror=alert(1)%3E"],
  [
    "/100%/a,b&path[eq]=c#d+e?f=g;h  i",
    "https://past.example/100%25/a,b&path[eq]=c%23d+e%3Ff=g;h%20%20i",
  ],
  ["//other.example/", "https://past.example//other.example/"],
  ["/\\other.example", "https://past.example/%5Cother.example"],
  ["javascript:alert(1)", undefined],
  ["(other)", undefined],
  ["", undefined],
] as const) {
  test(`a link to a page stays on the website: ${path}`, () => {
    assert.equal(addressOfPage("past.example", path), address);
  });
}

for (const [referrer, address] of [
  ["blog.example", "https://blog.example/"],
  ["blog.example/post/1", "https://blog.example/post/1"],
  ["xn--bcher-kva.example/a", "https://xn--bcher-kva.example/a"],
  [
    'blog.example/"><script>broken</script>',
    "https://blog.example/%22%3E%3Cscript%3Ebroken%3C/script%3E",
  ],
  ["Google", undefined],
  ["javascript:document.title='broken'", undefined],
  ["javascript:alert(1)/.example", undefined],
  ["data:text/html,broken", undefined],
  ["user@blog.example", undefined],
  ["", undefined],
] as const) {
  test(`a link to a referrer is one of https, or none: ${referrer}`, () => {
    assert.equal(addressOfReferrer(referrer), address);
  });
}
