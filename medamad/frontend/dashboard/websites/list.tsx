// The websites: a card each, with the last day's visitors, or visits.

import { Globe, Plus } from "lucide";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { statistic } from "../api/client.ts";
import type { Summary, Website } from "../api/types.ts";
import { shortFigure, t, tn } from "../i18n/index.ts";
import { useAsk } from "../state/data.ts";
import { at } from "../state/paths.ts";
import { useUsage } from "../state/usage.ts";
import { isCalled, nameOf } from "../ui/hostnames.ts";
import { Icon } from "../ui/icon.tsx";
import { Menu } from "../ui/menu.tsx";
import { useShortcuts } from "../ui/shortcuts.ts";
import { Trouble } from "../ui/trouble.tsx";
import { Unvisited } from "../ui/unvisited.tsx";
import { Change } from "../view/change.tsx";
import { VISITS } from "../view/visits.ts";
import { type Counted, Curve } from "./curve.tsx";
import "../style/websites.css" with { type: "css" };

const DAY_MS = 86_400_000;
const SEARCHED_FROM = 9;
const ORDERS = ["visitors", "name"] as const;
type Order = (typeof ORDERS)[number];
const KEPT = "medamad.websites-order";

const SUMMARY = () => new URLSearchParams({ summary: "true" });

export function WebsitesPage() {
  const { data: websites, error } = useAsk<Website[]>("/websites", SUMMARY);
  const { data: usage, error: usageError, isDemo } = useUsage();
  const mayAdd = usage || usageError ? !isDemo : false;
  const [sought, setSought] = useState("");
  const [order, setOrder] = useState<Order>(keptOrder);
  const { route } = useLocation();
  useShortcuts(
    !mayAdd
      ? []
      : [{ keys: "n", label: t("websites.add"), act: () => route(at("/dashboard/add")) }],
  );
  useEffect(() => {
    document.title = `${t("websites.title")} · medamad`;
  });

  const choose = (chosen: Order) => {
    localStorage.setItem(KEPT, chosen);
    setOrder(chosen);
  };
  const found = inOrder(
    (websites ?? []).filter(({ hostname }) => isCalled(hostname, sought)),
    order,
  );
  const isOfVisits = websites?.some(({ summary }) => summary?.visits !== undefined);
  const words = (order: Order) => (isOfVisits && order === "visitors" ? "visits" : order);
  const isSearched = (websites?.length ?? 0) >= SEARCHED_FROM;
  return (
    <main class="page">
      <div class="websites-head">
        <h1>{t("websites.title")}</h1>
        {isSearched && (
          <input
            type="search"
            class="websites-search"
            aria-label={t("websites.search")}
            placeholder={t("websites.search")}
            value={sought}
            onInput={(event) => setSought(event.currentTarget.value)}
          />
        )}
        {found.length > 1 && (
          <Menu
            title={t("websites.order")}
            label={t(`websites.by-${words(order)}`)}
            align="end"
            groups={[
              ORDERS.map((other) => ({
                label: t(`websites.by-${words(other)}`),
                isChosen: other === order,
                choose: () => choose(other),
              })),
            ]}
          />
        )}
        {mayAdd && websites && websites.length > 0 && <AddLink />}
      </div>
      {isDemo && <p class="websites-note soft">{t("demo.note")}</p>}
      {isSearched && (
        <p class="hidden" role="status">
          {sought && tn("websites.found", found.length)}
        </p>
      )}
      {!websites && (error ? <Trouble error={error} /> : <Skeletons />)}
      {websites?.length === 0 && <Empty mayAdd={mayAdd} />}
      {found.length > 0 && (
        <ul class="websites">
          {found.map((website) => (
            <Card key={website.hostname} {...website} />
          ))}
        </ul>
      )}
      {sought && websites && found.length === 0 && (
        <p class="soft">{t("websites.none-found", { text: sought })}</p>
      )}
    </main>
  );
}

function keptOrder(): Order {
  return ORDERS.find((order) => order === localStorage.getItem(KEPT)) ?? "visitors";
}

/** The server sorts them by name. */
function inOrder(websites: Website[], order: Order): Website[] {
  if (order === "name") return websites;
  return websites.toSorted((one, other) => countOf(other) - countOf(one));
}

/** The visitors of the last day, or the visits. */
function countOf({ summary }: Website): number {
  return summary?.visits ?? summary?.visitors ?? 0;
}

/** The last 24 hours, and those before them. */
function lastDay(counted: Counted): URLSearchParams {
  const end = new Date();
  return new URLSearchParams({
    start: new Date(end.valueOf() - DAY_MS).toISOString(),
    end: end.toISOString(),
    previous: "true",
    ...(counted === "visits" && { [VISITS]: "true" }),
  });
}

function Card(website: Website) {
  const { hostname, summary, quietSince } = website;
  const count = countOf(website);
  const counted = summary?.visits === undefined ? "visitors" : "visits";
  const place = useRef<HTMLLIElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver(
      (entries) => setSeen(entries.some((entry) => entry.isIntersecting)),
      { rootMargin: "100px" },
    );
    observer.observe(place.current as Element);
    return () => observer.disconnect();
  }, []);
  const { data } = useAsk<Summary>(
    isSeen ? statistic(hostname, "summary") : null,
    () => lastDay(counted),
    `last 24 hours ${counted}`,
  );
  return (
    <li ref={place}>
      <a class="card website" href={at(`/dashboard/websites/${encodeURIComponent(hostname)}`)}>
        <h2 title={hostname}>
          <bdi dir="ltr">
            {nameOf(hostname)
              .split(/(?=\.)/)
              .map((part) => [part, <wbr key={part} />])}
          </bdi>
        </h2>
        <p class="website-figure">
          <strong>{shortFigure(count)}</strong>{" "}
          {data?.previous && (
            <Change
              measure={counted}
              now={data.current[counted] ?? null}
              before={data.previous[counted] ?? null}
            />
          )}{" "}
          <span class="soft">{tn(`websites.${counted}`, count)}</span>
        </p>
        <Unvisited since={quietSince} />
        <Curve hostname={hostname} counted={counted} isSeen={isSeen} />
      </a>
    </li>
  );
}

function AddLink() {
  return (
    <a class="button main" href={at("/dashboard/add")}>
      <Icon of={Plus} size={16} />
      {t("websites.add")}
    </a>
  );
}

function Empty({ mayAdd }: { mayAdd: boolean }) {
  return (
    <section class="card websites-empty">
      <Icon of={Globe} size={40} />
      <h2>{t("websites.empty")}</h2>
      <p class="soft">{t("websites.empty-text")}</p>
      {mayAdd && <AddLink />}
    </section>
  );
}

function Skeletons() {
  return (
    <div class="websites" aria-hidden="true">
      {["one", "two", "three"].map((key) => (
        <span key={key} class="skeleton website-skeleton" />
      ))}
    </div>
  );
}
