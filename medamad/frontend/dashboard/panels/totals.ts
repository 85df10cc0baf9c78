// The totals that the shares of rows are of.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Summary } from "../api/types.ts";
import type { Answer } from "../state/data.ts";
import { lacksVisits } from "../state/partial.ts";
import { countsVisitors, keepsVisits } from "../view/visits.ts";
import type { Listing, ListRow } from "./lists.ts";

/** What the rows of views are sorted by. */
export const ORDERS = ["visitors", "pageviews", "visits"] as const;

/** The orders that the server knows, beginning with the usual one. */
export function orders(): readonly RowOrder[] {
  if (!countsVisitors.value) return ["visits", "pageviews"];
  return keepsVisits.value ? ORDERS : ORDERS.filter((order) => order !== "visits");
}

export type RowOrder = (typeof ORDERS)[number];

/** The summary of the page's period and filters. */
export const TotalsContext = createContext<Answer<Summary> | undefined>(undefined);

/** Whether visits are kept, and known of at least some days of the period. */
export function useVisitsKnown(): boolean {
  const totals = useContext(TotalsContext);
  const areKnown = !lacksVisits(totals?.partial ?? null) || !!totals?.data?.current.visits;
  return keepsVisits.value && areKnown;
}

/** All visitors, views or visits; undefined while unknown for the query of a list, stale or not. */
export function useTotal(order: RowOrder | undefined, isStale: boolean): number | undefined {
  const totals = useContext(TotalsContext);
  return order && totals?.isStale === isStale ? totals.data?.current[order] : undefined;
}

/**
 * Return a row's share, or undefined if it is unknown. A page's is that of all visitors: visitors
 * of several pages count for each, so the shares that the API returns are of a greater sum.
 */
export function shareOf(
  row: ListRow,
  { name, share }: Listing,
  order: RowOrder | undefined,
  total: number | undefined,
): number | undefined {
  if (order === "visits") return Number(row.visits_percentage);
  if (order === undefined || (order === "visitors" && name !== "pages")) {
    return row[share] === undefined ? undefined : Number(row[share]);
  }
  const part = Number(row[order]);
  // Filtered by an event or a referrer, a page can have visitors whose first view of the day does
  // not match, and who are not among all visitors.
  return total && part <= total ? part / total : undefined;
}
