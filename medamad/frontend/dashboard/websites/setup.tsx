// A website's setup: its script tag, and the wait for its first visit.

import { useEffect } from "preact/hooks";
import { useRoute } from "preact-iso";
import { statistic } from "../api/client.ts";
import type { Summary, Usage } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { useAsk } from "../state/data.ts";
import { at } from "../state/paths.ts";
import { useUsage } from "../state/usage.ts";
import { Copyable } from "../ui/copy.tsx";
import { Filled } from "../ui/filled.tsx";
import { nameOf } from "../ui/hostnames.ts";
import { NoWebsite } from "../ui/no-such-page.tsx";
import { Trouble } from "../ui/trouble.tsx";
import { isLocal, pixelTag, scriptTag } from "./tag.ts";
import { Wait } from "./wait.tsx";
import "../style/websites.css" with { type: "css" };

export function SetupPage() {
  const hostname = useRoute().params.hostname ?? "";
  const { data: summary, error } = useAsk<Summary>(statistic(hostname, "summary"));
  const { data: usage, error: usageError } = useUsage();
  const name = nameOf(hostname);
  useEffect(() => {
    document.title = `${t("setup.title", { hostname: name })} · medamad`;
  }, [name]);

  if (error?.status === 404 || error?.status === 400) return <NoWebsite hostname={hostname} />;
  const trouble = (!summary && error) || (!usage && usageError);
  return (
    <main class="page narrow" key={hostname}>
      <div class="setup-head">
        <h1>{t("setup.title", { hostname: name })}</h1>
        <a class="button" href={at(`/dashboard/websites/${encodeURIComponent(hostname)}`)}>
          {t("setup.to-statistics")}
        </a>
      </div>
      {trouble && <Trouble error={trouble} />}
      {usage && (
        <ol class="steps">
          <Tag hostname={hostname} names={usage.tracker} />
          <Visit hostname={hostname} />
          {summary && <Wait hostname={hostname} views={summary.current.pageviews} usage={usage} />}
        </ol>
      )}
    </main>
  );
}

function Tag({ hostname, names }: { hostname: string; names: Usage["tracker"] }) {
  return (
    <li class="card padded step">
      <h2>{t("setup.tag")}</h2>
      <p>{t("setup.tag-where")}</p>
      <Copyable text={scriptTag(names)} label={t("setup.tag-copy")} />
      <AddressNote hostname={hostname} />
      <p class="soft">
        <Filled
          text={t("setup.more")}
          values={{
            features: <a href={at("/dashboard/settings/tracker")}>{t("setup.features")}</a>,
          }}
        />
      </p>
      <details>
        <summary>{t("setup.pixel")}</summary>
        <div class="step">
          <p class="soft">{t("setup.pixel-text")}</p>
          <Copyable text={pixelTag(names)} label={t("setup.pixel-copy")} />
        </div>
      </details>
    </li>
  );
}

/** The tag contains the address of this page, which visitors must be able to reach. */
function AddressNote({ hostname }: { hostname: string }) {
  if (isLocal(hostname)) return null;
  const { origin, protocol } = location;
  if (isLocal(location.hostname)) {
    return <p class="note">{t("setup.not-reachable", { origin })}</p>;
  }
  return protocol === "http:" ? <p class="note">{t("setup.not-secure")}</p> : null;
}

function Visit({ hostname }: { hostname: string }) {
  const link = (
    <a href={`https://${hostname}/`} target="_blank" rel="noopener noreferrer">
      {nameOf(hostname)}
    </a>
  );
  return (
    <li class="card padded step">
      <h2>{t("setup.visit")}</h2>
      <p>
        {isLocal(hostname) ? (
          t("setup.visit-yourself")
        ) : (
          <Filled text={t("setup.visit-text")} values={{ link }} />
        )}
      </p>
    </li>
  );
}
