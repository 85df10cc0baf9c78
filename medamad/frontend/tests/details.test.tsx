// A full list: search, order, pages and download.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { fireEvent, waitFor, within } from "@testing-library/dom";
import { speak } from "../dashboard/i18n/index.ts";
import { Details } from "../dashboard/panels/details.tsx";
import { Frame } from "../dashboard/panels/frame.tsx";
import { LISTINGS, type ListingName } from "../dashboard/panels/lists.ts";
import { TotalsContext } from "../dashboard/panels/totals.ts";
import { HOSTILE, KNOWN, PAGES, TOTALS } from "./support/known.ts";
import { type Answers, showOnPage } from "./support/page.tsx";

const WEEK = "?period=7d&compare=none";

interface Options {
  query?: string;
  answers?: Answers;
  of?: string;
}

/** Show the full list alone, and wait for its rows. */
async function showList(name: ListingName, { query = WEEK, answers = KNOWN, of }: Options = {}) {
  const shown = showOnPage(
    <TotalsContext.Provider value={TOTALS}>
      <Details
        listing={LISTINGS[name]}
        further={of === undefined ? {} : { "prop_name[eq]": of }}
        {...(of !== undefined && { of })}
        onClose={() => {}}
      />
    </TotalsContext.Provider>,
    query,
    answers,
  );
  const dialog = within(await shown.findByRole("dialog"));
  await dialog.findByRole("table");
  const heads = () => dialog.getAllByRole<HTMLElement>("columnheader");
  return {
    ...shown,
    dialog,
    head: (label: string) =>
      heads().find(({ textContent }) => textContent === label) as HTMLElement,
    sortBy: (label: string) => shown.person.click(dialog.getByText(label, { selector: "button" })),
    search: () => dialog.getByRole<HTMLInputElement>("searchbox"),
    count: () => dialog.getByRole("status").textContent,
    column: (label: string) => {
      const place = heads().findIndex(({ textContent }) => textContent === label);
      return [...shown.root.querySelectorAll("tbody tr")].map(
        ({ children }) => children[place]?.querySelector("bdi")?.textContent,
      );
    },
  };
}

/** Press the button that downloads a list; returns the file's name and rows. */
async function download(list: Awaited<ReturnType<typeof showList>>) {
  let table: Blob | undefined;
  let name = "";
  mock.method(URL, "createObjectURL", (made: Blob) => {
    table = made;
    return "blob:table";
  });
  mock.method(URL, "revokeObjectURL", () => {});
  mock.method(HTMLAnchorElement.prototype, "click", function (this: HTMLAnchorElement) {
    name = this.download;
    assert.equal(this.href, "blob:table");
  });
  mock.timers.enable({ apis: ["setTimeout"] });
  fireEvent.click(list.dialog.getByRole("button", { name: "Download CSV" }));
  mock.timers.runAll();
  mock.timers.reset();
  const bytes = new Uint8Array((await table?.arrayBuffer()) ?? []);
  // Excel takes it for UTF-8 by this mark alone.
  assert.deepEqual([...bytes.slice(0, 3)], [0xef, 0xbb, 0xbf]);
  const lines = new TextDecoder().decode(bytes).split("\r\n");
  return { name, head: lines[0], rows: lines.slice(1, -1) };
}

test("a full list has every figure of its rows", async () => {
  const { root, asked, dialog } = await showList("pages");
  assert.ok(dialog.getByRole("heading", { name: "Pages" }));
  const [first] = root.querySelectorAll("tbody tr");
  assert.deepEqual(
    [...(first?.children ?? [])].map((cell) => cell.querySelector("bdi")?.textContent),
    ["/", "4", "33%", "4", "100%", "4", "33%", "25%", "1m 3s"],
  );
  const query = Object.fromEntries(asked[0]?.query ?? []);
  assert.equal(query.views, "true");
  assert.equal(query.visits, "true");
  assert.equal(query.limit, "5000");
});

