// The measures of a period: which are known, and how they are formatted.

import type { Figures } from "../api/types.ts";
import { duration, figure, percent, shortFigure } from "../i18n/index.ts";
import type { Measure } from "./address.ts";
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
const OF_VIEWS = ["visitors", "pageviews", "bounce_percentage", "duration"] as const;

/** The measures of a website's page, in their order. */
export function measures(): readonly Measure[] {
  if (!countsVisitors.value) return WITHOUT_VISITORS;
  return keepsVisits.value ? OF_VISITS : OF_VIEWS;
}

/** The measure to chart: the chosen one, if the page has it. */
export function charted(chosen: Measure): Measure {
  const [first = "visitors"] = measures();
  return measures().includes(chosen) ? chosen : first;
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
