// Hostnames as their readers write them: the interface gives those of other letters in ASCII.

import { signal } from "@preact/signals";

const ENCODED = /\bxn--[a-z\d-]+/g;

const decoding = signal<(label: string) => string>();
let asked = false;

/** Give a hostname in its own letters; until what reads them was fetched, as it is. */
export function nameOf(hostname: string): string {
  if (hostname.search(ENCODED) < 0) return hostname;
  if (!asked) {
    asked = true;
    import("./own-letters.ts").then(
      ({ inOwnLetters }) => {
        decoding.value = inOwnLetters;
      },
      () => {
        asked = false;
      },
    );
  }
  const { value: decode } = decoding;
  return decode ? hostname.replace(ENCODED, decode) : hostname;
}

/** Whether a website's name has a text in it, in its own letters or in ASCII. */
export function isCalled(hostname: string, text: string): boolean {
  const sought = text.trim().toLowerCase();
  return [hostname, nameOf(hostname)].some((name) => name.includes(sought));
}
