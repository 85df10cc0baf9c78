// The measures of a period: which are known, and how they are formatted.

import type { Figures } from "../api/types.ts";
import { duration, figure, percent, shortFigure } from "../i18n/index.ts";
import type { Measure } from "./address.ts";

/** Return a measure, or null if no view provides it. */
export function known(measure: Measure, figures: Figures): number | null {
  return isKnown(measure, figures) ? figures[measure] : null;
}

/** Whether any view provides a figure: bounces and times are 0 otherwise. */
export function isKnown(name: string, beside: Partial<Record<Measure, unknown>>): boolean {
  const { visitors, bounce_percentage, duration } = beside;
  const isTimed = Number(duration) > 0;
  if (name === "duration") return isTimed;
  if (name !== "bounce_percentage") return true;
  // Imported daily totals may have bounces but no times.
  return Number(bounce_percentage) > 0 || (isTimed && Number(visitors) > 0);
}

/** A figure in words, with every digit if `isExact`; a dash if unknown. */
export function measured(measure: Measure, value: number | null, isExact = false): string {
  if (value === null) return "–";
  if (measure === "duration") return duration(value);
  if (measure === "bounce_percentage") return percent(value);
  return isExact ? figure(value) : shortFigure(value);
}
