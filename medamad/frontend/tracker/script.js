// medamad's tracker: counts views without cookies. What the visitor saw today is known only to the
// browser's own cache, by the date in the answers to two pings.
(() => {
  const { src, dataset } = document.currentScript;
  const named = dataset.api?.replace(/^(?!\/|\w+:\/\/)/, "//") || "api";
  const events = new URL(named, src).href.replace(/\/?(event\/?)?$/, "/event/");
  const hits = events + "hit";
  let view;

  const plain = { credentials: "omit" };

  const post = (hit) => {
    const body = JSON.stringify(hit);
    fetch(hits, { ...plain, method: "POST", body, keepalive: true }).catch(() => {});
  };

  const beacon = (hit) => navigator.sendBeacon?.(hits, JSON.stringify(hit)) || post(hit);

  // How many views came before today: seconds past midnight, wherever midnight is.
  const ping = async (what) => {
    const answer = await fetch(events + "ping?u=" + encodeURIComponent(what), plain);
    if (!answer.ok) throw answer;
    const date = Date.parse(answer.headers.get("Last-Modified")) / 1000;
    return (await answer.text()) === "0" ? 0 : date % 900 || 900;
  };

  const load = (view, send, p, q, n) => {
    if (view.load) send({ ...view.load, p, q, n });
    view.load = null;
  };

  const begin = (r) => {
    const b = Date.now().toString(36) + Math.random().toString(36).slice(2);
    const { host, href: u, pathname } = location;
    const t = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const begun = { b, u, pathname, since: 0, seen: 0, sent: 0 };
    begun.guess = r.split("/")[2] !== host;
    begun.load = { e: "load", b, u: u.slice(0, 8000), r: r.slice(0, 4000), t, w: innerWidth };
    view = begun;
    show();
    Promise.all([ping(host), ping(host + pathname.replace(/(.)\/$/, "$1"))]).then(
      ([today, here]) => load(begun, post, !today, !here, today + 1),
      () => load(begun, post, begun.guess, begun.guess),
    );
  };

  const show = () => {
    if (!document.hidden) view.since ||= performance.now();
  };

  // The tab may never be shown again: tell now what is known; the longest time counts.
  const hide = () => {
    load(view, beacon, view.guess, view.guess);
    if (view.since) view.seen += performance.now() - view.since;
    view.since = 0;
    const m = Math.round(view.seen);
    if (m > view.sent) beacon({ e: "unload", b: view.b, m });
    view.sent = m;
  };

  const move = () => {
    if (location.pathname === view.pathname) return;
    hide();
    begin(view.u);
  };

  const start = () => {
    begin(document.referrer);
    for (const name of ["pushState", "replaceState"]) {
      const original = history[name];
      history[name] = function () {
        original.apply(this, arguments);
        move();
      };
    }
    addEventListener("popstate", move);
    addEventListener("pagehide", hide);
    addEventListener("pageshow", (event) => event.persisted && begin(document.referrer));
    addEventListener("visibilitychange", () => (document.hidden ? hide() : show()));
  };

  if (document.prerendering) document.addEventListener("prerenderingchange", start, { once: true });
  else start();
})();
