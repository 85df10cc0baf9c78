// What changed in words: sentences that are exact, and whose numbers add up.

import type { Change, ChangedDimension, Changes } from "../api/types.ts";
import { CHANGE_TEXTS, type ChangeTexts } from "../i18n/changes.ts";
import { figure, language, locale, money } from "../i18n/index.ts";
import { wordOf } from "../panels/words.ts";
import type { Field } from "./filters.ts";

/** How many parts or pairs are named in sentences. */
const NAMED = 2;
/** With fewer earlier weeks, the server does not know by how much a figure varies. */
const MIN_WEEKS = 4;

/** The filter whose values the parts of a dimension are; a goal's are not split further. */
export const FIELD_OF = {
  source: "visit_referrer",
  entry_page: "entry_page",
  country: "country",
  device: "device",
  campaign: "visit_utm_campaign",
} as const satisfies Record<Exclude<ChangedDimension, "goal">, Field>;

type Split = keyof typeof FIELD_OF;

export interface Piece extends Change {
  parts: { dimension: Split; name: string }[];
}

/** A text about what changed, with `{name}` replaced by the value of that name. */
export function said(key: keyof ChangeTexts, values: Record<string, string> = {}): string {
  const text = CHANGE_TEXTS[language.value ?? "en"][key];
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

/** A figure, or an amount of money. */
export function amountOf(value: number, currency: string | undefined): string {
  return currency ? money(value, currency) : figure(value);
}

/** The same with its sign. */
export function signedOf(value: number, currency: string | undefined): string {
  return new Intl.NumberFormat(locale.value, {
    signDisplay: "exceptZero",
    ...(currency && { style: "currency", currency }),
  }).format(value);
}

/** Return two or three sentences on what changed. `name` is that of the figure. */
export function sentences(changes: Changes, name: string): string[] {
  const { by_chance: byChance, currency, now, before } = changes;
  if (byChance) {
    const values = { name, now: amountOf(now, currency), before: amountOf(before, currency) };
    return [said("asBefore", values), ...prominent(changes)];
  }
  const changed = said("changed", { name, moved: moved(changes, currency) });
  if (byChance === false) return [changed, ...prominent(changes)];
  return [changed, said(changes.earlier_weeks < MIN_WEEKS ? "fewWeeks" : "unknownDays")];
}

function prominent(changes: Changes): string[] {
  const pieces = standingOut(changes);
  if (pieces.length === 0) {
    const haveChanged = changes.dimensions.some(({ parts }) =>
      parts.some((part) => part.by_chance === false),
    );
    return [said(haveChanged ? "alike" : "nothing")];
  }
  return pieces.map((piece) =>
    said("standsOut", {
      parts: new Intl.ListFormat(locale.value, { type: "conjunction" }).format(
        piece.parts.map(({ dimension, name }) =>
          said("part", { dimension: said(dimension), name: wordOf(FIELD_OF[dimension], name) }),
        ),
      ),
      moved: moved(piece, changes.currency),
    }),
  );
}

function moved({ difference, before, now }: Change, currency: string | undefined): string {
  const key = difference > 0 ? "up" : difference < 0 ? "down" : "level";
  return said(key, {
    n: amountOf(Math.abs(difference), currency),
    before: amountOf(before, currency),
    now: amountOf(now, currency),
  });
}

/**
 * The pairs, and else the changed parts, that are furthest from what they would have if everything
 * had changed alike. What has a part that is named already is left out.
 */
export function standingOut(changes: Changes): Piece[] {
  const rate = (changes.now - changes.before) / (changes.now + changes.before || 1);
  const distance = ({ before, now }: Change) => Math.abs(now - before - rate * (now + before));
  const parts = changes.dimensions.flatMap(({ dimension, parts }) =>
    dimension === "goal"
      ? []
      : parts
          .filter((part) => part.by_chance === false)
          .map((part): Piece => ({ ...part, parts: [{ dimension, name: part.name }] })),
  );
  parts.sort((one, other) => distance(other) - distance(one));
  const named: Piece[] = [];
  for (const piece of [...(changes.pairs as Piece[]), ...parts]) {
    const isNamed = named.some((other) =>
      other.parts.some(({ dimension, name }) =>
        piece.parts.some((part) => part.dimension === dimension && part.name === name),
      ),
    );
    // Apart from what rounding leaves.
    if (!isNamed && distance(piece) > 1e-9 * (changes.before + changes.now)) named.push(piece);
  }
  return named.slice(0, NAMED);
}
