// Hostnames as people write them: the API returns international ones in ASCII.

import { signal } from "@preact/signals";

const ENCODED = /\bxn--[a-z\d-]+/g;

const decoding = signal<(label: string) => string>();
let isRequested = false;

/** Return a hostname decoded; unchanged until the decoder has been loaded. */
export function nameOf(hostname: string): string {
  if (hostname.search(ENCODED) < 0) return hostname;
  if (!isRequested) {
    isRequested = true;
    import("./punycode.ts").then(
      ({ inOwnLetters }) => {
        decoding.value = inOwnLetters;
      },
      () => {
        isRequested = false;
      },
    );
  }
  const { value: decode } = decoding;
  return decode ? hostname.replace(ENCODED, decode) : hostname;
}

/** Whether a website's name contains a text, decoded or in ASCII. */
export function isCalled(hostname: string, text: string): boolean {
  const sought = text.trim().toLowerCase();
  return [hostname, nameOf(hostname)].some((name) => name.includes(sought));
}
