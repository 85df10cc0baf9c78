// The filter bar, and the editor of a filter.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import { createRef } from "preact";
import { AddFilter, FilterBar } from "../dashboard/filters/filter-bar.tsx";
import { speak } from "../dashboard/i18n/index.ts";
import { type Answers, type Asked, type Shown, showOnPage } from "./support/page.tsx";

const PATHS = [
  { path: "/", visitors: 4 },
  { path: "/about", visitors: 3 },
  { path: "/a,b", visitors: 1 },
];
const REFERRERS = [
  { referrer: "", visitors: 7 },
  { referrer: "blog.example", visitors: 3 },
];
const COUNTRIES = [
  { country: "Germany", visitors: 10 },
  { country: "Singapore", visitors: 1 },
  { country: "United States", visitors: 1 },
];
const ANSWERS: Answers = {
  pages: ({ query }: Asked) =>
    PATHS.filter(({ path }) => path.includes(query.get("path[contains]") ?? "")),
  referrers: REFERRERS,
  countries: COUNTRIES,
  browsers: [{ browser: "Firefox", visitors: 2 }],
};

function showBar(query = "", answers: Answers = ANSWERS): Shown {
  const adding = createRef<HTMLButtonElement>();
  const bar = (
    <>
      <AddFilter button={adding} />
      <FilterBar button={adding} />
    </>
  );
  return showOnPage(bar, query, answers);
}

function chips({ queryAllByRole }: Shown): string[] {
  return queryAllByRole("listitem").map(
    (chip: HTMLElement) => chip.querySelector("button")?.textContent ?? "",
  );
}

/** Open the editor of a new filter, or that of the filter with these words. */
async function openEditor(shown: Shown, words = "Add filter") {
  const [opener] = shown.getAllByRole("button", { name: words });
  await shown.person.click(opener as HTMLElement);
  const editor = within(await shown.findByRole("dialog"));
  await waitFor(() => assert.ok(!editor.queryByText("Loading…")));
  return {
    ...editor,
    chooses: (label: string, choice: string) =>
      shown.person.selectOptions(editor.getByRole("combobox", { name: label }), choice),
    value: () => editor.getByRole<HTMLInputElement>("combobox", { name: /^Values?$/ }),
    apply: () => editor.getByRole<HTMLButtonElement>("button", { name: "Apply" }),
    suggested: () => {
      const list = editor.queryByRole("listbox", { name: "Suggestions" });
      return list
        ? within(list)
            .getAllByRole("option")
            .map(({ textContent }) => textContent)
        : [];
    },
    text: () => shown.getByRole("dialog").textContent,
  };
}

for (const [wording, operator, typed] of [
  ["is", "eq", "/about"],
  ["is not", "neq", "/about"],
  ["contains", "contains", "BOUT"],
  ["does not contain", "not_contains", "bout"],
  ["starts with", "starts_with", "/a"],
  ["does not start with", "not_starts_with", "/a"],
  ["ends with", "ends_with", "b"],
  ["does not end with", "not_ends_with", "b"],
  ["is one of", "in", "/about,/"],
  ["is not one of", "not_in", "/about,/"],
] as const) {
  test(`a filter is added: ${wording}`, async () => {
    const shown = showBar("?period=7d");
    const editor = await openEditor(shown);
    await editor.chooses("Condition", wording);
    await shown.person.type(editor.value(), typed);
    await shown.person.click(editor.apply());
    assert.ok(!shown.queryByRole("dialog"));
    assert.equal(location.search, `?period=7d&path[${operator}]=${typed}`);
    assert.deepEqual(chips(shown), [`Page ${wording} ${typed.replace(",", " or ")}`]);
  });
}

