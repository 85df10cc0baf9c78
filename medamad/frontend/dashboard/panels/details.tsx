// A full list: every column, with search, sorting, paging and download.

import { TZDateMini } from "@date-fns/tz";
import { ArrowDown, ArrowLeft, ArrowRight, ArrowUp, Download } from "lucide";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { figure, language, t, tn } from "../i18n/index.ts";
import { lacksVisits } from "../state/partial.ts";
import { useSettled } from "../ui/debounced.ts";
import { Dialog, hasKeyboard } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { Trouble } from "../ui/trouble.tsx";
import { goalIn, isChosen } from "../view/filters.ts";
import { useStatistic, useViewing } from "../view/page-state.ts";
import { dayOf, spanUntilNow } from "../view/periods.ts";
import { countsVisitors, keepsVisits, VISITS } from "../view/visits.ts";
import { type Column, columnsOf, inOrder, type Order } from "./columns.ts";
import { saveCsv, writeCsv } from "./csv.ts";
import { isOfSources, type Listing, type ListRow, listLabel } from "./lists.ts";
import { Mark } from "./mark.tsx";
import { useChoosing } from "./row-filters.ts";
import { LinkOut } from "./rows.tsx";
import { shareOf, useTotal, useVisitsKnown } from "./totals.ts";
import { names as codes, directionOf, fullWordOf, wordOf } from "./words.ts";
import "../style/details.css" with { type: "css" };

const MOST_ROWS = 5_000;
const PAGE_ROWS = 100;
const OF_VISITS = ["visits", "visit_bounce_percentage"];
const OF_VISITORS = ["visitors", "visitors_percentage", "bounce_percentage"];

interface Properties {
  listing: Listing;
  further: Record<string, string>;
  /** The parent of a sublist. */
  of?: string;
  onClose: () => void;
}

export function Details({ listing, further, of, onClose }: Properties) {
  const [typed, setTyped] = useState("");
  const areVisits = useVisitsKnown() && isOfSources(listing);
  const [order, setOrder] = useState<Order>({
    column: areVisits ? "visits" : (listing.columns.find(isShown) ?? ""),
    falls: true,
  });
  const [page, setPage] = useState(0);
  const goal = listing.figure === "visitors" ? goalIn(useViewing().view.filters) : undefined;
  const whole = useStatistic<ListRow[]>(listing.statistic, parametersFor(listing, goal, further));
  const isCapped = (whole.data?.length ?? 0) >= MOST_ROWS;
  // The API searches more rows than it returns; otherwise searching here is faster. Filtered
  // by names, it would return their values.
  const sought = useSettled(isCapped && listing.name !== "properties" ? typed : "");
  const found = useStatistic<ListRow[]>(
    sought ? listing.statistic : null,
    parametersFor(listing, goal, { ...further, [`${listing.field}[contains]`]: sought }),
  );
  const { data, error, isStale, partial } = sought ? found : whole;
  const hasNames = listing.name === "values" && of === undefined;
  const columns = columnsOf(listing, hasNames, goal !== undefined).filter(({ name }) =>
    isShown(name),
  );
  const names = codes.value;
  const counted = listing.figure === "visitors" ? listing.figure : undefined;
  const total = useTotal(counted, whole.isStale);
  const rows = useMemo(() => {
    const column = columns.find(({ name }) => name === order.column) as Column;
    const shown = sought
      ? sharesOfAll(data ?? [], whole.data ?? [], listing)
      : matching(data ?? [], columns, typed);
    const shared = shown.map((row) => ({
      ...row,
      [listing.share]: shareOf(row, listing, counted, total),
      visits: lacksVisits(partial) ? row.visits || undefined : row.visits,
    }));
    return inOrder(shared, column, order.falls);
  }, [data, whole.data, total, typed, sought, order.column, order.falls, language.value, names]);
  const title = of
    ? t("panels.of", { list: listLabel(listing), value: wordOf(listing.field, of) })
    : listLabel(listing);
  const sortBy = ({ name, isText }: Column) => {
    setOrder({ column: name, falls: order.column === name ? !order.falls : !isText });
    setPage(0);
  };
  return (
    <Dialog title={title} onClose={onClose} wide>
      <div class="details-head">
        <label>
          <span class="hidden">{t("panels.search")}</span>
          <input
            type="search"
            placeholder={t("panels.search")}
            autofocus={hasKeyboard()}
            value={typed}
            onInput={(event) => {
              setTyped(event.currentTarget.value);
              setPage(0);
            }}
          />
        </label>
        <p role="status" class="soft">
          {data && tn("panels.rows", rows.length)}
        </p>
        <DownloadButton listing={listing} of={of} columns={columns} rows={rows} />
      </div>
      {(data?.length ?? 0) >= MOST_ROWS && (
        <p class="soft">{t("panels.capped", { n: figure(MOST_ROWS) })}</p>
      )}
      {!data && (error ? <Trouble error={error} /> : <span class="skeleton details-waiting" />)}
      {data && rows.length > 0 && (
        <Table
          title={title}
          listing={listing}
          columns={columns}
          rows={rows.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS)}
          order={order}
          isStale={isStale}
          sortBy={sortBy}
          page={page}
        />
      )}
      {data && rows.length === 0 && (
        <p class="rows-empty soft">
          {typed ? t("panels.nothing-found", { text: typed }) : t("panels.empty")}
        </p>
      )}
      {rows.length > PAGE_ROWS && <Pages page={page} count={rows.length} setPage={setPage} />}
    </Dialog>
  );
}