test("a list of times has medians and quartiles", async () => {
  const { column, asked } = await showList("time");
  assert.equal(Object.fromEntries(asked[0]?.query ?? []).total, "true");
  assert.deepEqual(column("Page"), ["/", "/a,b", "/about"]);
  assert.deepEqual(column("Total time"), ["1m 3s", "1m 0s", "1m 0s"]);
  assert.deepEqual(column("Median time"), ["20s", "1m 0s", "20s"]);
  assert.deepEqual(column("Lower quartile"), ["16s", "1m 0s", "20s"]);
  assert.deepEqual(column("% of time"), ["24%", "23%", "23%"]);
});

test("a list is sorted by a column, and in reverse", async () => {
  const { head, sortBy, column } = await showList("pages");
  const order = (label: string) => head(label).getAttribute("aria-sort");
  assert.equal(order("Visitors"), "descending");
  await sortBy("Page");
  assert.equal(order("Page"), "ascending");
  assert.equal(order("Visitors"), "none");
  const rising = column("Page");
  await sortBy("Page");
  assert.equal(order("Page"), "descending");
  assert.deepEqual(column("Page"), rising.toReversed());
  await sortBy("Total time");
  assert.equal(order("Total time"), "descending");
  assert.deepEqual(column("Total time").slice(0, 3), ["1m 3s", "1m 0s", "1m 0s"]);
  assert.equal(column("Page")[0], "/");
});

test("a list is searched, and shares stay those of all", async () => {
  const { person, search, count, column, dialog } = await showList("pages");
  assert.equal(count(), "6 rows");
  await person.type(search(), "ABO");
  assert.equal(count(), "1 row");
  assert.deepEqual(column("Page"), ["/about"]);
  assert.deepEqual(column("% of visitors"), ["25%"]);
  await person.clear(search());
  await person.type(search(), "nowhere");
  assert.ok(dialog.getByText("No results for “nowhere”."));
  assert.ok(dialog.getByRole<HTMLButtonElement>("button", { name: "Download CSV" }).disabled);
});

test("names are searched in both languages", async () => {
  await speak("de");
  const { person, search, root } = await showList("countries");
  await waitFor(() => assert.match(root.textContent ?? "", /Vereinigte Staaten/));
  for (const typed of ["vereinigte", "united"]) {
    await person.clear(search());
    await person.type(search(), typed);
    assert.equal(root.querySelector("tbody")?.textContent?.startsWith("Vereinigte Staaten"), true);
    assert.equal(root.querySelectorAll("tbody tr").length, 1);
  }
});

test("a row is a filter, and the focus returns to what opened the list", async () => {
  const { person, findByRole, queryByRole } = showOnPage(
    <Frame title="Pages" listing={LISTINGS.pages}>
      rows
    </Frame>,
    WEEK,
    KNOWN,
  );
  await person.click(await findByRole("button", { name: "Show all: Pages" }));
  await person.click(await findByRole("button", { name: HOSTILE }));
  assert.ok(!queryByRole("dialog"));
  assert.equal(new URLSearchParams(location.search).get("path[eq]"), HOSTILE);
  assert.equal(document.activeElement, await findByRole("button", { name: "Show all: Pages" }));
});

test("text of hits is shown as it is", async () => {
  const value = "javascript:document.title='broken'//<img src=x>";
  const { root, dialog } = await showList("values", {
    of: "<b>name",
    answers: { properties: [{ name: "<b>name", value, events: 1, events_percentage: 1 }] },
  });
  assert.ok(dialog.getByRole("heading", { name: "Property values: <b>name" }));
  assert.ok(dialog.getByRole("button", { name: value }));
  assert.ok(!root.querySelector("img, b, a"));
});

test("a list is downloaded for the days of its period", async () => {
  const query = "?from=2025-03-06&to=2025-03-12&zone=Asia/Tokyo";
  const { name, head, rows } = await download(await showList("pages", { query }));
  assert.equal(name, "past.example-pages-2025-03-06-2025-03-12.csv");
  assert.equal(
    head,
    "Page,Visitors,% of visitors,Visits,Visit bounce rate,Views,% of views,Left within 5 s,Total time (s)",
  );
  assert.deepEqual(rows.slice(0, 2), [
    "/,4,33.33,4,100,4,33.33,25,63",
    "/about,3,25,3,100,3,25,0,60",
  ]);
  assert.equal(rows[4], '"/a,b",1,8.33,1,100,1,8.33,0,60');
  assert.equal(rows.length, PAGES.length);
});

