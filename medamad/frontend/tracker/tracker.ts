// The tracker: counts views without cookies. Whether the visitor was here today is known only to the
// browser's own cache, through the dates of two ping responses.
//
// Every visitor downloads this script. The build inlines functions, shortens names and leaves out the
// features that are not chosen, so these cost little. Short forms that the build cannot find, such as
// numbers for false, stay where each byte counts.

const script = (document.currentScript ||
  // A module has no currentScript, but the stack has its URL. No stack names an inline script.
  [...document.scripts].find(
    (one) => (Error().stack as string).split(one.src || (one as unknown as string))[1],
  )) as HTMLScriptElement;
const { api } = script.dataset;
/** The path that the page says is viewed, and that of its address when it said so. */
let manualPath = "";
let manualAddress: string | undefined;

/** The URL of events. A server with a custom event name puts it in place of `event/`. */
const eventsUrl = new URL(
  `${api ? (api.split("//")[1] ? api : "//" + api) : "api"}/event/`,
  script.src,
) as unknown as string;

/** The path of the current view; empty once the page was left, undefined before the first view. */
let viewedPath: string | undefined;
/** For how long the current view was visible before it was last hidden. */
let visibleMs: number;
/** Since when it has been visible; 0 while it is hidden. */
let visibleSinceMs: number | undefined;
/** Reports the current view, unless that was done. */
let sendLoad: (() => void) | undefined;
/** The URL of the current view; before the first one, that of the page that linked here. */
let lastUrl = document.referrer;
/** The beacon of the current view: a random text by which later hits name it. */
let beacon: string;
/** Whether this browser is marked as not to be counted, or the page. */
let isExcluded: unknown;

/** Send a hit so that it is delivered even after the page is gone. */
const send = (hit: object | undefined) => {
  // The page may change a hit or, by returning nothing, drop it.
  if (PAGE_CONTROL) {
    const { beforeSend } = script.dataset;
    if (beforeSend) hit = (self as unknown as Hooks)[beforeSend]?.(hit as object);
    if (!hit) return;
  }
  const body = JSON.stringify(hit);
  navigator.sendBeacon?.(eventsUrl + "hit", body) ||
    fetch(eventsUrl + "hit", { keepalive: true, method: "POST", body }).catch((error) => error);
};

/** Report an event of the current view, without the properties that the server would refuse. */
const reportEvent = (properties: Record<string, unknown>) => {
  for (const name in properties) {
    // Strings, booleans and finite numbers stay.
    /ri|oo/.test(typeof properties[name]) ||
      Number.isFinite(properties[name]) ||
      // What the console returns is undefined, which JSON leaves out.
      (properties[name] = console.warn("medamad drops", name, properties[name]));
  }
  isExcluded || send({ e: "custom", b: beacon, d: properties, g: location.hostname });
};

/** Add properties as written in a page, "name=value; name=value". */
const addProperties = (properties: Record<string, string>, text: string) => {
  text.replace(/([^=;]+)=([^;]+)/g, (_, name, value) => (properties[name] = value));
  return properties;
};

/** Report the event of a clicked element, the download of a file, and a link to another website. */
const reportClick = (event: Partial<MouseEvent>) => {
  // The target may be the document, which has no closest().
  const closest = (selector: string) =>
    (event.target as Element).closest?.<HTMLAnchorElement>(selector);
  const marked = CLICK_EVENTS && closest("[data-m\\:click]");
  const link = closest("a") || location;
  const target = link.host + link.pathname;
  if (marked) reportEvent(addProperties({}, marked.dataset["m:click"] as string));
  if (
    FILE_DOWNLOADS &&
    /\.(exe|7z|docx?|xlsx?|pptx?|pdf|mp[34]|txt|gz|dmg|csv|rar|zip)$/i.test(target)
  ) {
    reportEvent({ download: target });
  }
  if (OUTBOUND_LINKS && link.host && link.host !== location.host) reportEvent({ outbound: target });
};

/**
 * Exclude this browser after #medamad-ignore, until #medamad-count, by a mark in its storage.
 * Another script says so in the visitor's language.
 */
const readExclusion = (eventType: string) => {
  if (PAGE_CONTROL) {
    const { exclude } = script.dataset;
    isExcluded = exclude && (currentPath() || addressPath()).match(exclude);
  }
  // Where nothing can be stored, everyone is counted.
  try {
    const choice = eventType === "popstate" && /^#medamad-(ignore|count)$/.exec(location.hash);
    if (choice) {
      import(eventsUrl + "opt-out.js");
      localStorage.medamad = choice[1];
    }
    isExcluded = (PAGE_CONTROL && isExcluded) || localStorage.medamad === "ignore";
  } catch {}
};

/** Return the path of the page's address. */
const addressPath = () =>
  HASH_ROUTING ? location.pathname + location.hash.replace("#", "%23") : location.pathname;

/** Return the path that the page is on; "" if it has to say so itself, and has not. */
const currentPath = () =>
  PAGE_CONTROL && (script.dataset.manual != null || manualAddress === addressPath())
    ? manualPath
    : addressPath();

/** Begin a view, of another path than the address has if one is given. */
const view = (path?: string) => {
  manualAddress = addressPath();
  manualPath = path || manualAddress;
  // It ends the one before, also if it is left out.
  viewedPath = undefined;
  handleEvent({});
};

