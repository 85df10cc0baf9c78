// Says that figures on the page are without some days, because sums alone are kept of them.

import { moment, t } from "../i18n/index.ts";
import { partialDays } from "../state/partial.ts";

export function PartialNote() {
  const days = partialDays.value;
  if (!days) return null;
  return (
    <p class="partial-note soft" role="note">
      {t("view.partial", { first: dateOf(days.first), last: dateOf(days.last) })}
    </p>
  );
}

function dateOf(text: string): string {
  return moment(new Date(`${text}T00:00:00Z`), { dateStyle: "medium" }, "UTC");
}
