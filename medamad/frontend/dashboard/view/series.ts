// The figures of the period, of what it is compared with, and their intervals.

import { useMemo, useRef } from "preact/hooks";
import type { ApiError } from "../api/client.ts";
import type { Bucket, Summary } from "../api/types.ts";
import { lacksVisits } from "../state/partial.ts";
import type { Interval, Period } from "./address.ts";
import { type Compared, comparedWith } from "./comparison.ts";
import { useEarlier, useStatistic, useViewing } from "./page-state.ts";
import { intervalsFor, spanUntilNow, usualInterval, wholeSpan } from "./periods.ts";
import { useKnownVisits, VISITS, withoutVisits } from "./visits.ts";

/** For how many days a website is new. */
const NEW_DAYS = 2;

/** The parameters of a query, and its figures. If they are of the previous query, so is all else. */
export interface Series {
  period: Period;
  zone: string;
  summary: Summary | undefined;
  /** The figures that the period is compared with, and their span. */
  before: Summary | undefined;
  earlier: Compared | undefined;
  /** The day of the first view, if the website is so new that hours say more than days. */
  first: Date | undefined;
  interval: Interval;
  /** The intervals that fit the period. */
  intervals: Interval[];
  /** The end of the period, possibly in the future. */
  end: Date;
  isLoading: boolean;
  isStale: boolean;
  error: ApiError | undefined;
}

/** Request the figures of the period and of the one it is compared with. */
export function useSeries(): Series {
  const { view, zone } = useViewing();
  const { period } = view;
  const isSinceEver = period === "all";
  const { start: named, end } = wholeSpan(period, zone);
  // The first view is not known before the first response.
  const months = useStatistic<Summary>(isSinceEver ? "summary" : null, {
    interval: "month",
    timezone: zone,
    [VISITS]: "true",
  });
  const start = named ?? startOf(months.data?.interval);
  const intervals = start ? intervalsFor(start, end) : [];
  const interval =
    intervals.find((interval) => interval === view.interval) ??
    (start ? usualInterval(start, end) : "month");

  const parameters = { interval, timezone: zone, [VISITS]: "true" };
  const current = useStatistic<Summary>(start ? "summary" : null, parameters);
  const earlier = comparedWith(view, zone);
  const before = useEarlier<Summary>("summary", parameters);
  const beginning =
    end > new Date() && view.interval === undefined && interval === "day" && !current.isStale
      ? beginningOf(current.data?.interval)
      : undefined;
  // Compared with another period, days say more.
  const first = !earlier || before.data?.current.pageviews === 0 ? beginning : undefined;
  const hours = useStatistic<Summary>(
    first ? "summary" : null,
    { ...parameters, interval: "hour" },
    () => ({ start: first, end: spanUntilNow(period, zone).end }),
    `from ${first?.valueOf()}`,
  );
  const [shown, ofHours, compared] = [
    useKnownVisits(current),
    useKnownVisits(hours),
    useKnownVisits(before),
  ];
  // Where visits of some days are unknown, a comparison would say nothing.
  const areComparable = !lacksVisits(current.partial) && !lacksVisits(before.partial);
  const earlierFigures = useMemo(
    () =>
      compared && !areComparable
        ? { ...compared, current: withoutVisits(compared.current) }
        : compared,
    [compared, areComparable],
  );
  // Without any view there is nothing more to request.
  const isNever = months.data !== undefined && start === undefined;
  const error = current.error ?? months.error;
  const isStale = current.isStale && !isNever && !months.error;
  const series: Series = {
    period,
    zone,
    // Without a start nothing is requested, and the data is that of the previous query.
    summary: isNever
      ? months.data
      : !start && months.error
        ? undefined
        : first && shown
          ? { current: shown.current, ...(!hours.isStale && bucketsOf(ofHours)) }
          : shown,
    first,
    before: earlier && !before.isStale ? earlierFigures : undefined,
    earlier,
    interval: first ? "hour" : interval,
    intervals,
    end,
    isLoading: current.isLoading || months.isLoading,
    isStale,
    error,
  };
  const last = useRef(series);
  if (!isStale && series.summary) last.current = series;
  return isStale ? { ...last.current, isLoading: series.isLoading, isStale } : series;
}

/** The start of the first day with a view, if it is the last or the last but one of several. */
function beginningOf(days: readonly Bucket[] = []): Date | undefined {
  const place = days.findIndex(({ pageviews }) => pageviews > 0);
  const isNew = place > 0 && place >= days.length - NEW_DAYS;
  return isNew ? new Date(days[place]?.date ?? "") : undefined;
}

function bucketsOf(summary: Summary | undefined) {
  return summary?.interval && { interval: summary.interval };
}

function startOf(buckets: Bucket[] | undefined): Date | undefined {
  const [first] = buckets ?? [];
  return first && new Date(first.date);
}
