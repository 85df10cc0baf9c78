// Registering a website.

import type { TargetedSubmitEvent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { ApiError, change } from "../api/client.ts";
import type { Website } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { at } from "../state/paths.ts";
import { useUsage } from "../state/usage.ts";
import { Refusal } from "../ui/trouble.tsx";
import { HostnameField, hostnameIn, hostnameRefusals } from "./hostname-field.tsx";
import "../style/websites.css" with { type: "css" };

export function AddPage() {
  const { route, query } = useLocation();
  const { isDemo } = useUsage();
  const [typed, setTyped] = useState(query.hostname ?? "");
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = `${t("add.title")} · medamad`;
    document.getElementById("hostname")?.focus();
  }, []);

  const add = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setBusy(true);
    try {
      const { hostname } = await change<Website>("POST", "/websites", {
        hostname: hostnameIn(typed),
      });
      route(at(`/dashboard/websites/${encodeURIComponent(hostname)}/setup`));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setError(error);
      setBusy(false);
    }
  };

  return (
    <main class="page narrow">
      <h1 class="page-title">{t("add.title")}</h1>
      <form class="card form padded" onSubmit={add}>
        {isDemo && <p class="soft">{t("demo.note")}</p>}
        <HostnameField
          value={typed}
          onInput={(text) => {
            setTyped(text);
            setError(undefined);
          }}
          disabled={isDemo}
        />
        <Refusal error={error} meaning={hostnameRefusals(hostnameIn(typed))} />
        <div class="row">
          <button type="submit" class="button main" disabled={isBusy || isDemo}>
            {t("add.submit")}
          </button>
          <a class="button" href={at("/dashboard/")}>
            {t("common.cancel")}
          </a>
        </div>
      </form>
    </main>
  );
}
