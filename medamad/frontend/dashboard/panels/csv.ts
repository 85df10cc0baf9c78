// CSV files (RFC 4180) that are safe to open in a spreadsheet.

/** What a spreadsheet may interpret as the start of a formula or of an escaped text. */
const FORMULA = new Set("'\"=+-@\uff1d\uff0b\uff0d\uff20\t\r\n");

/** Where a spreadsheet may split a cell, as it does at semicolons in many languages. */
const SPLIT = new Set(";\t\r\n");

/** Excel recognises UTF-8 only with this mark. */
const BYTE_ORDER_MARK = "\ufeff";

const KEPT_MS = 10_000;

/** Write rows of cells. A text that looks like a formula is preceded by an apostrophe, as in exports. */
export function writeCsv(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function cell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const safe = marked(value);
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Put an apostrophe before anything that may be read as a formula: the text and each part. */
function marked(text: string): string {
  let found = "";
  let begins = true;
  for (const sign of text) {
    if (begins && FORMULA.has(sign)) found += "'";
    found += sign;
    begins = SPLIT.has(sign);
  }
  return found;
}

/** Save a table as a file. */
export function saveCsv(name: string, table: string): void {
  const address = URL.createObjectURL(new Blob([BYTE_ORDER_MARK, table], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
