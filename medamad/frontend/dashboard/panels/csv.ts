// Tables as files of comma-separated values (RFC 4180) that are safe to open in a spreadsheet.

/** What a spreadsheet may take for the beginning of a formula. */
const FORMULA = /^[=+\-@\t\r\n]/;

/** Excel takes a file for UTF-8 only if it begins with this. */
const BYTE_ORDER_MARK = "\ufeff";

const KEPT_MS = 10_000;

/** Write rows of cells. Texts that look like a formula get an apostrophe before them. */
export function writeCsv(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function cell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
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
