// The columns of a full list: their titles and how their figures are formatted on the page and in
// a file.

import { duration, figure, type Key, percent, t } from "../i18n/index.ts";
import { isKnown } from "../view/measures.ts";
import { columnLabel, keyOf, type Listing, type ListRow } from "./lists.ts";
import { wordOf } from "./words.ts";

export interface Column {
  name: string;
  label: string;
  isText: boolean;
  /** The value for sorting and searching. */
  value: (row: ListRow) => string | number;
  /** What the page shows. */
  shown: (row: ListRow) => string;
  /** The value in a file: raw figures, times in seconds, shares in percent, or nothing. */
  inFile: (row: ListRow) => string | number;
  fileLabel: string;
}

const CONVERSIONS = ["conversions", "conversion_percentage"];

/**
 * The columns of a list; `hasNames` where values are of several properties, `converts` where a goal
 * is chosen.
 */
export function columnsOf(listing: Listing, hasNames: boolean, converts: boolean): Column[] {
  const value = text(listing.column, columnLabel(listing), (row) =>
    wordOf(listing.field, String(row[listing.column])),
  );
  const names = text("name", t("filters.field.prop_name"), ({ name }) => String(name));
  const figures = converts ? [...listing.columns, ...CONVERSIONS] : listing.columns;
  return [...(hasNames ? [names] : []), value, ...figures.map(numbers)];
}

function text(name: string, label: string, word: (row: ListRow) => string): Column {
  return {
    name,
    label,
    isText: true,
    value: word,
    shown: word,
    inFile: word,
    fileLabel: label,
  };
}

function numbers(name: string): Column {
  const key = keyOf(name);
  const label = t(`panels.column.${name}` as Key);
  const ifKnown = <T>(row: ListRow, write: (value: number) => T, unknown: T) =>
    row[key] !== undefined && isKnown(key, row) ? write(Number(row[key])) : unknown;
  const column = (
    written: (value: number) => string,
    inFile: (value: number) => number | string,
    fileLabel = label,
  ): Column => ({
    name,
    label,
    isText: false,
    // Unknown values sort below 0.
    value: (row) => ifKnown(row, Number, -1),
    shown: (row) => ifKnown(row, written, "–"),
    inFile: (row) => ifKnown(row, inFile, ""),
    fileLabel,
  });
  if (name.endsWith("_percentage")) {
    return column(percent, (share) => Math.round(share * 10_000) / 100);
  }
  if (key.includes("duration")) {
    const fileLabel = t("panels.csv-seconds", { column: label });
    return column(duration, (ms) => ms / 1000, fileLabel);
  }
  return column(figure, Number);
}

export interface Order {
  column: string;
  falls: boolean;
}

/** Rows sorted by a column, stably. */
export function inOrder(rows: readonly ListRow[], column: Column, falls: boolean): ListRow[] {
  const sign = falls ? -1 : 1;
  const keyed = rows.map((row) => [column.value(row), row] as const);
  if (column.isText) {
    const { compare } = new Intl.Collator(undefined, { numeric: true });
    keyed.sort(([one], [other]) => sign * compare(String(one), String(other)));
  } else {
    keyed.sort(([one], [other]) => sign * (Number(one) - Number(other)));
  }
  return keyed.map(([, row]) => row);
}
