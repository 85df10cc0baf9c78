// The note that figures do not cover some days, because only daily totals remain.

import { t } from "../i18n/index.ts";
import { partialDays } from "../state/partial.ts";
import { dateLabel } from "./spans.ts";

export function PartialNote() {
  const days = partialDays.value;
  if (!days) return null;
  return (
    <p class="partial-note soft" role="note">
      {t("view.partial", { first: dateLabel(days.first), last: dateLabel(days.last) })}
    </p>
  );
}