for (const [field, condition, typed, search, words] of [
  ["Views of the visit", "at least", "3", "visit_views[gte]=3", "Views of the visit: at least 3"],
  [
    "Time of the visit",
    "at most",
    "90.5",
    "visit_duration[lte]=90500",
    "Time of the visit: at most 1m 31s",
  ],
  ["Time on the page", "at most", "5", "duration[lte]=5000", "Time on the page: at most 5s"],
] as const) {
  test(`a filter on a number is added and edited: ${field}`, async () => {
    const shown = showBar("?period=7d");
    const editor = await openEditor(shown);
    await editor.chooses("Filter by", field);
    const dialog = within(shown.getByRole("dialog"));
    const number = () => dialog.getByRole<HTMLInputElement>("spinbutton");
    assert.ok(editor.apply().disabled);
    await editor.chooses("Condition", condition);
    await shown.person.type(number(), typed);
    await shown.person.click(editor.apply());
    assert.equal(location.search, `?period=7d&${search}`);
    assert.deepEqual(chips(shown), [words]);
    // Bounds have no opposite.
    assert.equal(shown.queryByRole("button", { name: /^Exclude instead/ }), null);
    await openEditor(shown, words);
    assert.equal(
      within(shown.getByRole("dialog")).getByRole<HTMLInputElement>("spinbutton").value,
      typed,
    );
  });
}

test("visits are filtered by whether they bounced, and by the opposite", async () => {
  const shown = showBar("?period=7d");
  const editor = await openEditor(shown);
  await editor.chooses("Filter by", "Bounce");
  await editor.chooses("Value", "Visit did not bounce");
  await shown.person.click(editor.apply());
  assert.equal(location.search, "?period=7d&visit_bounce[eq]=false");
  await shown.person.click(
    shown.getByRole("button", { name: "Exclude instead: Visit did not bounce" }),
  );
  assert.equal(location.search, "?period=7d&visit_bounce[eq]=true");
  assert.deepEqual(chips(shown), ["Visit bounced"]);
});

test("views are filtered by the kind of their network", async () => {
  const shown = showBar("?period=7d&hosting[eq]=true");
  assert.deepEqual(chips(shown), ["Hosting provider’s network"]);
  const editor = await openEditor(shown, "Hosting provider’s network");
  await editor.chooses("Value", "Other network");
  await shown.person.click(editor.apply());
  assert.equal(location.search, "?period=7d&hosting[eq]=false");
  const another = await openEditor(shown);
  await another.chooses("Filter by", "Network");
  await another.chooses("Filter by", "Browser");
  assert.equal(another.value().value, "");
});

test("values are suggested for what is typed, and chosen by the keyboard", async () => {
  const shown = showBar("?period=7d&browser[eq]=Firefox");
  const editor = await openEditor(shown);
  assert.deepEqual(editor.suggested(), ["/4", "/about3", "/a,b1"]);
  await shown.person.type(editor.value(), "abo");
  assert.deepEqual(editor.suggested(), ["/about3"]);
  // The server is asked too: it may know more than it has sent.
  await waitFor(() => assert.equal(shown.asked.at(-1)?.query.get("path[contains]"), "abo"));
  assert.equal(shown.asked.at(-1)?.query.get("browser[eq]"), "Firefox");
  await shown.person.keyboard("{ArrowDown}");
  assert.ok(editor.getByRole("option", { name: "/about 3", selected: true }));
  await shown.person.keyboard("{Enter}");
  assert.equal(editor.value().value, "/about");
  await shown.person.keyboard("{Enter}");
  assert.equal(location.search, "?period=7d&browser[eq]=Firefox&path[eq]=/about");
});

test("suggestions are those of the chosen field", async () => {
  const shown = showBar("");
  const editor = await openEditor(shown);
  await editor.chooses("Filter by", "Referrer");
  await waitFor(() => assert.deepEqual(editor.suggested(), ["Direct / none7", "blog.example3"]));
  await editor.chooses("Filter by", "Country");
  await waitFor(() =>
    assert.deepEqual(editor.suggested(), ["Germany10", "Singapore1", "United States1"]),
  );
  await shown.person.type(editor.value(), "nowhere");
  assert.match(editor.text() ?? "", /No matches in this period/);
});