/** Whether the server knows a column's figures. */
function isShown(column: string): boolean {
  if (OF_VISITORS.includes(column)) return countsVisitors.value;
  return keepsVisits.value || !OF_VISITS.includes(column);
}

function parametersFor(
  listing: Listing,
  goal: string | undefined,
  further: Record<string, string>,
): Record<string, string> {
  return {
    ...listing.further,
    ...further,
    ...(listing.figure === "visitors" && { views: "true", [VISITS]: "true" }),
    ...(goal && { conversions: goal }),
    limit: String(MOST_ROWS),
  };
}

const SHARE = "_percentage";

/**
 * Rows that were found, with their shares of all instead of those of what was found. Those of a
 * property's values are of that property.
 */
function sharesOfAll(found: readonly ListRow[], all: readonly ListRow[], { column }: Listing) {
  const shares = Object.keys(all[0] ?? {}).filter((name) => name.endsWith(SHARE));
  const known = new Map(all.map((row) => [`${row.name} ${row[column]}`, row]));
  // The first row of a property has most.
  const first = new Map(all.toReversed().map((row) => [row.name, row]));
  const shareOf = (row: ListRow, share: string) => {
    const figure = share.slice(0, -SHARE.length);
    const most = first.get(row.name);
    const total = Number(most?.[figure]) / Number(most?.[share]);
    return total ? Number(row[figure]) / total : undefined;
  };
  return found.map((row) => {
    const inFull = known.get(`${row.name} ${row[column]}`);
    return {
      ...row,
      ...Object.fromEntries(shares.map((name) => [name, inFull?.[name] ?? shareOf(row, name)])),
    };
  });
}

function matching(rows: readonly ListRow[], columns: readonly Column[], text: string) {
  const sought = text.toLowerCase();
  if (!sought) return rows;
  const texts = columns.filter(({ isText }) => isText);
  return rows.filter((row) =>
    texts.some(({ name, value }) =>
      [value(row), row[name]].some((text) => String(text).toLowerCase().includes(sought)),
    ),
  );
}

interface TableProperties {
  title: string;
  listing: Listing;
  columns: readonly Column[];
  rows: readonly ListRow[];
  order: Order;
  isStale: boolean;
  sortBy: (column: Column) => void;
  page: number;
}

