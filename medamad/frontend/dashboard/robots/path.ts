// Where the page of robots is.

import { sitePath } from "../state/share.ts";

/** The path of the page of a website's robots. */
export function robotsPath(hostname: string): string {
  return `${sitePath(hostname)}/robots`;
}
