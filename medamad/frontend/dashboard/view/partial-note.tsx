// The notes that figures do not cover some days: only daily totals remain, data is damaged, or visits
// are unknown; and what exclusions leave out.

import { t } from "../i18n/index.ts";
import { partialDays } from "../state/partial.ts";
import { dateLabel } from "./spans.ts";

export function PartialNote() {
  const { totals, damaged, visits, exclusions, leavesOut } = partialDays.value;
  return (
    <>
      {damaged && (
        <p class="partial-note" role="alert">
          {t("view.damaged", { first: dateLabel(damaged.first), last: dateLabel(damaged.last) })}
        </p>
      )}
      {totals && (
        <p class="partial-note soft" role="note">
          {t("view.partial", { first: dateLabel(totals.first), last: dateLabel(totals.last) })}
        </p>
      )}
      {visits && (
        <p class="partial-note soft" role="note">
          {t("view.no-visits-known", {
            first: dateLabel(visits.first),
            last: dateLabel(visits.last),
          })}
        </p>
      )}
      {exclusions && (
        <p class="partial-note soft" role="note">
          {t("view.not-left-out", {
            first: dateLabel(exclusions.first),
            last: dateLabel(exclusions.last),
          })}
        </p>
      )}
      {leavesOut && (
        <p class="partial-note soft" role="note">
          {t("view.left-out")}
        </p>
      )}
    </>
  );
}
