// New and returning visitors, and those of a calendar week or month: known only if the server
// tells them apart, and not for every period.

import type { Figures } from "../api/types.ts";
import { figure, t } from "../i18n/index.ts";

export const KINDS = [
  "new_visitors",
  "returning_visitors",
  "week_visitors",
  "month_visitors",
] as const;

/** The kinds of visitors whose number is known, each with that; nothing if there are none. */
export function VisitorKinds({ of, className }: { of: Figures; className: string }) {
  const known = KINDS.filter((kind) => of[kind] !== undefined);
  if (known.length === 0) return null;
  return (
    <p class={className}>
      {known.map((kind, place) => (
        <span key={kind}>
          {place > 0 && " · "}
          {t(`measure.${kind}`)} <strong>{figure(of[kind] as number)}</strong>
        </span>
      ))}
    </p>
  );
}
