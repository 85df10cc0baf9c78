// What each statistic is: where it is asked, what its rows are called by, how they filter.

import type { Key } from "../i18n/index.ts";
import type { Field } from "../view/filters.ts";

export interface Statistic {
  /** Names it among the others, in addresses of files and in what this browser remembers. */
  id: string;
  title: Key;
  /** The last part of its path in the interface. */
  path: string;
  further: Record<string, string>;
  /** The member of a row that is its value. */
  value: string;
  field: Field;
  /** What an empty value is called. */
  empty: Key;
}

const statistic = (
  id: string,
  value: string,
  field: Field,
  rest: Partial<Statistic> = {},
): Statistic => ({
  id,
  title: `panels.${id}` as Key,
  path: id,
  further: {},
  value,
  field,
  empty: "panels.none",
  ...rest,
});

export const PAGES = statistic("pages", "path", "path");
export const TIMES = statistic("time", "path", "path");
export const REFERRERS = statistic("referrers", "referrer", "referrer", { empty: "panels.direct" });
export const ADDRESSES = statistic("addresses", "referrer", "referrer", {
  path: "referrers",
  further: { grouped: "false" },
  empty: "panels.direct",
});

/** The panels of a website's page, each with the statistics among which its tabs choose. */
export const PANELS: { id: string; title: Key; statistics: Statistic[] }[] = [
  { id: "content", title: "panels.content", statistics: [PAGES, TIMES] },
  {
    id: "origins",
    title: "panels.origins",
    statistics: [
      REFERRERS,
      ADDRESSES,
      statistic("sources", "source", "utm_source"),
      statistic("mediums", "medium", "utm_medium"),
      statistic("campaigns", "campaign", "utm_campaign"),
      statistic("terms", "term", "utm_term"),
      statistic("contents", "content", "utm_content"),
    ],
  },
  {
    id: "places",
    title: "panels.places",
    statistics: [
      statistic("countries", "country", "country"),
      statistic("languages", "language", "language"),
      statistic("locales", "language", "language", {
        path: "languages",
        further: { locale: "true" },
      }),
    ],
  },
  {
    id: "technology",
    title: "panels.technology",
    statistics: [
      statistic("browsers", "browser", "browser"),
      statistic("os", "os", "os"),
      statistic("devices", "device", "device"),
    ],
  },
];
