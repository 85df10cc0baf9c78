// The paths of the service, which may be below a base path.

/** The path that everything is below, such as "/stats"; "" for the root. */
export const base = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

/** A path of the service, as links and the router need it. */
export function at(path: string): string {
  return base + path;
}

/** The address of the service, as the pages of websites need it. */
export const origin = location.origin + base;
