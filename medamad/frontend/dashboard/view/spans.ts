// Periods in words.

import type { Annotation } from "../api/types.ts";
import { dates, moment, t } from "../i18n/index.ts";
import type { Interval, Period } from "./address.ts";
import { isOfDay } from "./annotations.ts";
import type { Part } from "./buckets.ts";
import type { Compared } from "./comparison.ts";
import { isTimes, rangeOf, type Span, wholeSpan } from "./periods.ts";

const DAY = { day: "numeric", month: "short", year: "numeric" } as const;
const TIME = { ...DAY, hour: "numeric", minute: "2-digit" } as const;

/** The name of a period, or its days. */
export function periodLabel(period: Period, zone: string): string {
  if (typeof period === "string") return t(`period.${period}`);
  return spanLabel(wholeSpan(period, zone), zone, isTimes(period));
}

/** The days of a span, or its times if it is finer than days. */
export function spanLabel({ start, end }: Span, zone: string, showsTimes: boolean): string {
  const form = dates({ ...(showsTimes ? TIME : DAY), timeZone: zone });
  // The end is exclusive.
  const last = new Date(end.valueOf() - (showsTimes ? 0 : 1));
  return start ? form.formatRange(start, last) : t("period.since-ever");
}

/** The days of a period in words, whether or not it has a name. */
export function daysLabel(span: Span, period: Period, zone: string): string {
  return spanLabel(span, zone, isTimes(period));
}

/** The days that a period is compared with, and until when. */
export function comparedLabel({ whole, start, end }: Compared, period: Period, zone: string) {
  const label = daysLabel({ start, end }, period, zone);
  return end < whole.end && !isTimes(period) ? until(label, end, zone) : label;
}

function until(span: string, end: Date, zone: string): string {
  const time = dates({ hour: "numeric", minute: "2-digit", timeZone: zone }).format(end);
  return t("period.until", { span, time });
}

/** A date from the daemon, in words. */
export function dateLabel(date: string): string {
  return moment(new Date(`${date}T00:00:00Z`), { dateStyle: "medium" }, "UTC");
}

/** When an annotation is, in words. */
export function annotationLabel(one: Annotation, zone: string): string {
  if (isOfDay(one)) return dateLabel(one.time);
  return dates({ ...TIME, timeZone: zone }).format(new Date(one.time));
}

const BUCKET_FORMS: Record<Interval, Intl.DateTimeFormatOptions> = {
  minute: { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" },
  hour: { weekday: "short", day: "numeric", month: "short", hour: "numeric", minute: "2-digit" },
  day: { weekday: "short", day: "numeric", month: "long", year: "numeric" },
  week: DAY,
  month: { month: "long", year: "numeric" },
};

/** The full description of a bucket. */
export function partLabel(part: Part, interval: Interval, zone: string): string {
  const { start, end, isWhole, until: cut } = part;
  if (interval === "week" || (interval === "month" && (cut || !isWhole))) {
    const showsTimes = isTimes(rangeOf(start, end, "day", zone));
    const label = spanLabel({ start, end: cut ?? end }, zone, showsTimes);
    return cut && !showsTimes ? until(label, cut, zone) : label;
  }
  const form = dates({
    ...BUCKET_FORMS[isWhole || interval === "minute" ? interval : "hour"],
    timeZone: zone,
  });
  if (!isWhole && interval !== "minute") return form.formatRange(start, cut ?? end);
  return cut ? until(form.format(start), cut, zone) : form.format(start);
}

/** The axis label of a bucket; `isTurn` if a new day or year begins. */
export function tickLabel(start: Date, interval: Interval, zone: string, isTurn: boolean): string {
  const isFine = interval === "minute" || interval === "hour";
  const turn = isFine ? { day: "numeric", month: "short" } : { month: "short", year: "numeric" };
  const usual = isFine
    ? { hour: "numeric", minute: "2-digit" }
    : interval === "month"
      ? { month: "short" }
      : { day: "numeric", month: "short" };
  return dates({
    ...((isTurn ? turn : usual) as Intl.DateTimeFormatOptions),
    timeZone: zone,
  }).format(start);
}
