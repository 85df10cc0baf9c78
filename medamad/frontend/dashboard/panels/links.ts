// Safe links to a page or a referrer: what a hit says can only become an https URL.

const HOST = /^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/i;

/** The URL of a referrer, "host/path" or a host; undefined otherwise. */
export function addressOfReferrer(referrer: string): string | undefined {
  const host = referrer.split("/", 1)[0] ?? "";
  if (!HOST.test(host)) return undefined;
  return safe(host, referrer.slice(host.length) || "/");
}

/** The address of a page of a website. */
export function addressOfPage(hostname: string, path: string): string | undefined {
  return path.startsWith("/") ? safe(hostname, path) : undefined;
}

/** What a URL parser would drop or interpret. */
const MISREAD = /[\t\n\r\\]|%(?![0-9a-f]{2})/gi;

/** Paths are stored decoded: a "?" or "#" in one is part of it. */
function safe(host: string, path: string): string | undefined {
  try {
    const url = new URL(`https://${host}/`);
    url.pathname = path.replace(MISREAD, encodeURIComponent);
    return url.protocol === "https:" && url.hostname === host.toLowerCase() ? url.href : undefined;
  } catch {
    return undefined;
  }
}
