// Decode a hostname's labels from punycode (RFC 3492).

import { decode } from "punycode/punycode.es6.js";

/**
 * Scripts that are written together in one name (Unicode Technical Standard 39, highly restrictive).
 * A mix of other scripts is treated as an attempt to mislead.
 */
const TOGETHER = [
  ...["Arab", "Armn", "Beng", "Cyrl", "Deva", "Ethi", "Geor", "Grek", "Gujr", "Guru", "Hebr"],
  ...["Khmr", "Knda", "Laoo", "Latn", "Mlym", "Mymr", "Orya", "Sinh", "Taml", "Telu", "Thaa"],
  ...["Thai", "Tibt", "Latn Hani Hira Kana", "Latn Hani Bopo", "Latn Hani Hang"],
];

/** Return a label decoded, or unchanged if decoding fails or could mislead. */
export function inOwnLetters(label: string): string {
  try {
    const letters = decode(label.slice("xn--".length));
    const isSame = new URL(`http://${letters}`).hostname === label;
    return isSame && isOfOneScript(letters) ? letters : label;
  } catch {
    return label;
  }
}

function isOfOneScript(letters: string): boolean {
  return TOGETHER.some((scripts) => {
    const classes = scripts.split(" ").map((script) => `\\p{scx=${script}}`);
    return new RegExp(`^[${classes.join("")}\\d-]+$`, "u").test(letters);
  });
}
