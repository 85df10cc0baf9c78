// What a website's page shows before its first view: a link to the setup.

import { statistic } from "../api/client.ts";
import type { Summary } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { useAsk } from "../state/data.ts";
import { at } from "../state/paths.ts";
import { Filled } from "../ui/filled.tsx";
import { useViewing } from "./page-state.ts";

export function NeverVisited() {
  const { hostname } = useViewing();
  const { data } = useAsk<Summary>(statistic(hostname, "summary"));
  if (data?.current.pageviews !== 0) return null;
  const path = at(`/dashboard/websites/${encodeURIComponent(hostname)}/setup`);
  return (
    <p class="chart-note">
      <Filled text={t("view.no-visit")} values={{ setup: <a href={path}>{t("view.setup")}</a> }} />
    </p>
  );
}
