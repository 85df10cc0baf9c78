// Says that figures on the page are without some days, because sums alone are kept of them.

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