/**
 * Return the number of views before this one today, from the browser's cache entry of a URL. After
 * Back, browsers would use the entry without revalidating it. Each day has a URL of its own, so that
 * no entry is sent on a later day; the one that is kept for a year has the same. If the clock is
 * wrong, the server says which day it is. It adds the offset of its time zone where the script
 * divides.
 */
const countEarlierViews = (
  name: string,
  // Whole days since 1970; | 0 drops the rest.
  day = ((visibleSinceMs as number) / 86_400_000) | 0,
): Promise<Before> =>
  fetch(eventsUrl + "ping?" + (RETURNING && name[1] === "=" ? "" : "d=" + day + "&n=") + name, {
    cache: "no-cache",
  })
    .then((response) => response.json())
    .then((before) => (before.d ? countEarlierViews(name, before.d) : before));

/** Return the earlier views today of the website, and those of the page. */
const countAllEarlierViews = () =>
  Promise.all(
    (RETURNING
      ? ["v=" + location.host, location.host + viewedPath]
      : [location.host, location.host + viewedPath]
    ).map((name) => countEarlierViews(name)),
  );

/** Return the properties of the page when a view of it begins. */
const pageProperties = () => {
  const properties: Record<string, string> = {};
  if (NOT_FOUND && !sendLoad) {
    const loaded = performance.getEntries()[0] as PerformanceNavigationTiming | undefined;
    if (loaded?.responseStatus === 404) properties[404] = viewedPath as string;
  }
  if (PAGE_EVENTS) {
    document
      .querySelectorAll<HTMLElement>("[data-m\\:load]")
      .forEach((element) => addProperties(properties, element.dataset["m:load"] as string));
  }
  return properties;
};

/** Report the view that begins, as soon as the browser's earlier views are known. */
const reportView = () => {
  const isFromElsewhere = !UNCOUNTED && lastUrl.split("/")[2] !== location.host;
  let load: Partial<Load> | 0 = {
    ...(PAGE_EVENTS || NOT_FOUND ? { d: pageProperties() } : {}),
    e: "load",
    b: (beacon = Math.random() + "" + visibleSinceMs),
    // Where the responses do not tell, only what comes from elsewhere counts as a visitor.
    p: isFromElsewhere,
    q: isFromElsewhere,
    r: lastUrl,
    // Without the fragment, which may be private.
    u: (lastUrl = (location.origin + viewedPath + location.search).slice(0, 8_000)),
    t: Intl.DateTimeFormat().resolvedOptions().timeZone,
    w: innerWidth,
  };
  sendLoad = () => {
    if (load) send(load);
    load = 0;
  };
  if (UNCOUNTED) sendLoad();
  // It is sent even if these requests fail. If the view ends before their responses, it has been
  // sent by then, and is 0: setting its fields throws, which ends here, too.
  else
    countAllEarlierViews()
      .then(([ofWebsite, ofPage]) => {
        (load as Load).n = (RETURNING ? (ofWebsite as Returning).n : (ofWebsite as number)) + 1;
        (load as Load).p = !(RETURNING ? (ofWebsite as Returning).n : (ofWebsite as number));
        (load as Load).q = !ofPage;
        if (RETURNING) (load as Load).since = (ofWebsite as Returning).since;
      })
      .then(sendLoad, sendLoad);
};

/** Report for how long the current view was visible. */
const hideView = () => {
  (sendLoad as () => void)();
  if ((visibleMs += Date.now() - (visibleSinceMs as number))) {
    send({ e: "unload", b: beacon, m: visibleMs });
  }
  visibleSinceMs = 0;
};

/** Begin or end a view when the page's visibility or address changes, and report clicks. */
const handleEvent = (event: Partial<MouseEvent>) => {
  readExclusion(event.type as string);
  if ((CLICK_EVENTS || OUTBOUND_LINKS || FILE_DOWNLOADS) && (event.button as number) < 2) {
    reportClick(event);
  }
  const isLeft = event.type === "pagehide";
  const path = isLeft || document.hidden || isExcluded ? "" : currentPath();
  if (visibleSinceMs && path !== viewedPath) hideView();
  // A browser may show the page again from its memory, which is a view of its own. So is a page that
  // is shown again after one that is left out.
  if (isLeft || (PAGE_CONTROL && isExcluded)) viewedPath = "";
  if (path) {
    visibleSinceMs ||= Date.now();
    if (path !== viewedPath) {
      viewedPath = path;
      visibleMs = 0;
      reportView();
    }
  }
};

/** Handle an event of the window, or a call of a function of the history. */
const listen = (name: string) => {
  const original = history[name as "pushState"];
  if (original) {
    history[name as "pushState"] = (...given) => {
      original.apply(history, given);
      handleEvent(given as object);
    };
  } else addEventListener(name, handleEvent, true);
};

// A page may carry the script twice: only the first one does anything.
self[eventsUrl as "name"] ||= [
  handleEvent({ type: "popstate" }),
  (self.medamad = ((event, properties) => reportEvent({ event, ...properties })) as Medamad),
  ...(PAGE_CONTROL ? [(medamad.view = view)] : []),
  [
    ...(CLICK_EVENTS || OUTBOUND_LINKS || FILE_DOWNLOADS ? ["click", "auxclick"] : []),
    "popstate",
    "pagehide",
    "pageshow",
    "replaceState",
    "pushState",
    "visibilitychange",
  ].map(listen),
] as unknown as string;
