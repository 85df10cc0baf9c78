// The measures of a period: which are known, and how they are formatted.

import type { Figures } from "../api/types.ts";
import { duration, figure, percent, shortFigure } from "../i18n/index.ts";
import type { Measure, View } from "./address.ts";
import { countsVisitors, keepsVisits } from "./visits.ts";

const OF_VISITS = [
  "visitors",
  "visits",
  "pageviews",
  "views_per_visit",
  "visit_bounce_percentage",
  "visit_duration",
] as const;
const WITHOUT_VISITORS = OF_VISITS.filter((measure) => measure !== "visitors");
const WITHOUT_VISITS = OF_VISITS.filter((measure) => measure !== "visits");
const OF_VIEWS = ["visitors", "pageviews", "bounce_percentage", "duration"] as const;

/** The measures of a website's page, in their order. */
export function measures({ filters }: Pick<View, "filters">): readonly Measure[] {
  if (!countsVisitors.value) return WITHOUT_VISITORS;
  if (!keepsVisits.value) return OF_VIEWS;
  // Goals are reached in visits.
  return filters.some(({ field }) => field === "goal") ? ["visits", ...WITHOUT_VISITS] : OF_VISITS;
}

/** The measure to chart: the chosen one, if the page has it. */
export function charted(view: Pick<View, "filters" | "measure">): Measure {
  const shown = measures(view);
  const [first = "visitors"] = shown;
  return view.measure && shown.includes(view.measure) ? view.measure : first;
}

/** Return a measure, or null if it is unknown. */
export function known(measure: Measure, figures: Figures): number | null {
  const value = figures[measure];
  return value === undefined || !isKnown(measure, figures) ? null : value;
}

/** Whether any view or visit provides a figure: means, shares and times are 0 otherwise. */
export function isKnown(name: string, beside: { [Name in keyof Figures]?: unknown }): boolean {
  const { visitors, visits, bounce_percentage, duration, visit_duration } = beside;
  const isTimed = Number(duration) > 0;
  switch (name) {
    case "duration":
      return isTimed;
    case "visit_duration":
      return Number(visit_duration) > 0;
    case "views_per_visit":
    case "visit_bounce_percentage":
      return Number(visits) > 0;
    case "bounce_percentage":
      // Imported daily totals may have bounces but no times.
      return Number(bounce_percentage) > 0 || (isTimed && Number(visitors) > 0);
    default:
      return true;
  }
}

/** A figure in words, with every digit if `isExact`; a dash if unknown. */
export function measured(measure: Measure, value: number | null, isExact = false): string {
  if (value === null) return "–";
  if (measure.endsWith("duration")) return duration(value);
  if (measure.endsWith("_percentage")) return percent(value);
  return isExact ? figure(value) : shortFigure(value);
}
