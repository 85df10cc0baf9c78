// Filters in the address, in words, and how they are put together.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inWords, mayBeEmpty } from "../dashboard/filters/words.ts";
import {
  excludes,
  FIELDS,
  type Filter,
  filtersIn,
  goalIn,
  isChosen,
  isSame,
  negated,
  opposite,
  placed,
  TEXT_OPERATORS,
  toggled,
  writeFilters,
} from "../dashboard/view/filters.ts";

/** The filters of a query string. */
function read(query: string): Filter[] {
  return filtersIn(new URLSearchParams(query));
}

function written(filters: Filter[]): string {
  const query = new URLSearchParams();
  writeFilters(filters, query);
  return decodeURIComponent(query.toString());
}

const is = (field: Filter["field"], value: string): Filter => ({
  field,
  operator: "eq",
  values: [value],
});

for (const [query, words] of [
  ["path[eq]=/about", "Page is /about"],
  ["path[neq]=/about", "Page is not /about"],
  ["path[contains]=BOUT", "Page contains BOUT"],
  ["path[not_contains]=bout", "Page does not contain bout"],
  ["path[starts_with]=/a", "Page starts with /a"],
  ["path[not_starts_with]=/a", "Page does not start with /a"],
  ["path[ends_with]=b", "Page ends with b"],
  ["path[not_ends_with]=b", "Page does not end with b"],
  ["path[in]=/about,/", "Page is one of /about or /"],
  ["path[not_in]=/about,/", "Page is not one of /about or /"],
  ["referrer[eq]=", "Referrer is Direct / none"],
  ["utm_source[eq]=", "UTM source is (none)"],
  ["country[in]=Germany,Singapore", "Country is one of Germany or Singapore"],
  ["country[in]=Germany,Singapore,Chad", "Country is one of Germany, Singapore, or Chad"],
  ["visit_bounce[eq]=true", "Visit bounced"],
  ["visit_bounce[eq]=false", "Visit did not bounce"],
  ["hosting[eq]=true", "Hosting provider’s network"],
  ["hosting[eq]=false", "Other network"],
  ["visit_views[gte]=3", "Views of the visit: at least 3"],
  ["visit_duration[lte]=65000", "Time of the visit: at most 1m 5s"],
  ["duration[gte]=500", "Time on the page: at least 500ms"],
] as const) {
  test(`a filter is read, written and put in words: ${query}`, () => {
    const filters = read(query);
    assert.equal(written(filters), query);
    assert.deepEqual(filters.map(inWords), [words]);
  });
}

test("each operator has an opposite that excludes what it includes", () => {
  for (const operator of TEXT_OPERATORS) {
    assert.ok(TEXT_OPERATORS.some((other) => other === opposite(operator)));
    assert.equal(opposite(opposite(operator)), operator);
    assert.notEqual(excludes(opposite(operator)), excludes(operator));
  }
  assert.deepEqual(TEXT_OPERATORS.filter(excludes), [
    "neq",
    "not_contains",
    "not_starts_with",
    "not_ends_with",
    "not_in",
  ]);
});

for (const [query, kept] of [
  ["path[like]=/&nothing[eq]=1&browser=Firefox", "browser[eq]=Firefox"],
  ["period=7d&path[]=/&[eq]=/&path[eq]x=/", ""],
  ["path[in]=/&path[in]=/about,/", "path[in]=/,/about"],
  ["path[in]=/&path[not_in]=/a&entry_page[in]=/b", "path[in]=/&path[not_in]=/a&entry_page[in]=/b"],
  ["path[eq]=/a&path[eq]=/A&path[eq]=/b", "path[eq]=/A&path[eq]=/b"],
  ["path[eq]=/a,b", "path[eq]=/a,b"],
  ["visit_views[eq]=1&visit_views[gte]=x&visit_views[lte]=-1&path[gte]=1", ""],
  ["visit_bounce[gte]=1&visit_bounce=maybe&visit_bounce=true", "visit_bounce[eq]=true"],
  ["hosting[neq]=true&hosting=maybe&hosting=true", "hosting[eq]=true"],
] as const) {
  test(`what is no filter is ignored, and lists are merged: ${query}`, () => {
    assert.equal(written(read(query)), kept);
  });
}

