// The state of a website's page: its view, how to change it, and the query for it.

import { createContext } from "preact";
import { useContext, useEffect, useMemo } from "preact/hooks";
import { useLocation } from "preact-iso";
import { statistic } from "../api/client.ts";
import type { Summary } from "../api/types.ts";
import { type Answer, useAsk } from "../state/data.ts";
import { sitePath } from "../state/share.ts";
import { readView, type View, writeView } from "./address.ts";
import { comparedWith } from "./comparison.ts";
import { writeFilters } from "./filters.ts";
import { ownZone, type Span, spanUntilNow, writeSpan } from "./periods.ts";
import { countsVisitors, keepsVisits, knowsHosting, VISITS } from "./visits.ts";

export interface Viewing {
  hostname: string;
  view: View;
  zone: string;
  /** Change the view. `replaces` adds no history entry. */
  show: (change: Partial<View>, replaces?: boolean) => void;
}

export const ViewingContext = createContext<Viewing | undefined>(undefined);

/** The view in the page's address. `path` is that of the page. */
export function useAddressedView(hostname: string, path = sitePath(hostname)): Viewing {
  const { url, route } = useLocation();
  const query = url.includes("?") ? url.slice(url.indexOf("?")) : "";
  return useMemo(() => {
    const view = readView(new URLSearchParams(query));
    return {
      hostname,
      view,
      zone: view.zone ?? ownZone(),
      show: (change, replaces = false) =>
        route(path + writeView({ ...view, ...settled(view, change), ...change }), replaces),
    };
  }, [hostname, path, query, route]);
}

/** A range to compare with was chosen for one period; another is compared with the one before. */
function settled({ comparison }: View, { period }: Partial<View>): Partial<View> {
  return period && typeof comparison === "object" ? { comparison: "previous" } : {};
}

/** The view of the page that a component is part of. */
export function useViewing(): Viewing {
  const viewing = useContext(ViewingContext);
  if (!viewing) throw new Error("this is part of a website's page");
  return viewing;
}

/** The query parameters of every request: period and filters at this moment. */
export function parametersOf({ view, zone }: Viewing, span?: Span): URLSearchParams {
  const query = writeSpan(span ?? spanUntilNow(view.period, zone), new URLSearchParams());
  writeFilters(view.filters, query);
  return query;
}

const NOT_COMPARED = { comparison: "none", weekdays: undefined } as const;

/**
 * Request a statistic of the website with the period and filters of the page. `span` returns
 * another span at the time of the request; `spanName` identifies it.
 */
export function useStatistic<T>(
  name: string | null,
  further: Record<string, string> = {},
  span?: () => Span | undefined,
  spanName = "",
): Answer<T> {
  const viewing = useViewing();
  const { hostname, view, zone } = viewing;
  const parameters = { ...further };
  if (!keepsVisits.value) delete parameters[VISITS];
  const viewKey = writeView({ ...view, measure: undefined, interval: undefined, ...NOT_COMPARED });
  const answer = useAsk<T>(
    name === null ? null : statistic(hostname, name),
    () => {
      const query = parametersOf(viewing, span?.());
      for (const [name, value] of Object.entries(parameters)) query.append(name, value);
      return query;
    },
    [viewKey, zone, spanName, JSON.stringify(parameters)].join(" "),
  );
  const isRefused =
    VISITS in parameters && answer.error?.status === 400 && answer.error.message.startsWith(VISITS);
  useEffect(() => {
    if (isRefused) keepsVisits.value = false;
  }, [isRefused]);
  const { visitors_counted: counted = true, hosting_known: hosting = false } = (answer.data ??
    {}) as Partial<Summary>;
  const isSummary = name === "summary" && answer.data !== undefined && !answer.isStale;
  useEffect(() => {
    if (!isSummary) return;
    countsVisitors.value = counted;
    if (VISITS in parameters) knowsHosting.value = hosting;
  }, [isSummary, counted, hosting]);
  return isRefused ? { ...answer, error: undefined, isLoading: true } : answer;
}

/** Request a statistic of what the page's period is compared with, if it is. */
export function useEarlier<T>(name: string | null, further?: Record<string, string>): Answer<T> {
  const { view, zone } = useViewing();
  return useStatistic<T>(
    comparedWith(view, zone) ? name : null,
    further,
    () => comparedWith(view, zone),
    `earlier ${JSON.stringify([view.comparison, view.weekdays])}`,
  );
}
