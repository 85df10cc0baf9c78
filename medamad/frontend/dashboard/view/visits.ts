// What is known of visits: nothing if the server keeps none, and not for every day.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Bucket, Figures, Summary } from "../api/types.ts";
import type { Answer } from "../state/data.ts";
import { lacksVisits } from "../state/partial.ts";

/** Whether the server keeps visits; it refuses to report them otherwise. */
export const keepsVisits = signal(true);

/** Whether the server counts visitors; otherwise visits take their place. */
export const countsVisitors = signal(true);

/** Whether the server knows networks of hosting providers. */
export const knowsHosting = signal(false);

/** The parameter that adds figures of visits. */
export const VISITS = "visits";

/** Return a summary without the figures of visits where these are unknown, rather than 0. */
export function useKnownVisits(answer: Answer<Summary>): Summary | undefined {
  const { data, partial } = answer;
  return useMemo(() => {
    if (!data || !lacksVisits(partial)) return data;
    const interval = data.interval?.map(withKnownVisits);
    return { ...data, current: withKnownVisits(data.current), ...(interval && { interval }) };
  }, [data, partial]);
}

function withKnownVisits<F extends Figures | Bucket>(figures: F): F {
  return figures.visits || figures.pageviews === 0 ? figures : withoutVisits(figures);
}

/** Return figures without those of visits. */
export function withoutVisits<F extends Figures>(figures: F): F {
  const {
    visits,
    visit_pageviews,
    views_per_visit,
    visit_bounce_percentage,
    visit_duration,
    ...others
  } = figures;
  return others as F;
}
