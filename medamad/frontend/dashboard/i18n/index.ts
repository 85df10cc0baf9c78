// Texts in the chosen language, and numbers and dates in the user's format.

import { signal } from "@preact/signals";
import type { Language } from "../api/types.ts";
import { local } from "../state/local-storage.ts";
import type { en } from "./en/index.ts";

/** The texts. A text with a count has the forms KEY.one and KEY.other (CLDR's plural categories). */
export type Key = keyof typeof en;
export type Catalogue = Record<Key, string>;
type Counted<K> = K extends `${infer Base}.other` ? Base : never;
export type CountedKey = Counted<Key>;

const KEPT = "medamad.language";

const catalogues: Record<Language, () => Promise<Catalogue>> = {
  en: async () => (await import("./en/index.ts")).en,
  de: async () => (await import("./de.ts")).de,
  fr: async () => (await import("./fr.ts")).fr,
  es: async () => (await import("./es.ts")).es,
  ja: async () => (await import("./ja.ts")).ja,
  zh: async () => (await import("./zh.ts")).zh,
};

/** The current language; undefined until its catalogue has been loaded. */
export const language = signal<Language | undefined>(undefined);
const catalogue = signal({} as Catalogue);

/** The locale for numbers and dates: the browser's variant of the language, if it has one. */
export const locale = signal("en");

let lastWanted: Language | undefined;

/** Switch to a language that was chosen, and remember it in this browser. */
export async function speak(wanted: Language): Promise<void> {
  await switchTo(wanted);
  if (wanted === lastWanted) local?.setItem(KEPT, wanted);
}

/** Switch to a language. Texts change once its catalogue has been loaded. */
async function switchTo(wanted: Language): Promise<void> {
  lastWanted = wanted;
  if (wanted !== language.peek()) {
    const texts = await catalogues[wanted]();
    // Another one may have been chosen and loaded in the meantime.
    if (wanted !== lastWanted && language.peek()) return;
    catalogue.value = texts;
    language.value = wanted;
  }
  locale.value = navigator.languages.find((tag) => tag.split("-")[0] === wanted) ?? wanted;
  document.documentElement.lang = wanted;
}

/** Before login, use the language last chosen in this browser, or the one it prefers. */
export async function speakAsBefore(): Promise<void> {
  const wishes = [local?.getItem(KEPT), ...navigator.languages];
  for (const wish of wishes) {
    const known = Object.keys(catalogues).find((code) => code === wish?.split("-")[0]);
    if (known) return switchTo(known as Language);
  }
  return switchTo("en");
}

type Values = Record<string, string | number>;

/** Return a text, with `{name}` replaced by the value of that name. */
export function t(key: Key, values: Values = {}): string {
  return filled(catalogue.value[key], values);
}

/** Return a text with a count: `{n}` is the number in the user's format. */
export function tn(key: CountedKey, count: number, values: Values = {}): string {
  const form = new Intl.PluralRules(language.value).select(count) === "one" ? "one" : "other";
  const text = catalogue.value[`${key}.${form}` as Key];
  return filled(text, { n: figure(count), ...values });
}

/** Return a text with `{name}` replaced by the value of that name. */
export function filled(text: string, values: Values): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

const LEAST_SHOWN = 0.001;

// Making a format takes much longer than using it.
const numberFormats = new Map<string, Intl.NumberFormat>();
const dateFormats = new Map<string, Intl.DateTimeFormat>();

function numbers(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = locale.value + JSON.stringify(options);
  const known = numberFormats.get(key) ?? new Intl.NumberFormat(locale.value, options);
  numberFormats.set(key, known);
  return known;
}

/** The user's format of dates and times. */
export function dates(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = locale.value + JSON.stringify(options);
  const known = dateFormats.get(key) ?? new Intl.DateTimeFormat(locale.value, options);
  dateFormats.set(key, known);
  return known;
}

/** A number with all its digits. */
export function figure(value: number): string {
  return numbers({}).format(value);
}

