// A website whose every figure is known: what the daemon answers about it.

import type { Summary } from "../../dashboard/api/types.ts";
import type { Answer } from "../../dashboard/state/data.ts";
import type { Answers, Asked } from "./page.tsx";

export const HOSTILE = "/<img src=x onerror=alert(1)>";
export const RIGHT_TO_LEFT = "/\u202egnp.exe";

/** The rows of a view each, by a visitor of its own. */
const ONE = {
  visitors: 1,
  visitors_percentage: 0.0833,
  visits: 1,
  visits_percentage: 0.0833,
  visit_bounce_percentage: 1,
  pageviews: 1,
  pageviews_percentage: 0.0833,
  bounce_percentage: 0,
  duration: 20_000,
};
const TWO = {
  ...ONE,
  ...{ visitors: 2, visits: 2, pageviews: 2, duration: 40_000 },
  ...{ visitors_percentage: 0.1667, visits_percentage: 0.1667, pageviews_percentage: 0.1667 },
};
const THREE = {
  ...ONE,
  ...{ visitors: 3, visits: 3, pageviews: 3, duration: 60_000 },
  ...{ visitors_percentage: 0.25, visits_percentage: 0.25, pageviews_percentage: 0.25 },
};
const FOUR = {
  ...ONE,
  ...{ visitors: 4, visits: 4, pageviews: 4, duration: 63_000, bounce_percentage: 0.25 },
  ...{ visitors_percentage: 0.3333, visits_percentage: 0.3333, pageviews_percentage: 0.3333 },
};
const TEN = {
  ...ONE,
  visitors: 10,
  visitors_percentage: 0.8333,
  visits: 10,
  visits_percentage: 0.8333,
};
const ALL = { ...ONE, visitors: 12, visitors_percentage: 1, visits: 12, visits_percentage: 1 };

export const PAGES = [
  { path: "/", ...FOUR },
  { path: "/about", ...THREE },
  { path: HOSTILE, ...ONE },
  { path: "/=1+1", ...ONE },
  { path: "/a,b", ...ONE, duration: 60_000 },
  { path: RIGHT_TO_LEFT, ...ONE },
];

const VISIT = { views_per_visit: 1, visit_bounce_percentage: 1, visit_duration: 20_000 };
const quartiles = (least: number, most: number) => ({
  duration_lower_quartile: least,
  duration_upper_quartile: most,
});

/** The names of properties, or the values where names are filtered. */
function properties({ query }: Asked) {
  return [...query.keys()].some((name) => name.startsWith("prop_name"))
    ? [
        { name: "plan", value: "pro", events: 3, events_percentage: 0.75 },
        { name: "plan", value: "=1+1;=2", events: 1, events_percentage: 0.25 },
      ]
    : [{ name: "plan", events: 4, events_percentage: 1 }];
}

export const SUMMARY: Summary = {
  current: {
    ...{ visitors: 12, pageviews: 12, bounce_percentage: 0.0833, duration: 20_000 },
    ...{ visits: 12, views_per_visit: 1, visit_bounce_percentage: 1, visit_duration: 21_917 },
  },
};

/** The totals that the page has received. */
export const TOTALS: Answer<Summary> = {
  data: SUMMARY,
  isStale: false,
  isLoading: false,
  error: undefined,
  partial: null,
};

export const KNOWN: Answers = {
  summary: SUMMARY,
  pages: PAGES,
  entries: [
    { path: "/", visits: 4, visits_percentage: 0.3333, ...VISIT },
    { path: "/about", visits: 3, visits_percentage: 0.25, ...VISIT },
  ],
  exits: [
    { path: "/", visits: 4, visits_percentage: 0.3333, exit_percentage: 1 },
    { path: "/about", visits: 3, visits_percentage: 0.25, exit_percentage: 1 },
  ],
  time: [
    {
      path: "/",
      duration: 20_000,
      duration_percentage: 0.2395,
      total_duration: 63_000,
      visitors: 4,
      ...quartiles(15_750, 20_000),
    },
    {
      path: "/a,b",
      duration: 60_000,
      duration_percentage: 0.2281,
      total_duration: 60_000,
      visitors: 1,
      ...quartiles(60_000, 60_000),
    },
    {
      path: "/about",
      duration: 20_000,
      duration_percentage: 0.2281,
      total_duration: 60_000,
      visitors: 3,
      ...quartiles(20_000, 20_000),
    },
  ],
  referrers: ({ query }) =>
    query.get("grouped") === "false"
      ? [
          {
            referrer: "blog.example/post/2",
            ...TWO,
            visitors_percentage: 0.6667,
            visits_percentage: 0.6667,
          },
          {
            referrer: "blog.example/post/1",
            ...ONE,
            visitors_percentage: 0.3333,
            visits_percentage: 0.3333,
          },
        ]
      : [
          {
            referrer: "",
            ...ONE,
            visitors: 7,
            visitors_percentage: 0.5833,
            visits: 7,
            visits_percentage: 0.5833,
          },
          { referrer: "blog.example", ...THREE, duration: 100_000 },
          { referrer: "Google", ...TWO },
        ],
  sources: [
    {
      source: "",
      ...ONE,
      visitors: 11,
      visitors_percentage: 0.9167,
      visits: 11,
      visits_percentage: 0.9167,
    },
    { source: "news", ...ONE },
  ],
  mediums: [{ medium: "", ...ALL }],
  campaigns: [{ campaign: "", ...ALL }],
  terms: [{ term: "", ...ALL }],
  contents: [{ content: "", ...ALL }],
  countries: [
    { country: "Germany", ...TEN },
    { country: "Singapore", ...ONE },
    { country: "United States", ...ONE },
  ],
  languages: ({ query }) =>
    query.get("locale") === "true"
      ? [
          { language: "Swiss High German", ...TEN },
          { language: "American English", ...ONE },
          { language: "British English", ...ONE },
        ]
      : [
          { language: "German", ...TEN },
          { language: "English", ...TWO },
        ],
  browsers: [
    { browser: "Chrome", ...TEN },
    { browser: "Firefox", ...TWO },
  ],
  os: [{ os: "Linux", ...ALL }],
  devices: [{ device: "Desktop", ...ALL }],
  hosting: [
    { hosting: "false", ...TEN },
    { hosting: "true", ...TWO },
  ],
  properties,
  goals: [],
};