test("a download has the rows that were found, in their order", async () => {
  const list = await showList("values", { of: "plan" });
  await list.sortBy("Property value");
  const all = await download(list);
  assert.match(all.name, /^past\.example-values-plan-/);
  assert.deepEqual(all.rows, ["'=1+1;'=2,1,25", "pro,3,75"]);
  await list.person.type(list.search(), "pro");
  assert.deepEqual((await download(list)).rows, ["pro,3,75"]);
});

test("visits that are unknown are not 0", async () => {
  const countries = [{ country: "Chad", visitors: 2, visitors_percentage: 1, visits: 0 }];
  const headers = { "X-Medamad-Partial": 'visits="2025-03-01/2025-03-02"' };
  const { column } = await showList("countries", {
    answers: { countries: Response.json(countries, { headers }) },
  });
  assert.deepEqual(column("Visits"), ["–"]);
});

/** As many values of two properties as there are, each of one event: 000, 001 … */
function valuesOf(count: number) {
  return ["p00", "p01"].flatMap((name) =>
    Array.from({ length: count }, (_nothing, place) => ({
      name,
      value: String(place).padStart(3, "0"),
      events: 1,
      events_percentage: 1 / count,
    })),
  );
}

test("a long list has pages", async () => {
  const { person, root, dialog, column, sortBy, search } = await showList("values", {
    answers: { properties: valuesOf(170) },
  });
  const before = dialog.getByTitle<HTMLButtonElement>("Previous");
  const after = dialog.getByTitle<HTMLButtonElement>("Next");
  const shows = (text: RegExp) => assert.ok(dialog.getByText(text));
  shows(/^1.100 of 340$/);
  assert.equal(root.querySelectorAll("tbody tr").length, 100);
  assert.equal(column("Property")[0], "p00");
  assert.ok(before.disabled);
  await person.click(after);
  shows(/^101.200 of 340$/);
  assert.deepEqual([column("Property")[0], column("Property value")[0]], ["p00", "100"]);
  await person.click(before);
  shows(/^1.100 of 340$/);
  for (const _ of [1, 2, 3]) await person.click(after);
  shows(/^301.340 of 340$/);
  assert.equal(root.querySelectorAll("tbody tr").length, 40);
  assert.ok(after.disabled);
  // Another order, and a search, begin at their beginning.
  await sortBy("Property value");
  shows(/^1.100 of 340$/);
  assert.deepEqual(column("Property value").slice(0, 3), ["000", "000", "001"]);
  await person.click(after);
  await person.type(search(), "p01");
  shows(/^1.100 of 170$/);
});

test("a list at the limit is searched by the server, and shares stay those of all", async () => {
  const all = Array.from({ length: 5_000 }, (_nothing, place) => ({
    name: "plan",
    value: `v${place}`,
    events: 1,
    events_percentage: 0.0002,
  }));
  const answers: Answers = {
    properties: ({ query }) =>
      query.has("prop_value[contains]")
        ? [
            { name: "plan", value: "v10", events: 1, events_percentage: 0.5 },
            { name: "plan", value: "beyond v10", events: 1, events_percentage: 0.5 },
          ]
        : all,
  };
  const { asked, person, search, count, column, dialog } = await showList("values", { answers });
  assert.equal(count(), "5,000 rows");
  const capped = /^These are the first 5,000 rows; there are more\./;
  assert.ok(dialog.getByText(capped));
  await person.type(search(), "v10");
  await waitFor(() => assert.equal(asked.at(-1)?.query.get("prop_value[contains]"), "v10"));
  await waitFor(() => assert.equal(count(), "2 rows"));
  assert.ok(!dialog.queryByText(capped));
  assert.deepEqual(column("Property value"), ["v10", "beyond v10"]);
  assert.deepEqual(column("% of events"), ["<0.1%", "<0.1%"]);
});