/** Below, some languages have no suffix, without which a shortened number would look exact. */
const SHORTENED_FROM = 1_000_000;
const COMPACT = { notation: "compact", maximumSignificantDigits: 3 } as const;

/** A number with all its digits, a very large one shortened: 123,456, 1.23M. */
export function shortFigure(value: number): string {
  return value < SHORTENED_FROM ? figure(value) : numbers(COMPACT).format(value);
}

/** A fraction from 0 to 1 as a percentage: what is more than nothing is never 0 %. */
export function percent(fraction: number): string {
  if (fraction > 0 && fraction < LEAST_SHOWN) return `<${percent(LEAST_SHOWN)}`;
  return numbers({ style: "percent", maximumFractionDigits: fraction < 0.1 ? 1 : 0 }).format(
    fraction,
  );
}

/** A change as a percentage, with its sign. */
export function changeOf(fraction: number): string {
  return numbers({
    style: "percent",
    maximumFractionDigits: 0,
    signDisplay: "exceptZero",
  }).format(fraction);
}

/** German has no narrow form: "4 Min. 42 Sek." would not fit where others have "4m 42s". */
const SYMBOLS = { hour: "h", minute: "min", second: "s", millisecond: "ms" } as const;
type Unit = keyof typeof SYMBOLS;

/** Milliseconds in their two largest units: 1h 5m, 2m 3s, 4s. */
export function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const unit = (value: number, name: Unit) =>
    language.value === "de"
      ? `${figure(value)}\u00a0${SYMBOLS[name]}`
      : numbers({ style: "unit", unit: name, unitDisplay: "narrow" }).format(value);
  if (ms > 0 && ms < 1000) return unit(Math.round(ms), "millisecond");
  if (seconds < 60) return unit(seconds, "second");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${unit(minutes, "minute")} ${unit(seconds % 60, "second")}`;
  const hours = Math.floor(minutes / 60);
  return `${unit(hours, "hour")} ${unit(minutes % 60, "minute")}`;
}

/** An amount of money. */
export function money(amount: number, currency: string): string {
  return numbers({ style: "currency", currency }).format(amount);
}

const ROUNDED_FROM = 1_000;

/** An amount of money, a large one rounded, a very large one shortened: €1,235, €1.23M. */
export function shortMoney(amount: number, currency: string): string {
  const size = Math.abs(amount);
  if (size < ROUNDED_FROM) return money(amount, currency);
  const short = size < SHORTENED_FROM ? ({ maximumFractionDigits: 0 } as const) : COMPACT;
  return numbers({ style: "currency", currency, ...short }).format(amount);
}

/** Bytes in the largest unit of which there is at least one. */
export function bytes(value: number): string {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
  const step = Math.min(Math.floor(Math.log2(Math.max(value, 1)) / 10), units.length - 1);
  return numbers({
    style: "unit",
    unit: units[step] as string,
    maximumFractionDigits: step > 2 ? 1 : 0,
  }).format(value / 1024 ** step);
}

/** A date and time, in a time zone if one is given. */
export function moment(date: Date, options: Intl.DateTimeFormatOptions, zone?: string): string {
  return dates({ ...options, ...(zone && { timeZone: zone }) }).format(date);
}

/** How long ago something was: 5 minutes ago. */
export function ago(
  unixSeconds: number,
  style: Intl.RelativeTimeFormatStyle = "long",
  now = Date.now(),
): string {
  const format = new Intl.RelativeTimeFormat(locale.value, { numeric: "auto", style });
  const seconds = Math.min(Math.round(unixSeconds - now / 1000), 0);
  if (seconds > -60) return format.format(seconds, "second");
  if (seconds > -3_600) return format.format(Math.round(seconds / 60), "minute");
  if (seconds > -86_400) return format.format(Math.round(seconds / 3_600), "hour");
  return format.format(Math.round(seconds / 86_400), "day");
}
