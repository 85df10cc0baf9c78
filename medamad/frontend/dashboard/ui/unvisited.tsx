// The note on a website that has gone silent.

import { moment, t } from "../i18n/index.ts";

export function Unvisited({ since }: { since: number | undefined }) {
  if (!since) return null;
  const when = moment(new Date(since * 1000), { dateStyle: "medium", timeStyle: "short" });
  return (
    <p class="unvisited" title={t("unvisited.why")}>
      {t("unvisited.since", { when })}
    </p>
  );
}
