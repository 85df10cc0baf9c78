// The page for an unknown address.

import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { t } from "../i18n/index.ts";
import { at } from "../state/paths.ts";
import { sitePath } from "../state/share.ts";
import { nameOf } from "./hostnames.ts";

export function NoSuchPage() {
  return <Nothing text={t("error.not-found")} />;
}

/** Shown instead of the page of a funnel that does not exist, with the way back to its website. */
export function NoFunnel({ hostname }: { hostname: string }) {
  return (
    <Nothing text={t("error.not-found")} back={sitePath(hostname)}>
      <bdi>{nameOf(hostname)}</bdi>
    </Nothing>
  );
}

/** Shown instead of the page of an unregistered website. */
export function NoWebsite({ hostname }: { hostname: string }) {
  return <Nothing text={t("view.no-website", { hostname: nameOf(hostname) })} />;
}

interface Properties {
  text: string;
  /** Where the link leads, and what it says: to the websites unless there is anything else. */
  back?: string;
  children?: ComponentChildren;
}

function Nothing({ text, back = at("/dashboard/"), children }: Properties) {
  const { url } = useLocation();
  return (
    <main class="page narrow" key={url}>
      <h1>{text}</h1>
      <p>
        <a href={back}>{children ?? t("error.back")}</a>
      </p>
    </main>
  );
}