test("several values are chosen, each once", async () => {
  const shown = showBar("?country[in]=Germany,Singapore");
  const editor = await openEditor(shown, "Country is one of Germany or Singapore");
  assert.match(editor.text() ?? "", /Commas separate the values of a list/);
  // Its own filter does not hide other values.
  assert.equal(shown.asked[0]?.query.has("country[in]"), false);
  await shown.person.click(editor.getByRole("button", { name: "Remove Germany" }));
  assert.equal(document.activeElement, editor.value());
  assert.deepEqual(editor.suggested(), ["Germany10", "United States1"]);
  await shown.person.type(editor.value(), "united states,");
  assert.ok(editor.getByRole("button", { name: "Remove United States" }));
  await shown.person.keyboard("{Enter}");
  assert.equal(location.search, "?country[in]=Singapore,United+States");
});

test("a value with a comma is not offered for a list", async () => {
  const shown = showBar("?path[eq]=/a,b");
  const editor = await openEditor(shown, "Page is /a,b");
  assert.equal(editor.value().value, "/a,b");
  await waitFor(() => assert.deepEqual(editor.suggested(), ["/a,b1"]));
  await editor.chooses("Condition", "is one of");
  assert.ok(!editor.queryByRole("button", { name: "Remove /a,b" }));
  assert.ok(editor.apply().disabled);
  await waitFor(() => assert.deepEqual(editor.suggested(), ["/4", "/about3"]));
});

for (const [before, words, wording, after] of [
  ["browser[eq]=Firefox", "Browser is Firefox", "is not one of", "browser[not_in]=Firefox"],
  [
    "browser[not_in]=Firefox",
    "Browser is not one of Firefox",
    "starts with",
    "browser[starts_with]=Firefox",
  ],
  ["browser[starts_with]=Firefox", "Browser starts with Firefox", "is not", "browser[neq]=Firefox"],
] as const) {
  test(`the value stays when the operator changes: ${after}`, async () => {
    const shown = showBar(`?period=7d&${before}`);
    const editor = await openEditor(shown, words);
    await editor.chooses("Condition", wording);
    await shown.person.click(editor.apply());
    assert.equal(location.search, `?period=7d&${after}`);
  });
}

test("names are translated", async () => {
  await speak("de");
  const shown = showBar("?country[eq]=Germany");
  await waitFor(() => assert.deepEqual(chips(shown), ["Land ist Deutschland"]));
  await shown.person.click(shown.getByRole("button", { name: "Land ist Deutschland" }));
  const dialog = await shown.findByRole("dialog");
  const editor = within(dialog);
  const value = editor.getByRole<HTMLInputElement>("combobox", { name: "Wert" });
  assert.equal(value.value, "Deutschland");
  // Part of a name is compared with the English one, and a note says so.
  await shown.person.selectOptions(editor.getByRole("combobox", { name: "Bedingung" }), "enthält");
  assert.match(dialog.textContent ?? "", /Wird mit dem englischen Namen verglichen\./);
  await shown.person.selectOptions(editor.getByRole("combobox", { name: "Bedingung" }), "ist");
  const suggested = async (typed: string) => {
    await shown.person.clear(value);
    await shown.person.type(value, typed);
    const list = await editor.findByRole("listbox");
    return within(list)
      .getAllByRole("option")
      .map(({ textContent }) => textContent);
  };
  assert.deepEqual(await suggested("singap"), ["Singapur1"]);
  await suggested("vereinigte staaten");
  await shown.person.click(editor.getByRole("button", { name: "Anwenden" }));
  assert.equal(location.search, "?country[eq]=United+States");
});

test("an empty value is accepted where views may lack one", async () => {
  const shown = showBar("");
  const editor = await openEditor(shown);
  assert.ok(editor.apply().disabled);
  await editor.chooses("Filter by", "Referrer");
  assert.match(editor.text() ?? "", /Leave empty to match views without a value\./);
  await editor.chooses("Condition", "contains");
  assert.ok(editor.apply().disabled);
  await editor.chooses("Condition", "is");
  await shown.person.click(editor.apply());
  assert.equal(location.search, "?referrer[eq]=");
  assert.deepEqual(chips(shown), ["Referrer is Direct / none"]);
});

