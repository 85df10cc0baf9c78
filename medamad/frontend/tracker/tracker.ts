// The tracker: counts views without cookies. Whether the visitor was here today is known only to the
// browser's own cache, through the dates of two ping responses. Every byte is sent to every visitor,
// so code is inlined, and repeats itself where that compresses better.

const page = document;
const place = location;
const script = (page.currentScript ||
  // For a module there is none, but the stack has its URL. No stack names an inline script.
  [...page.scripts].find(
    (one) => (Error().stack as string).split(one.src || (one as unknown as string))[1],
  )) as HTMLScriptElement;
const { api } = script.dataset;

/** The URL of events. A server with a custom event name puts it in place of `event/`. */
const events = new URL(
  `${api ? (api.split("//")[1] ? api : "//" + api) : "api"}/event/`,
  script.src,
) as unknown as string;

/** The view: its beacon and path, since when it has been visible, and for how long it was before. */
let b: string;
let path: string | 0 | undefined;
let since: number | undefined;
let seen: number;
/** The URL of the view; initially that of the referrer. */
let address = page.referrer;
/** Sends the view's load once, with what is known of the visitor. */
let flush: (() => void) | undefined;
let isIgnored: boolean | undefined;

/** Send a hit so that it is delivered even after the page is gone. */
const send = (hit: object) => {
  const body = JSON.stringify(hit);
  navigator.sendBeacon?.(events + "hit", body) ||
    fetch(events + "hit", { keepalive: true, method: "POST", body }).catch((error) => error);
};

const report = (d: Record<string, unknown>) => {
  for (const name in d) {
    /ri|oo/.test(typeof d[name]) ||
      Number.isFinite(d[name]) ||
      (d[name] = console.warn("medamad drops", name, d[name]));
  }
  isIgnored || send({ e: "custom", b, d, g: place.hostname });
};

/**
 * The number of views before this one today, from the browser's cache entry of a URL. After Back,
 * browsers would use the entry without revalidating it. Each day has a URL of its own, so that no
 * entry is sent on a later day; the one that is kept for a year has the same. If the clock is wrong,
 * the server says which day it is. It adds the offset of its time zone where the script divides.
 */
const ping = (name: string, day = ((since as number) / 864e5) | 0): Promise<Before> =>
  fetch(events + (RETURNING && name[1] === "=" ? "ping?" + name : "ping?d=" + day + "&n=" + name), {
    cache: "no-cache",
  })
    .then((answer) => answer.json())
    .then((answer) => (answer.d ? ping(name, answer.d) : answer));

/** Parse properties as written in a page: "name=value; name=value". */
const read = (d: Record<string, string>, text: string) => {
  text.replace(/([^=;]+)=([^;]+)/g, (_, name, value) => (d[name] = value));
  return d;
};

/** Begin or end a view when the page's visibility or address changes. */
const look = (event: Partial<MouseEvent>) => {
  try {
    // A mark excludes this browser after #medamad-ignore, until #medamad-count. Another script says
    // so in the visitor's language.
    const choice = event.type === "popstate" && /^#medamad-(ignore|count)$/.exec(place.hash);
    if (choice) {
      import(events + "opt-out.js");
      localStorage.medamad = choice[1];
    }
    isIgnored = localStorage.medamad === "ignore";
  } catch {}
  const isLeft = event.type === "pagehide";
  const now =
    isLeft || page.hidden || isIgnored
      ? 0
      : HASH_ROUTING
        ? place.pathname + place.hash.replace("#", "%23")
        : place.pathname;

  if ((CLICK_EVENTS || OUTBOUND_LINKS || FILE_DOWNLOADS) && (event.button as number) < 2) {
    // The target may be the document, which has no closest().
    const near = (what: string) => (event.target as Element).closest?.<HTMLAnchorElement>(what);
    const marked = CLICK_EVENTS && near("[data-m\\:click]");
    const link = near("a") || place;
    const there = link.host + link.pathname;
    if (marked) report(read({}, marked.dataset["m:click"] as string));
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
        p: !UNCOUNTED && isElsewhere,
        q: !UNCOUNTED && isElsewhere,
        r: address,
        // Without the fragment, which may be private.
        u: (address = (place.origin + path + place.search).slice(0, 8_000)),
        t: Intl.DateTimeFormat().resolvedOptions().timeZone,
        w: innerWidth,
      };
      const sent = (flush = () => {
        if (hit) send(hit);
        hit = 0;
      });
      // A view that ended before the responses is not reported again.
      if (UNCOUNTED) sent();
      else
        Promise.all(
          (RETURNING
            ? ["v=" + place.host, place.host + path]
            : [place.host, place.host + path]
          ).map((name) => ping(name)),
        )
          .then(([today, here]) => {
            (hit as Load).n = -~((RETURNING ? (today as Load).n : today) as number);
            (hit as Load).p = !(RETURNING ? (today as Load).n : today);
            (hit as Load).q = !here;
            if (RETURNING) (hit as Load).since = (today as Load).since as string;
          })
          .then(sent, sent);
    }
  }
};

// A page may carry the script twice.
self[events as "name"] ||= [
  look({ type: "popstate" }),
  (self.medamad = (event, properties) => report({ event, ...properties })),
  [
    ...(CLICK_EVENTS || OUTBOUND_LINKS || FILE_DOWNLOADS ? ["click", "auxclick"] : []),
    "popstate",
    "pagehide",
    "pageshow",
    "replaceState",
    "pushState",
    "visibilitychange",
  ].map((name) => {
    const original = history[name as "pushState"];
    if (original) {
      history[name as "pushState"] = (...given) => {
        original.apply(history, given);
        look(given as object);
      };
    } else addEventListener(name, look, true);
  }),
] as unknown as string;
