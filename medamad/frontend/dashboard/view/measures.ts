// The measures of a stretch of time: which of them are known, and how they are written.

import type { Figures } from "../api/types.ts";
import { duration, figure, percent, shortFigure } from "../i18n/index.ts";
import type { Measure } from "./address.ts";

/** Give a measure, or null where no view tells of it: none was timed, or none was a first one. */
export function known(measure: Measure, figures: Figures): number | null {
  return isKnown(measure, figures) ? figures[measure] : null;
}

/** Whether any view tells of a figure, by those beside it: bounces and times are 0 where none does. */
export function isKnown(name: string, beside: Partial<Record<Measure, unknown>>): boolean {
  const { visitors, bounce_percentage, duration } = beside;
  const isTimed = Number(duration) > 0;
  if (name === "duration") return isTimed;
  if (name !== "bounce_percentage") return true;
  // Days that another program has added up may have bounces, and no times.
  return Number(bounce_percentage) > 0 || (isTimed && Number(visitors) > 0);
}

/** A figure of a measure in words, every digit of it where `isExact`; a dash where it is unknown. */
export function measured(measure: Measure, value: number | null, isExact = false): string {
  if (value === null) return "–";
  if (measure === "duration") return duration(value);
  if (measure === "bounce_percentage") return percent(value);
  return isExact ? figure(value) : shortFigure(value);
}
