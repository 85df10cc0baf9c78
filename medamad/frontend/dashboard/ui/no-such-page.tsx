// What an address that names no page shows.

import { useLocation } from "preact-iso";
import { t } from "../i18n/index.ts";

export function NoSuchPage() {
  const { url } = useLocation();
  return (
    <main class="page narrow" key={url}>
      <h1>{t("error.not-found")}</h1>
      <p>
        <a href="/dashboard/">{t("error.back")}</a>
      </p>
    </main>
  );
}
