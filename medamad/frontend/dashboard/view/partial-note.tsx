// The notes that figures do not cover some days: only daily totals remain, or data is damaged.

import { t } from "../i18n/index.ts";
import { damagedDays, partialDays } from "../state/partial.ts";
import { dateLabel } from "./spans.ts";

export function PartialNote() {
  const days = partialDays.value;
  const damaged = damagedDays.value;
  return (
    <>
      {damaged && (
        <p class="partial-note" role="alert">
          {t("view.damaged", { first: dateLabel(damaged.first), last: dateLabel(damaged.last) })}
        </p>
      )}
      {days && (
        <p class="partial-note soft" role="note">
          {t("view.partial", { first: dateLabel(days.first), last: dateLabel(days.last) })}
        </p>
      )}
    </>
  );
}