test("properties and their values are suggested", async () => {
  const shown = showBar("", {
    ...ANSWERS,
    properties: ({ query }: Asked) =>
      query.has("prop_name[contains]")
        ? [
            { name: "plan", value: "pro", events: 3 },
            { name: "plan", value: "=1+1;=2", events: 1 },
            { name: "size", value: "pro", events: 1 },
          ]
        : [{ name: "plan", events: 4 }],
  });
  const editor = await openEditor(shown);
  await editor.chooses("Filter by", "Property");
  await waitFor(() => assert.deepEqual(editor.suggested(), ["plan4"]));
  await editor.chooses("Filter by", "Property value");
  await waitFor(() => assert.deepEqual(editor.suggested(), ["pro3", "=1+1;=21"]));
  await shown.person.click(editor.getByRole("option", { name: "pro 3" }));
  await shown.person.click(editor.apply());
  assert.equal(location.search, "?prop_value[eq]=pro");
});

test("filters are inverted and removed, and the focus stays with them", async () => {
  const shown = showBar("?browser[eq]=Firefox&path[contains]=a");
  const focused = (name: string) =>
    assert.equal(document.activeElement, shown.getByRole("button", { name }));
  assert.deepEqual(chips(shown), ["Browser is Firefox", "Page contains a"]);
  await shown.person.click(
    shown.getByRole("button", { name: "Exclude instead: Browser is Firefox" }),
  );
  assert.equal(location.search, "?browser[neq]=Firefox&path[contains]=a");
  assert.deepEqual(chips(shown), ["Browser is not Firefox", "Page contains a"]);
  focused("Include instead: Browser is not Firefox");
  await shown.person.keyboard("{Enter}");
  assert.deepEqual(chips(shown), ["Browser is Firefox", "Page contains a"]);
  await shown.person.click(shown.getByRole("button", { name: "Remove: Browser is Firefox" }));
  assert.deepEqual(chips(shown), ["Page contains a"]);
  focused("Remove: Page contains a");
  await shown.person.keyboard("{Enter}");
  assert.deepEqual(chips(shown), []);
  focused("Add filter");
  assert.equal(location.search, "");
});

for (const [field, value] of [
  ["path", "/<img src=x onerror=document.title='broken'>"],
  ["path", "/100%/a,b&path[eq]=c#d+e?f=g;h  i"],
  ["utm_source", "</bdi></button><img src=x>"],
  ["referrer", 'blog.example/"><script>document.title="broken"</script>'],
  ["prop_name", "<b><img src=x>"],
  ["prop_value", "javascript:document.title='broken'"],
] as const) {
  test(`text of hits is shown and edited as it is: ${value}`, async () => {
    const query = new URLSearchParams({ [`${field}[eq]`]: value });
    const shown = showBar(`?${query}`, {
      ...ANSWERS,
      sources: [{ source: value, visitors: 1 }],
      properties: [{ name: value, value, events: 1 }],
    });
    const [words = ""] = chips(shown);
    assert.ok(words.endsWith(` is ${value}`), words);
    const editor = await openEditor(shown, words.replaceAll(/ +/g, " "));
    assert.equal(editor.value().value, value);
    await shown.person.click(editor.apply());
    assert.deepEqual([...new URLSearchParams(location.search)], [...query]);
    assert.ok(!shown.root.querySelector("img, script, b"));
  });
}

test("all filters are cleared", async () => {
  const shown = showBar("?browser[eq]=Firefox&path[contains]=a");
  await shown.person.click(shown.getByRole("button", { name: "Clear all" }));
  assert.equal(location.search, "");
  assert.deepEqual(chips(shown), []);
  assert.ok(!shown.queryByRole("button", { name: "Clear all" }));
  assert.equal(document.activeElement, shown.getByRole("button", { name: "Add filter" }));
});

test("going back restores the filters before", async () => {
  const shown = showBar("?browser[eq]=Firefox");
  await shown.person.click(shown.getByRole("button", { name: /^Remove/ }));
  assert.deepEqual(chips(shown), []);
  history.back();
  await waitFor(() => assert.deepEqual(chips(shown), ["Browser is Firefox"]));
});
