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

/**
 * What looks like another label although it is of one script: Cyrillic, Greek or Armenian letters
 * that all resemble Latin ones, Latin letters of phonetic alphabets, and signs of Japanese beside
 * Latin letters that resemble a slash or a dash. Browsers show these encoded, too.
 */
const MISLEADING = [
  /^[асԁеһіјӏорԛѕԝхуъҽпгѵѡ\d-]+$/u,
  /^[αικνρυωηοτϲϳ\d-]+$/u,
  /^[ագզէլհյոսւօ\d-]+$/u,
  /[\u0250-\u02af\u1d00-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f]/u,
  /[a-z][ノソンーヽ一丶丿]|[ノソンーヽ一丶丿][a-z]/u,
];

/** Return a label decoded, or unchanged if decoding fails or could mislead. */
export function inOwnLetters(label: string): string {
  try {
    const letters = decode(label.slice("xn--".length));
    const isSame = new URL(`http://${letters}`).hostname === label;
    const isClear = isOfOneScript(letters) && !MISLEADING.some((looks) => looks.test(letters));
    return isSame && isClear ? letters : label;
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
