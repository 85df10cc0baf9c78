// The annotations of the period, and where the chart has them.

import type { Annotation } from "../api/types.ts";
import { useAsk } from "../state/data.ts";
import type { Part } from "./buckets.ts";
import { useViewing } from "./page-state.ts";
import { type Days, spanOfRange, wholeSpan, writeSpan } from "./periods.ts";

/** The path of a website's annotations. */
export function annotationsPath(hostname: string): string {
  return `/websites/${encodeURIComponent(hostname)}/annotations`;
}

/** Request the annotations of the period. */
export function useAnnotations(): readonly Annotation[] {
  const { hostname, view, zone } = useViewing();
  const { data } = useAsk<Annotation[]>(annotationsPath(hostname), () =>
    writeSpan(wholeSpan(view.period, zone), new URLSearchParams({ timezone: zone })),
  );
  return data ?? NONE;
}

const NONE: readonly Annotation[] = [];

/** Whether an annotation is of a day rather than of a point in time. */
export function isOfDay({ time }: Annotation): boolean {
  return !time.includes("T");
}

/** The annotations of each bucket, by its place. */
export function byPlace(
  annotations: readonly Annotation[],
  buckets: readonly Part[],
  zone: string,
): Map<number, Annotation[]> {
  const places = new Map<number, Annotation[]>();
  for (const one of annotations) {
    const { start, end } = spanOf(one, zone);
    const place = buckets.findIndex((bucket) => bucket.end > start && bucket.start < end);
    if (place >= 0) places.set(place, [...(places.get(place) ?? []), one]);
  }
  return places;
}

function spanOf(one: Annotation, zone: string): Days {
  if (isOfDay(one)) return spanOfRange({ from: one.time, to: one.time }, zone);
  const start = new Date(one.time);
  return { start, end: new Date(start.valueOf() + 1) };
}
