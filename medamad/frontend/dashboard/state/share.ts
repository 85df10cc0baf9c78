// The share link of this page, if it is not the dashboard.

import { at, base } from "./paths.ts";

/** The id of the link, which is part of the page's address. */
export const shareId = /^\/share\/([\w-]+)(?:\/|$)/.exec(location.pathname.slice(base.length))?.[1];

/** The path of the page that shows a website's figures. */
export function sitePath(hostname: string): string {
  return at(shareId ? `/share/${shareId}` : `/dashboard/websites/${encodeURIComponent(hostname)}`);
}
