// Properties that a page tells of itself: by data-m:load, and that it was not found.

import { read } from "./properties.ts";

export const propertiesOfPage = (isFirst: boolean, path: string): object => {
  const found: Record<string, string> = {};
  if (PAGE_EVENTS) {
    for (const element of document.querySelectorAll("[data-m\\:load]")) {
      Object.assign(found, read(element.getAttribute("data-m:load") as string));
    }
  }
  if (NOT_FOUND && isFirst) {
    const [loaded] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
    if (loaded?.responseStatus === 404) found["not-found"] = path;
  }
  return found;
};
