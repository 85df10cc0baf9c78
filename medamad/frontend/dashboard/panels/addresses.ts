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

function safe(host: string, path: string): string | undefined {
  try {
    const url = new URL(`https://${host}/`);
    const isWhole = url.protocol === "https:" && url.hostname === host.toLowerCase();
    // Paths are stored decoded: a "?" or "#" in one is part of it. One that begins with two slashes
    // would name another host if it were parsed.
    url.pathname = path.replace(/%(?![0-9a-f]{2})/gi, "%25");
    return isWhole && url.hostname === host.toLowerCase() ? url.href : undefined;
  } catch {
    return undefined;
  }
}
