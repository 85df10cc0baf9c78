// All rows of a statistic with every column: to search, sort, page through and take along.

import { Download } from "lucide";
import { useEffect, useState } from "preact/hooks";
import { duration, figure, type Key, percent, t } from "../i18n/index.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { Trouble } from "../ui/trouble.tsx";
import { useStatistic, useViewing } from "../view/asking.ts";
import { isSame, toggled } from "../view/filters.ts";
import { dayOf, spanUntilNow } from "../view/periods.ts";
import { save, writeCsv } from "./csv.ts";
import type { Statistic } from "./statistics.ts";

type Values = Record<string, string | number>;

interface Column {
  name: string;
  title: Key;
  write: (value: number) => string;
}

const MOST_ROWS = 5_000;
const PAGE_ROWS = 100;
const TYPING_MS = 300;

const TIMES: Column[] = [
  { name: "visitors", title: "panels.visitors", write: figure },
  { name: "duration", title: "panels.median", write: duration },
  { name: "duration_lower_quartile", title: "panels.lower", write: duration },
  { name: "duration_upper_quartile", title: "panels.upper", write: duration },
  { name: "duration_percentage", title: "panels.share", write: percent },
];

const COUNTS: Column[] = [
  { name: "visitors", title: "panels.visitors", write: figure },
  { name: "visitors_percentage", title: "panels.share", write: percent },
  { name: "pageviews", title: "panels.views", write: figure },
  { name: "bounce_percentage", title: "panels.bounce", write: percent },
  { name: "duration", title: "panels.total-time", write: duration },
];

interface Properties {
  statistic: Statistic;
  onClose: () => void;
}

export function Details({ statistic, onClose }: Properties) {
  const { hostname, view, zone, show } = useViewing();
  const [typed, setTyped] = useState("");
  const [sought, setSought] = useState("");
  const [order, setOrder] = useState<{ column: string; falls: boolean }>();
  const [page, setPage] = useState(0);
  useEffect(() => {
    const waiting = setTimeout(() => {
      setSought(typed);
      setPage(0);
    }, TYPING_MS);
    return () => clearTimeout(waiting);
  }, [typed]);

  const { data, error, isStale } = useStatistic<Values[]>(statistic.path, {
    ...statistic.further,
    limit: String(MOST_ROWS),
    ...(sought && { [`${statistic.field}[contains]`]: sought }),
  });
  const columns = (statistic.path === "time" ? TIMES : COUNTS).filter(
    ({ name }) => !data?.[0] || name in data[0],
  );
  const rows = data && sorted(data, order);
  const pages = Math.max(1, Math.ceil((rows?.length ?? 0) / PAGE_ROWS));
  const textOf = (row: Values) => String(row[statistic.value] ?? "");
  const sortBy = (column: string) => {
    const isNumber = column !== statistic.value;
    setOrder({ column, falls: order?.column === column ? !order.falls : isNumber });
    setPage(0);
  };
  const download = () => {
    const { start, end } = spanUntilNow(view.period, zone);
    const days = [start, end].filter((date) => date !== undefined).map(dayOf);
    const head = [statistic.value, ...columns.map(({ name }) => name)];
    const cells = (rows ?? []).map((row) => [
      textOf(row),
      ...columns.map(({ name }) => row[name] ?? ""),
    ]);
    save(`${[hostname, statistic.id, ...days].join("-")}.csv`, writeCsv([head, ...cells]));
  };
  const heading = (column: string, title: Key) => (
    <th
      scope="col"
      key={column}
      aria-sort={order?.column !== column ? "none" : order.falls ? "descending" : "ascending"}
    >
      <button type="button" onClick={() => sortBy(column)}>
        {t(title)}
        <span aria-hidden="true">
          {order?.column === column ? (order.falls ? " ▼" : " ▲") : ""}
        </span>
      </button>
    </th>
  );
  const title = t("panels.details-of", { title: t(statistic.title) });
  return (
    <Dialog title={title} onClose={onClose} wide>
      <div class="row">
        <label class="details-search">
          <span class="hidden">{t("panels.search")}</span>
          <input
            type="search"
            placeholder={t("panels.search")}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <button type="button" class="button" disabled={!rows?.length} onClick={download}>
          <Icon of={Download} size={16} /> {t("panels.download")}
        </button>
      </div>
      {error && !data && <Trouble error={error} />}
      {!error && !data && <span class="skeleton chart-skeleton" />}
      {rows && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll what is longer than its place
        <section class={isStale ? "details stale" : "details"} aria-label={title} tabIndex={0}>
          <table>
            <thead>
              <tr>
                {heading(statistic.value, `field.${statistic.field}`)}
                {columns.map(({ name, title }) => heading(name, title))}
              </tr>
            </thead>
            <tbody>
              {rows.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS).map((row) => {
                const value = textOf(row);
                const filter = { field: statistic.field, operator: "eq" as const, values: [value] };
                return (
                  <tr key={value}>
                    <th scope="row">
                      <button
                        type="button"
                        class="link"
                        dir="auto"
                        aria-pressed={view.filters.some((other) => isSame(other, filter))}
                        onClick={() => {
                          show({ filters: toggled(view.filters, statistic.field, value) });
                          onClose();
                        }}
                      >
                        {value || t(statistic.empty)}
                      </button>
                    </th>
                    {columns.map(({ name, write }) => (
                      <td key={name}>{write(Number(row[name]))}</td>
                    ))}
                  </tr>
                );
              })}
            </tbody>
          </table>
          {rows.length === 0 && <p class="panel-empty soft">{t("panels.empty")}</p>}
        </section>
      )}
      {rows && rows.length >= MOST_ROWS && (
        <p class="soft">{t("panels.cut", { n: figure(MOST_ROWS) })}</p>
      )}
      {pages > 1 && (
        <div class="row">
          <button
            type="button"
            class="button"
            disabled={page === 0}
            onClick={() => setPage(page - 1)}
          >
            {t("panels.earlier")}
          </button>
          <span aria-live="polite">
            {t("panels.page-of", { page: figure(page + 1), pages: figure(pages) })}
          </span>
          <button
            type="button"
            class="button"
            disabled={page + 1 >= pages}
            onClick={() => setPage(page + 1)}
          >
            {t("panels.later")}
          </button>
        </div>
      )}
    </Dialog>
  );
}

/** The rows in the order of a column; without one as they came. Equal ones stay as they came. */
function sorted(rows: Values[], order: { column: string; falls: boolean } | undefined): Values[] {
  if (!order) return rows;
  const sign = order.falls ? -1 : 1;
  const collator = new Intl.Collator();
  return [...rows].sort((one, other) => {
    const [a = "", b = ""] = [one[order.column], other[order.column]];
    const isBefore = typeof a === "string" ? collator.compare(a, String(b)) : a - Number(b);
    return sign * isBefore;
  });
}
