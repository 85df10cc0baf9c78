// A panel: the first rows of one of its statistics, a bar behind each; a row is a filter.

import { useId, useState } from "preact/hooks";
import type { Row, TimeRow } from "../api/types.ts";
import { duration, figure, type Key, percent, shortFigure, t } from "../i18n/index.ts";
import { later } from "../ui/later.tsx";
import { Trouble } from "../ui/trouble.tsx";
import { useStatistic, useViewing } from "../view/asking.ts";
import { isSame, toggled } from "../view/filters.ts";
import type { Statistic } from "./statistics.ts";

const ROWS = 9;

const Details = later(() => import("./details.tsx").then(({ Details }) => Details));

interface Properties {
  id: string;
  title: Key;
  statistics: Statistic[];
}

export function Panel({ id, title, statistics }: Properties) {
  const kept = `medamad.panel.${id}`;
  const [chosen, setChosen] = useState(localStorage.getItem(kept));
  const [showsDetails, setShowsDetails] = useState(false);
  const heading = useId();
  const [usual] = statistics;
  const statistic = statistics.find(({ id }) => id === chosen) ?? (usual as Statistic);
  const choose = (id: string) => {
    localStorage.setItem(kept, id);
    setChosen(id);
  };
  return (
    <section class="card panel" aria-labelledby={heading}>
      <header class="panel-head">
        <h2 id={heading}>{t(title)}</h2>
        <select
          class="panel-choice"
          aria-label={t(title)}
          value={statistic.id}
          onChange={(event) => choose(event.currentTarget.value)}
        >
          {statistics.map(({ id, title }) => (
            <option key={id} value={id}>
              {t(title)}
            </option>
          ))}
        </select>
      </header>
      <Rows key={statistic.id} statistic={statistic} />
      <button type="button" class="quiet panel-more" onClick={() => setShowsDetails(true)}>
        {t("panels.details")}
        <span class="hidden">: {t(statistic.title)}</span>
      </button>
      {showsDetails && <Details statistic={statistic} onClose={() => setShowsDetails(false)} />}
    </section>
  );
}

function Rows({ statistic }: { statistic: Statistic }) {
  const { view, show } = useViewing();
  const isTime = statistic.path === "time";
  const { data, error, isStale } = useStatistic<(Row | TimeRow)[]>(statistic.path, {
    ...statistic.further,
    limit: String(ROWS),
    summary: "true",
  });
  if (error && !data) return <Trouble error={error} />;
  const { field } = statistic;
  const rows = data?.map((row) => {
    const value = String((row as Row)[statistic.value] ?? "");
    const share = isTime ? (row as TimeRow).duration_percentage : (row as Row).visitors_percentage;
    const amount = isTime ? (row as TimeRow).duration : (row as Row).visitors;
    return {
      value,
      label: value || t(statistic.empty),
      share: share ?? 0,
      amount: isTime ? duration(amount ?? 0) : shortFigure(amount ?? 0),
      exact: isTime ? duration(amount ?? 0) : figure(amount ?? 0),
    };
  });
  return (
    <Bars
      rows={rows}
      isStale={isStale}
      isChosen={(value) =>
        view.filters.some((filter) => isSame(filter, { field, operator: "eq", values: [value] }))
      }
      onChoose={(value) => show({ filters: toggled(view.filters, field, value) })}
    />
  );
}

export interface Bar {
  value: string;
  label: string;
  /** The part of the whole, 0 to 1. */
  share: number;
  amount: string;
  exact: string;
}

interface BarsProperties {
  rows: Bar[] | undefined;
  isStale: boolean;
  isChosen: (value: string) => boolean;
  onChoose: (value: string) => void;
}

/** Rows with a bar behind each; skeletons of them until they are known. */
export function Bars({ rows, isStale, isChosen, onChoose }: BarsProperties) {
  if (!rows) {
    return (
      <ul class="bars">
        {Array.from({ length: ROWS }, (_, place) => (
          <li key={place}>
            <span class="skeleton bar-skeleton" />
          </li>
        ))}
      </ul>
    );
  }
  if (rows.length === 0) return <p class="bars soft panel-empty">{t("panels.empty")}</p>;
  const most = Math.max(...rows.map(({ share }) => share), 0.0001);
  return (
    <ul class={isStale ? "bars stale" : "bars"}>
      {rows.map(({ value, label, share, amount, exact }) => (
        <li key={value}>
          <button
            type="button"
            class="bar-row"
            aria-pressed={isChosen(value)}
            title={t("panels.filter-by", { value: label })}
            style={{ "--share": `${(share / most) * 100}%` }}
            onClick={() => onChoose(value)}
          >
            <span class="bar-name" dir="auto">
              {label}
            </span>
            <span class="bar-amount" title={exact}>
              {amount}
            </span>
            <span class="bar-share">{percent(share)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