function Table(properties: TableProperties) {
  const { title, listing, columns, rows, order, isStale, sortBy, page } = properties;
  const { view } = useViewing();
  const choose = useChoosing(listing);
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    place.current?.scrollTo({ top: 0 });
  }, [page]);
  return (
    <section
      ref={place}
      class={isStale ? "details stale" : "details"}
      aria-label={title}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll overflowing content
      tabIndex={0}
    >
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.name} column={column} order={order} sortBy={sortBy} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const value = String(row[listing.column]);
            return (
              <tr key={`${row.name ?? ""} ${value}`}>
                {columns.map((column) =>
                  column.name === listing.column ? (
                    <th scope="row" key={column.name}>
                      <div class="details-name">
                        <button
                          type="button"
                          class="link"
                          aria-pressed={isChosen(view.filters, listing.field, value)}
                          title={fullWordOf(listing.field, value)}
                          onClick={(event) => {
                            event.currentTarget.closest("dialog")?.close();
                            choose(row);
                          }}
                        >
                          <Mark field={listing.field} value={value} />
                          <bdi dir={directionOf(listing.field)}>{column.shown(row)}</bdi>
                        </button>
                        <LinkOut listing={listing} value={value} />
                      </div>
                    </th>
                  ) : (
                    <td key={column.name} class={column.isText ? "details-text" : ""}>
                      <bdi>{column.shown(row)}</bdi>
                    </td>
                  ),
                )}
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

interface HeadingProperties {
  column: Column;
  order: Order;
  sortBy: (column: Column) => void;
}

function Heading({ column, order, sortBy }: HeadingProperties) {
  const isSorted = order.column === column.name;
  return (
    <th
      scope="col"
      class={column.isText ? "details-text" : ""}
      aria-sort={isSorted ? (order.falls ? "descending" : "ascending") : "none"}
    >
      <button type="button" onClick={() => sortBy(column)}>
        {column.label}
        {isSorted && <Icon of={order.falls ? ArrowDown : ArrowUp} size={14} />}
      </button>
    </th>
  );
}

interface PagesProperties {
  page: number;
  count: number;
  setPage: (page: number) => void;
}

function Pages({ page, count, setPage }: PagesProperties) {
  const last = Math.ceil(count / PAGE_ROWS) - 1;
  return (
    <div class="details-pages">
      <button
        type="button"
        class="button"
        title={t("panels.page-before")}
        disabled={page === 0}
        onClick={() => setPage(page - 1)}
      >
        <Icon of={ArrowLeft} size={16} />
        <span class="hidden">{t("panels.page-before")}</span>
      </button>
      <span aria-live="polite">
        {t("panels.shown", {
          first: figure(page * PAGE_ROWS + 1),
          last: figure(Math.min((page + 1) * PAGE_ROWS, count)),
          all: figure(count),
        })}
      </span>
      <button
        type="button"
        class="button"
        title={t("panels.page-after")}
        disabled={page >= last}
        onClick={() => setPage(page + 1)}
      >
        <Icon of={ArrowRight} size={16} />
        <span class="hidden">{t("panels.page-after")}</span>
      </button>
    </div>
  );
}

interface DownloadProperties {
  listing: Listing;
  of: string | undefined;
  columns: readonly Column[];
  rows: readonly ListRow[];
}

function DownloadButton({ listing, of, columns, rows }: DownloadProperties) {
  const { hostname, view, zone } = useViewing();
  const save = () => {
    const { start, end } = spanUntilNow(view.period, zone);
    // The end is exclusive.
    const days = [start, new Date(end.valueOf() - 1)].map(
      (date) => date && dayOf(new TZDateMini(date, zone)),
    );
    const name = [hostname, listing.name, of && plain(of), ...days].filter(Boolean).join("-");
    const head = columns.map(({ fileLabel }) => fileLabel);
    const table = rows.map((row) => columns.map(({ inFile }) => inFile(row)));
    saveCsv(`${name}.csv`, writeCsv([head, ...table]));
  };
  return (
    <button type="button" class="button" disabled={rows.length === 0} onClick={save}>
      <Icon of={Download} size={16} /> {t("panels.csv")}
    </button>
  );
}

/** The part of a text that is valid in a file name. */
function plain(text: string): string {
  return text.replace(/[^\p{L}\p{N}.]+/gu, "-").slice(0, 40);
}
