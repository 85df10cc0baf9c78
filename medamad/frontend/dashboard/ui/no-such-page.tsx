// The page for an unknown address.

import { useLocation } from "preact-iso";
import { t } from "../i18n/index.ts";
import { at } from "../state/paths.ts";
import { nameOf } from "./hostnames.ts";

export function NoSuchPage() {
  return <Nothing text={t("error.not-found")} />;
}

/** Shown instead of the page of an unregistered website. */
export function NoWebsite({ hostname }: { hostname: string }) {
  return <Nothing text={t("view.no-website", { hostname: nameOf(hostname) })} />;
}

function Nothing({ text }: { text: string }) {
  const { url } = useLocation();
  return (
    <main class="page narrow" key={url}>
      <h1>{text}</h1>
      <p>
        <a href={at("/dashboard/")}>{t("error.back")}</a>
      </p>
    </main>
  );
}
