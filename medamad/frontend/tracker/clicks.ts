// What a click tells: properties of the element, a link that leaves the site, a file.

import { read } from "./properties.ts";

export const onClicks = (report: (event: undefined, properties: object) => void): void => {
  const told = (event: Event) => {
    const { target } = event;
    // What is pressed may be a text within a shadow tree or a window.
    if (!(target instanceof Element)) return;
    if (CLICK_EVENTS && event.type === "click") {
      const text = target.closest("[data-m\\:click]")?.getAttribute("data-m:click");
      if (text) report(undefined, read(text));
    }
    const link = (OUTBOUND_LINKS || FILE_DOWNLOADS) && target.closest<HTMLAnchorElement>("a[href]");
    if (link && /^http/.test(link.protocol)) {
      const address = link.host + link.pathname;
      if (
        FILE_DOWNLOADS &&
        /\.(pdf|zip|[rt]ar|gz|7z|docx?|xlsx?|pptx?|csv|txt|mp[34]|exe|dmg|deb|rpm|apk|iso|epub)$/i.test(
          link.pathname,
        )
      ) {
        report(undefined, { download: address });
      } else if (OUTBOUND_LINKS && link.host !== location.host)
        report(undefined, { outbound: address });
    }
  };
  for (const name of ["click", "auxclick"]) addEventListener(name, told, true);
};
