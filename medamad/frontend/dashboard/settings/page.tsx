// The settings: sections with addresses of their own.

import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { useRoute } from "preact-iso";
import { t } from "../i18n/index.ts";
import { at } from "../state/paths.ts";
import { useUsage } from "../state/usage.ts";
import { later } from "../ui/lazy.tsx";
import { NoSuchPage } from "../ui/no-such-page.tsx";
import { About } from "./about.tsx";
import { Account } from "./account.tsx";
import { Reports } from "./reports.tsx";
import { Tokens } from "./tokens.tsx";
import { Tracker } from "./tracker.tsx";
import { UsageFigures } from "./usage.tsx";
import { Websites } from "./websites.tsx";
import "../style/websites.css" with { type: "css" };
import "../style/settings.css" with { type: "css" };

const SECTIONS = [
  ...(["account", "websites", "alerts", "reports", "tokens"] as const),
  ...(["tracker", "usage", "about"] as const),
] as const;
type Section = (typeof SECTIONS)[number];

const CONTENTS: Record<Section, ComponentType> = {
  account: Account,
  websites: Websites,
  alerts: later(() => import("./alerts.tsx").then(({ Alerts }) => Alerts)),
  tokens: Tokens,
  reports: Reports,
  tracker: Tracker,
  usage: UsageFigures,
  about: About,
};

export function SettingsPage() {
  const named = useRoute().params.section;
  const section = SECTIONS.find((section) => section === (named || "account"));
  const { isDemo } = useUsage();
  useEffect(() => {
    if (section) {
      document.title = `${t(`settings.${section}`)} · ${t("settings.title")} · medamad`;
    }
  });
  if (!section) return <NoSuchPage />;
  const Content = CONTENTS[section];
  return (
    <main class="page settings">
      <h1 class="page-title">{t("settings.title")}</h1>
      <nav aria-label={t("settings.title")}>
        <ul class="settings-nav">
          {SECTIONS.map((other) => (
            <li key={other}>
              <a
                href={at(`/dashboard/settings/${other}`)}
                {...(other === section && { "aria-current": "page" as const })}
              >
                {t(`settings.${other}`)}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="settings-content">
        {isDemo && section !== "usage" && section !== "about" && (
          <p class="note">{t("demo.note")}</p>
        )}
        <Content />
      </div>
    </main>
  );
}
