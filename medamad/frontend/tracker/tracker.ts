// The tracker: counts views without cookies. What the visitor saw today is known only to the
// browser's own cache, by the dates of the answers to two pings. Every byte goes to every visitor:
// so what is used once stands where it is used, and repeats what is near in the same words.

const page = document;
const place = location;
const {
  src,
  dataset: { api },
} = page.currentScript as HTMLScriptElement;

/** Where events go. A server with a name of its own for them puts it in the place of `event/`. */
const events = new URL(`${api ? `//${api}` : "api"}/event/`, src);

/** The view: its beacon and path; since when it is in sight, if it is, and for how long it was. */
let b: string;
let path: string | 0 | undefined;
let since: number | undefined;
let seen: number;
/** The address of the view; at first that of the page from which the visitor comes. */
let address = page.referrer;
/** Sends the view's load, if it was not sent yet, by what is known of the visitor. */
let flush: (() => void) | undefined;
let isIgnored: number | undefined;

/** A beacon reaches its end also when the page is gone before. */
const send = (hit: object) => navigator.sendBeacon(`${events}hit`, JSON.stringify(hit));

const report = (d: object) => isIgnored || send({ e: "custom", b, d, g: place.hostname });

/** How many views of today came before this one, by what the browser keeps under a name. */
const ping = (name: string): Promise<number> =>
  fetch(events + "ping?n=" + name).then((answer) => answer.json());

/** Read properties as they stand in a page: "name=value; name=value". */
const read = (d: Record<string, string>, text: string) => {
  text.replace(/([^=;]+)=([^;]+)/g, (_, name, value) => (d[name] = value));
  return d;
};

/** Look what is in sight now: it ends the view that was before, or begins one. */
const look = (event: Partial<MouseEvent>) => {
  const isLeft = event.type === "pagehide";
  const now =
    isLeft || page.hidden || isIgnored
      ? 0
      : HASH_ROUTING
        ? place.pathname + place.hash.replace("#", "%23")
        : place.pathname;

  if ((CLICK_EVENTS || OUTBOUND_LINKS || FILE_DOWNLOADS) && (event.button as number) < 2) {
    // What is clicked may be the document, which is near nothing.
    const near = (what: string) => (event.target as Element).closest?.<HTMLAnchorElement>(what);
    const told = CLICK_EVENTS && near("[data-m\\:click]");
    const link = near("a") || place;
    const there = link.host + link.pathname;
    if (told) report(read({}, told.dataset["m:click"] as string));
    if (
      FILE_DOWNLOADS &&
      /\.(exe|7z|docx?|xlsx?|pptx?|pdf|mp[34]|txt|gz|dmg|csv|rar|zip)$/i.test(there)
    ) {
      report({ download: there });
    }
    if (OUTBOUND_LINKS && link.host && link.host !== place.host) report({ outbound: there });
  }

  if (since && now !== path) {
    (flush as () => void)();
    if ((seen += Date.now() - since)) send({ e: "unload", b, m: seen });
    since = 0;
  }
  if (isLeft) path = 0;
  if (now) {
    since ||= Date.now();
    if (path !== now) {
      path = now;
      seen = 0;
      const d: Record<string, string> = {};
      const isElsewhere = address.split("/")[2] !== place.host;
      if (NOT_FOUND && !flush) {
        const loaded = performance.getEntries()[0] as PerformanceNavigationTiming | undefined;
        if (loaded?.responseStatus === 404) d[404] = path;
      }
      if (PAGE_EVENTS) {
        page
          .querySelectorAll<HTMLElement>("[data-m\\:load]")
          .forEach((element) => read(d, element.dataset["m:load"] as string));
      }
      let hit: Partial<Load> | 0 = {
        ...(PAGE_EVENTS || NOT_FOUND ? { d } : {}),
        e: "load",
        b: (b = Math.random() + "" + since),
        p: isElsewhere,
        q: isElsewhere,
        r: address,
        // Without the fragment, which may hold what is nobody's business.
        u: (address = (place.origin + path + place.search).slice(0, 8_000)),
        t: Intl.DateTimeFormat().resolvedOptions().timeZone,
        w: innerWidth,
      };
      const sent = (flush = () => {
        if (hit) send(hit);
        hit = 0;
      });
      // A load that is gone before the answers takes nothing up any more.
      Promise.all([place.host, place.host + path].map(ping))
        .then(([today, here]) => {
          (hit as Load).n = -~(today as number);
          (hit as Load).p = !today;
          (hit as Load).q = !here;
        })
        .then(sent, sent);
    }
  }
};

try {
  // A visitor who asks not to be counted has a mark, which #medamad-ignore sets and takes away.
  const marks = localStorage;
  if (place.hash === "#medamad-ignore") marks.medamad ^= 1;
  isIgnored = +marks.medamad;
} catch {}

medamad = (event, properties) => report({ event, ...properties });

[
  ...(CLICK_EVENTS || OUTBOUND_LINKS || FILE_DOWNLOADS ? ["click", "auxclick"] : []),
  "pagehide",
  "pageshow",
  "replaceState",
  "popstate",
  "pushState",
  "visibilitychange",
].map((name) => {
  const original = history[name as "pushState"];
  if (original) {
    history[name as "pushState"] = (...given) => {
      original.apply(history, given);
      look(history as object);
    };
  } else addEventListener(name, look, true);
});
look(history as object);
