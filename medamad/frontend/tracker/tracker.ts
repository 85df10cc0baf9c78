// The tracker: counts views without cookies. What the visitor saw today is known only to the
// browser's own cache, by the dates in the answers to two pings. Every byte is sent to every
// visitor, so what could be said shorter is.

import { onClicks } from "./clicks.ts";
import { propertiesOfPage } from "./page.ts";

const page = document;
const place = location;
const { src, dataset } = page.currentScript as HTMLScriptElement;

/** Where events go. A server with a name of its own for them puts it in the place of `event/`. */
const events = new URL(dataset.api?.replace(/^(?!\/|\w+:)/, "//") || "api", src).href.replace(
  /\/?(event\/?)?$/,
  "/event/",
);

const listen = addEventListener;

/** The view: its beacon, address and path; since when it is in sight, for how long it was. */
let b: string;
let address: string;
let path: string | undefined;
let since = 0;
let seen = 0;
let told = 0;
/** Sends the load, if it has not been sent, by what can be known without an answer to a ping. */
let flush: () => void;

/** A beacon reaches its end also when the page is gone before. */
const send = (hit: object) => navigator.sendBeacon(`${events}hit`, JSON.stringify(hit));

/** How many views of today came before: the seconds past midnight, wherever midnight is. */
const ping = async (what: string) => {
  const answer = await fetch(`${events}ping?u=${what}`);
  const date = Date.parse(answer.headers.get("Last-Modified") as string) / 1000;
  return +(await answer.text()) * (date % 900 || 900);
};

const pathNow = () =>
  HASH_ROUTING ? place.pathname + place.hash.replace("#", "%23") : place.pathname;

const bare = (url: string) => url.replace("//www.", "//");

const begin = (r: string) => {
  const guess = !bare(r).startsWith(bare(`${place.origin}/`));
  let hit: object | undefined;
  const load = (p: boolean, q: boolean, n?: number) => {
    if (hit) send({ ...hit, p, q, n });
    hit = undefined;
  };
  path = pathNow();
  address = (place.origin + path + place.search).slice(0, 8_000);
  b = `${Math.random()}${Math.random()}`;
  hit = {
    e: "load",
    b,
    u: address,
    r,
    t: Intl.DateTimeFormat().resolvedOptions().timeZone,
    w: innerWidth,
    ...((PAGE_EVENTS || NOT_FOUND) && { d: propertiesOfPage(!flush, path) }),
  };
  flush = () => load(guess, guess);
  since = seen = told = 0;
  show();
  Promise.all([ping(place.host), ping(place.host + path)]).then(
    ([today, here]) => (today + here >= 0 ? load(!today, !here, today + 1) : flush()),
    flush,
  );
};

const show = () => {
  if (!page.hidden) since ||= Date.now();
};

/** The page may never be seen again: tell what is known; the longest time counts. */
const hide = () => {
  flush();
  if (since) seen += Date.now() - since;
  since = 0;
  if (seen > told) {
    told = seen;
    send({ e: "unload", b, m: told });
  }
};

const move = () => {
  if (pathNow() !== path) {
    hide();
    begin(address);
  }
};

const report = (event?: string, properties?: object) => {
  send({ e: "custom", b, g: place.hostname, d: { event, ...properties } });
};

const start = () => {
  begin(page.referrer);
  for (const change of ["push", "replace"] as const) {
    const name = `${change}State` as const;
    const original = history[name];
    history[name] = (...given) => {
      original.apply(history, given);
      move();
    };
  }
  listen("popstate", move);
  listen("pagehide", hide);
  listen("pageshow", (event) => event.persisted && begin(page.referrer));
  listen("visibilitychange", () => (page.hidden ? hide() : show()));
  window.medamad = report;
  if (CLICK_EVENTS || OUTBOUND_LINKS || FILE_DOWNLOADS) onClicks(report);
};

/** A visitor who asks not to be counted has a mark, which #medamad-ignore sets and removes. */
let isIgnored: string | undefined;
try {
  const marks = localStorage;
  if (place.hash === "#medamad-ignore") marks.medamad = marks.medamad ? "" : 1;
  isIgnored = marks.medamad;
} catch {}

if (!isIgnored) {
  if ((page as { prerendering?: boolean }).prerendering) {
    listen("prerenderingchange", start, true);
  } else start();
}
