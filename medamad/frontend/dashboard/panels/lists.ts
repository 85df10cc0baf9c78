// The lists of a website's page: the statistic of each, what its rows are called
// and counted by, and the filter of a row.

import { type Key, t } from "../i18n/index.ts";
import { type Field, ofViews } from "../view/filters.ts";
import { countsVisitors, VISITS as VISITS_PARAMETER } from "../view/visits.ts";

export type ListingName =
  | "pages"
  | "entries"
  | "exits"
  | "previous"
  | "next"
  | "time"
  | "referrers"
  | "addresses"
  | "sources"
  | "mediums"
  | "campaigns"
  | "terms"
  | "contents"
  | "countries"
  | "languages"
  | "locales"
  | "browsers"
  | "os"
  | "devices"
  | "hosting"
  | "properties"
  | "values";

/** A row of any list. Its value is under the list's `column`. */
export type ListRow = Record<string, string | number | undefined>;

export interface Listing {
  name: ListingName;
  statistic: string;
  further: Record<string, string>;
  /** The name of a row's value. */
  column: string;
  field: Field;
  /** The figure of a row, and its share of all. */
  figure: "visitors" | "visits" | "views" | "total_duration" | "events";
  share: `${"visitors" | "visits" | "views" | "duration" | "events"}_percentage`;
  /** The columns of the full list besides the value. */
  columns: readonly string[];
}

const VIEWS = [
  "visitors",
  "visitors_percentage",
  "visits",
  "visit_bounce_percentage",
  "pageviews",
  "bounce_percentage",
  "time",
];

const ENTRIES = [
  "visits",
  "visits_percentage",
  "views_per_visit",
  "visit_bounce_percentage",
  "visit_duration",
];

const TIMES = [
  "total_duration",
  "duration",
  "duration_lower_quartile",
  "duration_upper_quartile",
  "duration_percentage",
  "visitors",
];

function listing(
  name: ListingName,
  column: string,
  field: Field,
  further: Partial<Listing> = {},
): Listing {
  return {
    name,
    statistic: name,
    further: {},
    column,
    field,
    figure: "visitors",
    share: "visitors_percentage",
    columns: VIEWS,
    ...further,
  };
}

const VISITS = { figure: "visits", share: "visits_percentage" } as const;

const STEPS = { figure: "views", share: "views_percentage", columns: [] } as const;

const EVENTS = {
  statistic: "properties",
  figure: "events",
  share: "events_percentage",
  columns: ["events", "events_percentage"],
} as const;

export const LISTINGS: Record<ListingName, Listing> = {
  pages: listing("pages", "path", "path", {
    columns: [
      "visitors",
      "visitors_percentage",
      "visits",
      "visit_bounce_percentage",
      "pageviews",
      "pageviews_percentage",
      "bounce_percentage",
      "time",
    ],
  }),
  entries: listing("entries", "path", "entry_page", { ...VISITS, columns: ENTRIES }),
  exits: listing("exits", "path", "exit_page", {
    ...VISITS,
    columns: ["visits", "visits_percentage", "exit_percentage"],
  }),
  previous: listing("previous", "path", "path", STEPS),
  next: listing("next", "path", "path", STEPS),
  time: listing("time", "path", "path", {
    further: { total: "true" },
    figure: "total_duration",
    share: "duration_percentage",
    columns: TIMES,
  }),
  referrers: listing("referrers", "referrer", "referrer"),
  addresses: listing("addresses", "referrer", "referrer", {
    statistic: "referrers",
    further: { grouped: "false" },
  }),
  sources: listing("sources", "source", "utm_source"),
  mediums: listing("mediums", "medium", "utm_medium"),
  campaigns: listing("campaigns", "campaign", "utm_campaign"),
  terms: listing("terms", "term", "utm_term"),
  contents: listing("contents", "content", "utm_content"),
  countries: listing("countries", "country", "country"),
  languages: listing("languages", "language", "language"),
  locales: listing("locales", "language", "language", {
    statistic: "languages",
    further: { locale: "true" },
  }),
  browsers: listing("browsers", "browser", "browser"),
  os: listing("os", "os", "os"),
  devices: listing("devices", "device", "device"),
  hosting: listing("hosting", "hosting", "hosting"),
  properties: listing("properties", "name", "prop_name", EVENTS),
  values: listing("values", "value", "prop_value", EVENTS),
};

/** The lists of campaigns, by what their links name. */
export const CAMPAIGNS = ["sources", "mediums", "campaigns", "terms", "contents"] as const;

/** The lists of where visits came from: those of views would count links within the website. */
const SOURCES: readonly ListingName[] = ["referrers", "addresses", ...CAMPAIGNS];

export function isOfSources({ name }: Listing): boolean {
  return SOURCES.includes(name);
}

/** The query for rows by what comes first: visitors, as the server has them, or visits. */
export function byLeading({ figure }: Listing): Record<string, string> {
  return figure === "visitors" && !countsVisitors.value
    ? { [VISITS_PARAMETER]: "true", order: "visits" }
    : {};
}

/** The list that has the values of a field. */
export function listingOf(field: Field): Listing {
  const usual = (wanted: Field) =>
    Object.values(LISTINGS).find((listing) => listing.field === wanted);
  return (usual(field) ?? usual(ofViews(field))) as Listing;
}

/** The response's member with a row's value: `time` is the total that pages call duration. */
export function keyOf(column: string): string {
  return column === "time" ? "duration" : column;
}

/** The title of a list on its own. */
export function listLabel({ name }: Listing): string {
  return t(`panels.list.${name}` as Key);
}

/** The title of a list's tab within a panel. */
export function tabLabel(name: ListingName): string {
  return t(`panels.tab.${name}` as Key);
}

/** The title of a list's value column. */
export function columnLabel({ name, field }: Listing): string {
  return name === "locales" ? t("panels.locale") : t(`filters.field.${field}`);
}
