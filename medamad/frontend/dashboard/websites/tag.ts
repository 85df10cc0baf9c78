// The tags that a website adds to its pages.

import type { Feature, Usage } from "../api/types.ts";
import { origin } from "../state/paths.ts";

type Names = Usage["tracker"];

/** The script with the features that the account chose. */
export function scriptTag({ script_name }: Names): string {
  return `<script defer src="${origin}/${script_name}"></script>`;
}

/** The script with its own features, regardless of the account's choice. */
export function scriptTagWith(features: readonly Feature[]): string {
  return `<script defer src="${origin}/scripts/${features.join(".") || "default"}.js"></script>`;
}

/** The image for browsers without JavaScript. */
export function pixelTag({ event_name }: Names): string {
  const source = `${origin}/api/${event_name}/pixel.gif`;
  return `<noscript><img src="${source}" referrerpolicy="no-referrer-when-downgrade" alt=""></noscript>`;
}

/** Whether a hostname refers to the local machine. */
export function isLocal(hostname: string): boolean {
  return /(^|\.)localhost$|^127\.|^\[::1\]$/.test(hostname);
}
