// A duration in words.

import { locale } from "../i18n/index.ts";

const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

/** Whole seconds in the largest unit that fits. */
export function lasting(seconds: number): string {
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? ["second", 1];
  return new Intl.NumberFormat(locale.value, {
    style: "unit",
    unit,
    unitDisplay: "long",
  }).format(Math.floor(seconds / length));
}
