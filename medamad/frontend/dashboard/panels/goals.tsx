// The goals of a website with conversions, rate and revenue, and its funnels.

import { Plus } from "lucide";
import { useEffect, useId, useState } from "preact/hooks";
import type { GoalFigures } from "../api/types.ts";
import { figure, money, percent, shortFigure, shortMoney, t } from "../i18n/index.ts";
import { shareId } from "../state/share.ts";
import { Edit } from "../ui/edit.tsx";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/lazy.tsx";
import { Trouble } from "../ui/trouble.tsx";
import { Change } from "../view/change.tsx";
import { comparedWith } from "../view/comparison.ts";
import { goalIn, isChosen, toggled } from "../view/filters.ts";
import { useEarlier, useStatistic, useViewing } from "../view/page-state.ts";
import { keepsVisits } from "../view/visits.ts";
import { Waiting } from "./rows.tsx";
import { Tabs, useTab } from "./tabs.tsx";
import { goalNames } from "./words.ts";

const Funnels = later(() => import("../goals/funnels.tsx").then(({ Funnels }) => Funnels));
const GoalDialog = later(() =>
  import("../goals/goal-dialog.tsx").then(({ GoalDialog }) => GoalDialog),
);
const FunnelDialog = later(() =>
  import("../goals/funnel-dialog.tsx").then(({ FunnelDialog }) => FunnelDialog),
);

export function GoalsPanel() {
  const id = useId();
  const heading = useId();
  const [name, setName] = useTab("goals", keepsVisits.value ? ["goals", "funnels"] : ["goals"]);
  /** The id of the goal or funnel that is changed; "" for a new one. */
  const [edited, setEdited] = useState<string>();
  const isOfGoals = name === "goals";
  const Editor = isOfGoals ? GoalDialog : FunnelDialog;
  return (
    <section class="card panel panel-wide" aria-labelledby={heading}>
      <header class="panel-head">
        <h2 id={heading}>{t("panels.goals")}</h2>
        {keepsVisits.value && (
          <Tabs
            label={t("panels.goals")}
            panel={id}
            names={["goals", "funnels"] as const}
            words={(name) => t(`goals.tab.${name}`)}
            chosen={name}
            choose={setName}
          />
        )}
      </header>
      <div
        class="panel-body"
        id={id}
        tabIndex={-1}
        {...(keepsVisits.value && { role: "tabpanel", "aria-labelledby": `${id}-${name}` })}
      >
        {isOfGoals ? <Goals edit={setEdited} /> : <Funnels edit={setEdited} />}
      </div>
      {!shareId && (
        <footer class="panel-foot">
          <button type="button" class="quiet" aria-haspopup="dialog" onClick={() => setEdited("")}>
            <Icon of={Plus} size={16} /> {t(`goals.new.${name}`)}
          </button>
        </footer>
      )}
      {edited !== undefined && <Editor id={edited} onClose={() => setEdited(undefined)} />}
    </section>
  );
}

function Goals({ edit }: { edit: (id: string) => void }) {
  const { view, zone, show } = useViewing();
  const { data, error, isStale } = useStatistic<GoalFigures[]>("goals");
  const isCompared = comparedWith(view, zone) !== undefined;
  const before = useEarlier<GoalFigures[]>(data?.length ? "goals" : null);
  const earlier = new Map(
    before.isStale ? [] : before.data?.map(({ id, conversions }) => [id, conversions]),
  );
  useEffect(() => {
    if (data) goalNames.value = Object.fromEntries(data.map(({ id, name }) => [id, name]));
  }, [data]);
  if (!data) return error ? <Trouble error={error} /> : <Waiting count={3} />;
  if (data.length === 0) {
    return (
      <div class="rows-empty soft">
        <p>{t("goals.none")}</p>
        <p>{t("goals.none-text")}</p>
      </div>
    );
  }
  const most = Math.max(...data.map(({ conversions }) => conversions));
  const goal = goalIn(view.filters);
  const earns = data.some(({ revenue }) => revenue);
  return (
    <table class={`rows goal-rows ${isStale ? "stale" : ""}`}>
      <thead>
        <tr>
          <th scope="col">{t("filters.field.goal")}</th>
          <th scope="col">{t("goals.conversions")}</th>
          <th scope="col" title={t("goals.rate-title")}>
            {t("goals.rate")}
          </th>
          {earns && <th scope="col">{t("goals.revenue")}</th>}
        </tr>
      </thead>
      <tbody>
        {data.map(({ id, name, conversions, visits_percentage: rate, revenue }) => (
          <tr key={id}>
            <th scope="row">
              <div class="row-name">
                <span
                  class="row-bar"
                  style={{ width: `${most ? (conversions / most) * 100 : 0}%` }}
                />
                <button
                  type="button"
                  title={name}
                  disabled={!keepsVisits.value}
                  aria-pressed={isChosen(view.filters, "goal", id)}
                  onClick={() => show({ filters: toggled(view.filters, "goal", id) })}
                >
                  <bdi>{name}</bdi>
                </button>
                <Edit name={name} edit={() => edit(id)} />
              </div>
            </th>
            <td>
              <div class="goal-figure">
                <span title={figure(conversions)}>{shortFigure(conversions)}</span>
                {isCompared && (
                  <Change measure="visits" now={conversions} before={earlier.get(id) ?? null} />
                )}
              </div>
            </td>
            {/* Of the visits that reached one goal, the rates of the others are not theirs. */}
            <td>{rate === undefined || (goal && id !== goal) ? "–" : percent(rate)}</td>
            {earns && (
              <td title={revenue && money(Number(revenue.sum), revenue.currency)}>
                {revenue && shortMoney(Number(revenue.sum), revenue.currency)}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
