// Safe links to where a page or a referrer is. What hits say can only ever become an https address.

const HOST = /^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/i;

/** The address of a referrer, "host/path" or the name of a host; undefined if it is none. */
export function addressOfReferrer(referrer: string): string | undefined {
  const host = referrer.split("/", 1)[0] ?? "";
  if (!HOST.test(host)) return undefined;
  return safe(host, referrer.slice(host.length) || "/");
}

/** The address of a page of a website. */
export function addressOfPage(hostname: string, path: string): string | undefined {
  return path.startsWith("/") ? safe(hostname, path) : undefined;
}

/** What the parser of addresses would drop or read as something else. */
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