test("what is true or false is negated, and bounds are not", () => {
  const [hosting] = read("hosting[eq]=false");
  assert.deepEqual(hosting && negated(hosting), is("hosting", "true"));
  const [bounced, bound] = read("visit_bounce[eq]=true&duration[gte]=5");
  assert.deepEqual(bounced && negated(bounced), is("visit_bounce", "false"));
  assert.equal(bound && negated(bound), undefined);
});

test("a value is kept as it is, whatever it contains", () => {
  for (const value of ["/100%/a,b&path[eq]=c#d+e?f=g;h  i", "</bdi><img src=x>", " ", "日本"]) {
    const query = new URLSearchParams();
    writeFilters([is("path", value)], query);
    assert.deepEqual(filtersIn(new URLSearchParams(query.toString())), [is("path", value)]);
  }
});

test("values are compared case-insensitively", () => {
  assert.ok(isSame(is("browser", "Firefox"), is("browser", "firefox")));
  assert.ok(isChosen(read("browser[eq]=firefox"), "browser", "Firefox"));
  for (const other of ["browser[eq]=Fire", "browser[neq]=Firefox", "os[eq]=Firefox"]) {
    assert.ok(!isChosen(read(other), "browser", "Firefox"), other);
  }
});

for (const [before, place, filter, after] of [
  ["", 0, "path[eq]=/", "path[eq]=/"],
  ["path[eq]=/&browser[eq]=Firefox", 0, "path[eq]=/a", "path[eq]=/a&browser[eq]=Firefox"],
  ["path[eq]=/&browser[eq]=Firefox", 1, "os[eq]=Linux", "path[eq]=/&os[eq]=Linux"],
  ["path[eq]=/&browser[eq]=Firefox", 1, "path[eq]=/", "path[eq]=/"],
  ["path[in]=/a&path[eq]=/b", 1, "path[in]=/b,/a", "path[in]=/a,/b"],
] as const) {
  test(`a filter replaces that in place ${place} of ${before}: ${filter}`, () => {
    assert.equal(written(placed(read(before), place, read(filter)[0])), after);
  });
}

test("a filter is removed from its place", () => {
  assert.equal(written(placed(read("path[eq]=/&os[eq]=Linux"), 0)), "os[eq]=Linux");
});

for (const [before, field, value, after] of [
  ["", "browser", "Firefox", "browser[eq]=Firefox"],
  ["browser[eq]=firefox", "browser", "Firefox", ""],
  ["browser[eq]=Chrome", "browser", "Firefox", "browser[eq]=Firefox"],
  ["browser[neq]=Chrome", "browser", "Firefox", "browser[neq]=Chrome&browser[eq]=Firefox"],
  ["path[eq]=/", "browser", "Firefox", "path[eq]=/&browser[eq]=Firefox"],
  // The referrer of a visit and that of a view are the same choice.
  ["referrer[eq]=blog.example", "visit_referrer", "blog.example", ""],
  ["referrer[eq]=blog.example", "visit_referrer", "", "visit_referrer[eq]="],
] as const) {
  test(`choosing a row toggles its filter: ${field} ${value} under ${before}`, () => {
    assert.equal(written(toggled(read(before), field, value)), after);
  });
}

for (const [query, goal] of [
  ["goal[eq]=1&path[eq]=/", "1"],
  ["goal[neq]=1", undefined],
  ["goal[eq]=1&goal[eq]=2", undefined],
  ["path[eq]=/", undefined],
] as const) {
  test(`the goal that all visits reached: ${query}`, () => {
    assert.equal(goalIn(read(query)), goal);
  });
}

test("referrers, campaigns and values may be empty", () => {
  const names = FIELDS.filter(mayBeEmpty).map((field) => field.replace("visit_", ""));
  assert.deepEqual(
    [...new Set(names)],
    [
      "referrer",
      "utm_source",
      "utm_medium",
      "utm_campaign",
      "utm_term",
      "utm_content",
      "prop_value",
    ],
  );
});
