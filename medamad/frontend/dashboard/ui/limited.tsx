// The note that new values of a website count as (other) today.

import { t } from "../i18n/index.ts";

export function Limited() {
  return (
    <p class="unvisited" role="note">
      {t("limited.note")}
    </p>
  );
}
