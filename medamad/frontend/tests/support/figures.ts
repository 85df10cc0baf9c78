// Figures as the daemon reports them.

import type { Bucket, Figures } from "../../dashboard/api/types.ts";

/** The figures of a period without any view, but for those that are given. */
export function figures(known: Partial<Figures> = {}): Figures {
  return {
    visitors: 0,
    pageviews: 0,
    bounce_percentage: 0,
    duration: 0,
    visits: 0,
    views_per_visit: 0,
    visit_bounce_percentage: 0,
    visit_duration: 0,
    ...known,
  };
}

/**
 * The figures of visits: their number, the views of them that match, the share that bounced, their
 * mean time. Each has one view more, which does not match.
 */
export function visited(
  visits: number,
  pageviews: number,
  visit_bounce_percentage: number,
  visit_duration: number,
): Figures {
  return figures({
    visitors: visits,
    visits,
    pageviews,
    visit_pageviews: pageviews + visits,
    views_per_visit: visits && pageviews / visits,
    visit_bounce_percentage,
    visit_duration,
    duration: visit_duration,
  });
}

/** The figures of a bucket that begins at a time. */
export function bucket(date: string, of: Figures = figures()): Bucket {
  return { ...of, date };
}
