// Waits for a website's first view, and explains why none arrives.

import { CircleCheck } from "lucide";
import { useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { ApiError, change, statistic } from "../api/client.ts";
import type { Refused, Usage, Website } from "../api/types.ts";
import { ago, t, tn } from "../i18n/index.ts";
import { useAsk, useFresh } from "../state/data.ts";
import { at } from "../state/paths.ts";
import { Filled } from "../ui/filled.tsx";
import { nameOf } from "../ui/hostnames.ts";
import { Icon } from "../ui/icon.tsx";
import { Refusal } from "../ui/trouble.tsx";
import { hostnameRefusals } from "./hostname-field.tsx";
import { reasonText } from "./reasons.tsx";

const WAITING_MS = 2_000;
const SHOWN_HOSTNAMES = 3;
/** Rejections that belong to no known website. */
const OF_ANY = ["malformed", "rate"];

interface Properties {
  hostname: string;
  /** All views ever counted. */
  views: number;
  usage: Usage;
}

export function Wait({ hostname, views, usage }: Properties) {
  const { data: ignored } = useAsk<Refused[]>(statistic(hostname, "ignored"));
  useFresh(views === 0 ? WAITING_MS : 0);
  const hasWaited = useRef(false);
  if (views === 0) hasWaited.current = true;

  const unknown = usage.hits.unknown_hostnames
    .toSorted((one, other) => kinship(other.hostname, hostname) - kinship(one.hostname, hostname))
    .slice(0, SHOWN_HOSTNAMES);
  const ofAny = usage.hits.refused.filter(({ reason }) => OF_ANY.includes(reason));
  const isPuzzling = ignored?.length || unknown.length || ofAny.length;
  return (
    <li class="card padded step">
      <h2>{t("setup.wait")}</h2>
      <p class={views > 0 ? "arrival came" : "arrival"} role="status">
        {views > 0 ? (
          <Icon of={CircleCheck} size={22} />
        ) : (
          <span class="arrival-dot" aria-hidden="true" />
        )}
        <strong>{arrival(views, hasWaited.current)}</strong>
      </p>
      {views > 0 && (
        <p>
          <a
            class="button main"
            href={at(`/dashboard/websites/${encodeURIComponent(hostname)}?period=today`)}
          >
            {t("setup.to-statistics")}
          </a>
        </p>
      )}
      {views === 0 && isPuzzling ? (
        <section
          class="step"
          aria-label={t("setup.reasons")}
          aria-live="polite"
          aria-relevant="additions"
        >
          <h3>{t("setup.reasons")}</h3>
          <ul class="puzzles">
            {unknown.map((one) => (
              <Unknown key={one.hostname} {...one} website={hostname} isDemo={usage.service.demo} />
            ))}
            {ignored?.map((one) => (
              <Ignored key={one.reason} {...one} />
            ))}
            {ofAny.map((one) => (
              <Ignored key={one.reason} {...one} isOfAny />
            ))}
          </ul>
        </section>
      ) : null}
      {views === 0 && <Checks hostname={hostname} />}
    </li>
  );
}

/** How many trailing labels two hostnames share: hits for one may arrive for a related one. */
function kinship(one: string, other: string): number {
  const labels = other.split(".").reverse();
  return one
    .split(".")
    .reverse()
    .findIndex((label, place) => label !== labels[place]);
}

function arrival(views: number, hasWaited: boolean): string {
  if (views === 0) return t("setup.waiting");
  return hasWaited ? t("setup.came") : tn("setup.counted", views);
}

function Ignored({ reason, hits, last, isOfAny = false }: Refused & { isOfAny?: boolean }) {
  return (
    <li class="note">
      <p>
        {isOfAny && t("setup.of-any")} {reasonText(reason)}
      </p>
      <p class="soft">{tn("setup.hits", hits, { ago: ago(last) })}</p>
    </li>
  );
}

interface UnknownProperties {
  hostname: string;
  hits: number;
  last: number;
  website: string;
  isDemo: boolean;
}

/** Hits for an unregistered hostname, which may be the intended one. */
function Unknown({ hostname, hits, last, website, isDemo }: UnknownProperties) {
  const { route } = useLocation();
  const [error, setError] = useState<ApiError>();
  const settle = async (changing: Promise<Website>) => {
    try {
      await changing;
      route(at(`/dashboard/websites/${encodeURIComponent(hostname)}/setup`));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setError(error);
    }
  };
  const register = () => settle(change("POST", "/websites", { hostname }));
  const rename = () =>
    settle(change("PATCH", `/websites/${encodeURIComponent(website)}`, { hostname }));
  return (
    <li class="note">
      <p>
        <Filled
          text={t("setup.unknown")}
          values={{ hostname: <strong title={hostname}>{nameOf(hostname)}</strong> }}
        />
      </p>
      <p class="soft">{tn("setup.hits", hits, { ago: ago(last) })}</p>
      {!isDemo && (
        <div class="row">
          <button type="button" class="button" onClick={register}>
            {t("setup.register")}
          </button>
          <button type="button" class="button" onClick={rename}>
            {t("setup.rename", { hostname: nameOf(website) })}
          </button>
        </div>
      )}
      <Refusal error={error} meaning={hostnameRefusals(hostname)} />
    </li>
  );
}

function Checks({ hostname }: { hostname: string }) {
  const code = (text: string) => <code>{text}</code>;
  return (
    <details>
      <summary>{t("setup.check")}</summary>
      <ul class="checks">
        <li>{t("setup.check-source")}</li>
        <li>{t("setup.check-hostname", { hostname: nameOf(hostname) })}</li>
        <li>
          <Filled
            text={t("setup.check-blocker")}
            values={{ script: code("script_name"), event: code("event_name") }}
          />
        </li>
        <li>
          <Filled
            text={t("setup.check-policy")}
            values={{
              origin: code(location.origin),
              script: code("script-src"),
              connect: code("connect-src"),
            }}
          />
        </li>
        <li>
          <Filled text={t("setup.check-excluded")} values={{ fragment: code("#medamad-count") }} />
        </li>
      </ul>
    </details>
  );
}
