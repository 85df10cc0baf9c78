// The names of API values in the user's language: the API returns countries, languages
// and devices by their English names, and an empty string for none.

import { signal } from "@preact/signals";
import { type Key, language, locale, t } from "../i18n/index.ts";
import { nameOf } from "../ui/hostnames.ts";
import { type Field, isTruth, ofViews } from "../view/filters.ts";

type Names = typeof import("names").default;

/** The codes by English name, once loaded. */
export const names = signal<Names>();
/** The names of the goals by their ids, once loaded. */
export const goalNames = signal<Record<string, string>>({});
let isRequested = false;

/** Load the codes by English name; until then the English names are shown. */
function codes(): Names | undefined {
  if (!isRequested) {
    isRequested = true;
    import("names").then(
      (module) => {
        names.value = module.default;
      },
      () => {
        isRequested = false;
      },
    );
  }
  return names.value;
}

const DEVICES = ["Desktop", "Mobile", "Tablet", "TV", "Console"];
const MAY_BE_UNKNOWN: readonly Field[] = ["country", "language", "browser", "os", "device"];

/** The direction of a field's values: addresses begin at the left, whatever their letters. */
export function directionOf(field: Field): "ltr" | "auto" {
  return ["path", "referrer"].includes(ofViews(field)) ? "ltr" : "auto";
}

/** Return a value's name, with its hostname also as browsers send it, if that is another. */
export function fullWordOf(field: Field, value: string): string {
  const word = wordOf(field, value);
  return ofViews(field) === "referrer" && value && word !== value ? `${word} (${value})` : word;
}

/** Return the name of a field's value. */
export function wordOf(field: Field, value: string): string {
  if (value === "") return t(ofViews(field) === "referrer" ? "panels.direct" : "panels.none");
  if (isTruth(field)) return t(`filters.${field}.${value as "true" | "false"}`);
  if (field === "goal") return goalNames.value[value] ?? value;
  if (value === "(other)") return t("panels.other");
  if (value === "Unknown" && MAY_BE_UNKNOWN.includes(field)) return t("panels.unknown");
  if (field === "device" && DEVICES.includes(value)) return t(`panels.device.${value}` as Key);
  if (ofViews(field) === "referrer") {
    const [host = ""] = value.split("/", 1);
    return nameOf(host) + value.slice(host.length);
  }
  if (language.value === "en") return value;
  if (field === "country") return countryWord(codes()?.countries[value]) ?? value;
  if (field === "language") return languageWord(value) ?? value;
  return value;
}

/** Return the name of a country by its ISO code. */
export function countryWord(code: string | undefined): string | undefined {
  return code && word("region", code);
}

/** English names of locales are those of the language, with details in brackets. */
const LOCALE = /^(.+?)(?: \(([^()]+)\))?$/;

function languageWord(name: string): string | undefined {
  const known = codes();
  if (!known) return undefined;
  const [, base = "", rest] = LOCALE.exec(name) ?? [];
  const tag = known.languages[name] ?? known.languages[base];
  if (!tag || known.languages[name] || !rest) return tag && word("language", tag);
  const region = known.countries[rest];
  return region && word("language", `${tag}-${region}`);
}

const displays = new Map<string, Intl.DisplayNames>();

function word(type: "region" | "language", code: string): string | undefined {
  const key = `${type} ${locale.value}`;
  const display = displays.get(key) ?? new Intl.DisplayNames(locale.value, { type });
  displays.set(key, display);
  try {
    return display.of(code);
  } catch {
    return undefined;
  }
}

/**
 * Return the English name that the API uses for a value in the user's language. What
 * is unknown is returned unchanged.
 */
export function valueNamed(field: Field, typed: string, among: readonly string[]): string {
  const sought = typed.trim().toLocaleLowerCase(locale.value);
  const known =
    field === "country"
      ? Object.keys(codes()?.countries ?? {})
      : field === "language"
        ? Object.keys(codes()?.languages ?? {})
        : field === "device"
          ? DEVICES
          : [];
  const all = [...among, ...(language.value === "en" && field !== "device" ? [] : known)];
  return (
    all.find((name) => wordOf(field, name).toLocaleLowerCase(locale.value) === sought) ??
    typed.trim()
  );
}
