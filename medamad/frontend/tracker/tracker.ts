// The tracker: counts views without cookies. What the visitor saw today is known only to the
// browser's own cache, by the dates in the answers to two pings.

import { onClicks } from "./clicks.ts";
import { propertiesOfPage } from "./page.ts";

interface View {
  /** The beacon's identity. */
  b: string;
  /** Address and path at which the view began. */
  u: string;
  path: string;
  /** Whether the visitor seems to come from elsewhere; counts as long as no ping has answered. */
  guess: boolean;
  /** The load that is still to be sent. */
  load: object | null;
  /** When the page came into sight, 0 while it is out of it; how long it was, in milliseconds. */
  since: number;
  seen: number;
  /** The time that was told last. */
  told: number;
}

const page = document;
const place = location;
const { src, dataset } = page.currentScript as HTMLScriptElement;
// `event/` stands here alone: a server with a name of its own for this path puts it in its place.
const api = new URL(dataset.api?.replace(/^(?!\/|\w+:\/\/)/, "//") || "api", src).href;
const events = `${api.replace(/\/?(event\/?)?$/, "")}/event/`;

let view: View;

const post = (hit: object) => {
  fetch(`${events}hit`, {
    credentials: "omit",
    method: "POST",
    body: JSON.stringify(hit),
    keepalive: true,
  }).catch(() => {});
};

/** For what is told when the page may go any moment. */
const beacon = (hit: object) =>
  navigator.sendBeacon?.(`${events}hit`, JSON.stringify(hit)) || post(hit);

/** How many views of today came before: the seconds past midnight, wherever midnight is. */
const ping = async (what: string) => {
  const answer = await fetch(`${events}ping?u=${encodeURIComponent(what)}`, {
    credentials: "omit",
  });
  if (!answer.ok) throw answer;
  const date = Date.parse(answer.headers.get("Last-Modified") as string) / 1000;
  return +(await answer.text()) && (date % 900 || 900);
};

const pathNow = () => place.pathname + (HASH_ROUTING ? place.hash.replace("#", "%23") : "");

const tell = (told: View, send: (hit: object) => void, p: boolean, q: boolean, n?: number) => {
  if (told.load) send({ ...told.load, p, q, n });
  told.load = null;
};

const begin = (r: string) => {
  const { host } = place;
  const path = pathNow();
  const u = place.origin + path + place.search;
  const b = Date.now().toString(36) + Math.random().toString(36).slice(2);
  const t = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const bare = (name = "") => name.replace(/^www\./, "");
  const begun: View = {
    b,
    u,
    path,
    guess: bare(r.split("/")[2]) !== bare(host),
    load: {
      e: "load",
      b,
      u: u.slice(0, 8_000),
      r: r.slice(0, 4_000),
      t,
      w: innerWidth,
      ...(PAGE_EVENTS || NOT_FOUND ? { d: propertiesOfPage(!view, path) } : {}),
    },
    since: 0,
    seen: 0,
    told: 0,
  };
  view = begun;
  show();
  Promise.all([ping(host), ping(host + path.replace(/(.)\/$/, "$1"))]).then(
    ([today, here]) => tell(begun, post, !today, !here, today + 1),
    () => tell(begun, post, begun.guess, begun.guess),
  );
};

const show = () => {
  if (!page.hidden) view.since ||= performance.now();
};

/** The page may never be seen again: tell what is known; the longest time counts. */
const hide = () => {
  tell(view, beacon, view.guess, view.guess);
  if (view.since) view.seen += performance.now() - view.since;
  view.since = 0;
  const m = Math.round(view.seen);
  if (m > view.told) beacon({ e: "unload", b: view.b, m });
  view.told = m;
};

const move = () => {
  if (pathNow() !== view.path) {
    hide();
    begin(view.u);
  }
};

const report = (d: object) => beacon({ e: "custom", b: view.b, g: place.hostname, d });

const start = () => {
  begin(page.referrer);
  for (const name of ["pushState", "replaceState"] as const) {
    const original = history[name];
    history[name] = function (...given) {
      original.apply(this, given);
      move();
    };
  }
  addEventListener("popstate", move);
  addEventListener("pagehide", hide);
  addEventListener("pageshow", (event) => event.persisted && begin(page.referrer));
  addEventListener("visibilitychange", () => (page.hidden ? hide() : show()));
  window.medamad = (event, properties) => report({ event, ...properties });
  if (CLICK_EVENTS || OUTBOUND_LINKS || FILE_DOWNLOADS) onClicks(report);
};

/** Whether the visitor asked not to be counted, by a mark that #medamad-ignore sets and removes. */
const isIgnored = () => {
  try {
    const mark = localStorage;
    if (place.hash === "#medamad-ignore") {
      mark.medamad = mark.medamad ? "" : "ignore";
      alert(`medamad: ${mark.medamad || "count"}`);
    }
    return mark.medamad;
  } catch {}
};

if (!isIgnored()) {
  if ((page as { prerendering?: boolean }).prerendering) {
    page.addEventListener("prerenderingchange", start);
  } else start();
}
