// The share link of this page, if it is not the dashboard.

/** The id of the link, which is part of the page's address. */
export const shareId = /^\/share\/([\w-]+)\/?$/.exec(location.pathname)?.[1];

/** The path of the page that shows a website's figures. */
export function sitePath(hostname: string): string {
  return shareId ? `/share/${shareId}` : `/dashboard/websites/${encodeURIComponent(hostname)}`;
}
