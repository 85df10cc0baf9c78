// What a goal or funnel would count in the period, while it is being defined.

import type { ComponentChildren } from "preact";
import { useContext, useMemo } from "preact/hooks";
import { isAway } from "../api/client.ts";
import type { GoalFigures } from "../api/types.ts";
import { figure, money, percent, t } from "../i18n/index.ts";
import { useSettled } from "../ui/debounced.ts";
import { useStatistic, useViewing, type Viewing, ViewingContext } from "../view/page-state.ts";
import { spanUntilNow } from "../view/periods.ts";
import { daysLabel } from "../view/spans.ts";
import { keepsVisits } from "../view/visits.ts";

/** Show the period without its filters to the components inside. */
export function Unfiltered({ children }: { children: ComponentChildren }) {
  const viewing = useContext(ViewingContext) as Viewing;
  const unfiltered = useMemo(
    () => ({ ...viewing, view: { ...viewing.view, filters: [] } }),
    [viewing],
  );
  return <ViewingContext.Provider value={unfiltered}>{children}</ViewingContext.Provider>;
}

interface Preview<T> {
  /** Undefined while there is nothing to preview, and if it is refused. */
  data: T | undefined;
  /** Whether `data` belongs to what was typed before. */
  isStale: boolean;
}

/** The figures of a definition once it has not changed for a moment. */
export function usePreview<T>(
  what: "goals" | "funnels",
  definition: object | undefined,
): Preview<T> {
  const wanted = definition ? JSON.stringify(definition) : "";
  const settled = useSettled(wanted);
  const { data, ...answer } = useStatistic<T>(settled ? `${what}/preview` : null, {
    definition: settled,
  });
  const isStale = wanted !== "" && (answer.isStale || settled !== wanted);
  const isKnown = settled && !(isStale && isAway.value);
  return { data: isKnown ? data : undefined, isStale };
}

/** The days that a preview is of. */
export function PreviewDays() {
  const { view, zone } = useViewing();
  const days = daysLabel(spanUntilNow(view.period, zone), view.period, zone);
  return <p class="soft">{t("goals.preview", { days })}</p>;
}

interface Properties {
  /** The members of a goal; undefined while it is incomplete. */
  definition: object | undefined;
  earns: boolean;
}

/** The figures of a goal. */
export function GoalPreview({ definition, earns }: Properties) {
  const { data, isStale } = usePreview<GoalFigures>("goals", definition);
  const { conversions, visits, visits_percentage: rate, revenue } = data ?? {};
  return (
    <section class="preview">
      <PreviewDays />
      <dl class={isStale ? "stale" : ""} aria-live="polite">
        <Figure name={t("goals.conversions")}>
          {conversions !== undefined && figure(conversions)}
        </Figure>
        {keepsVisits.value && (
          <Figure name={t("panels.figure.visits")}>
            {visits !== undefined &&
              t("goals.figure-share", { n: figure(visits), share: percent(rate ?? 0) })}
          </Figure>
        )}
        {earns && (
          <Figure name={t("goals.revenue")}>
            {revenue && money(Number(revenue.sum), revenue.currency)}
          </Figure>
        )}
      </dl>
    </section>
  );
}

function Figure({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children || "–"}</dd>
    </div>
  );
}
