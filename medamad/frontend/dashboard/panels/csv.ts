// Tables as files of comma-separated values (RFC 4180) that are safe to open in a spreadsheet.

/** What a spreadsheet may take for the beginning of a formula, or of a marked text. */
const FORMULA = new Set("'\"=+-@\uff1d\uff0b\uff0d\uff20\t\r\n");

/** Where a spreadsheet may split a cell, as it does at semicolons in many languages. */
const SPLIT = new Set(";\t\r\n");

/** Excel takes a file for UTF-8 only if it begins with this. */
const BYTE_ORDER_MARK = "\ufeff";

const KEPT_MS = 10_000;

/** Write rows of cells. A text that looks like a formula gets an apostrophe before it, as in exports. */
export function writeCsv(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function cell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const safe = marked(value);
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Put an apostrophe before whatever may be taken for a formula: the text, and each part of it. */
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

/** Have the browser save a table as a file. */
export function saveCsv(name: string, table: string): void {
  const address = URL.createObjectURL(new Blob([BYTE_ORDER_MARK, table], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
