// Periods in words.

import { dates, moment, t } from "../i18n/index.ts";
import type { Interval, Period } from "./address.ts";
import type { Part } from "./buckets.ts";
import { rangeOf, type Span, wholeSpan } from "./periods.ts";

const DAY = { day: "numeric", month: "short", year: "numeric" } as const;
const TIME = { ...DAY, hour: "numeric", minute: "2-digit" } as const;

/** The name of a period, or its days. */
export function periodLabel(period: Period, zone: string): string {
  if (typeof period === "string") return t(`period.${period}`);
  return spanLabel(wholeSpan(period, zone), zone, isFine(period));
}

function isFine(period: Period): boolean {
  return period === "24h" || (typeof period === "object" && period.from.includes("T"));
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
  return spanLabel(span, zone, isFine(period));
}

/** A date from the daemon, in words. */
export function dateLabel(date: string): string {
  return moment(new Date(`${date}T00:00:00Z`), { dateStyle: "medium" }, "UTC");
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
  const { start, end, isWhole } = part;
  if (interval === "week" || (interval === "month" && !isWhole))
    return spanLabel(part, zone, hasTimes(part, zone));
  const form = dates({
    ...BUCKET_FORMS[isWhole || interval === "minute" ? interval : "hour"],
    timeZone: zone,
  });
  return isWhole || interval === "minute" ? form.format(start) : form.formatRange(start, end);
}

function hasTimes({ start, end }: Part, zone: string): boolean {
  return rangeOf(start, end, "day", zone).from.includes("T");
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
