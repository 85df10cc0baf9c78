// The first rows of a list, each with a bar and a filter.

import { ArrowUpDown, ExternalLink } from "lucide";
import type { ComponentChildren } from "preact";
import { duration, figure, percent, shortFigure, t } from "../i18n/index.ts";
import { lacksVisits } from "../state/partial.ts";
import { Icon } from "../ui/icon.tsx";
import { Trouble } from "../ui/trouble.tsx";
import type { Measure } from "../view/address.ts";
import { Change } from "../view/change.tsx";
import { comparedWith } from "../view/comparison.ts";
import { goalIn, isChosen, ofViews } from "../view/filters.ts";
import { useEarlier, useStatistic, useViewing } from "../view/page-state.ts";
import { VISITS } from "../view/visits.ts";
import { addressOfPage, addressOfReferrer } from "./links.ts";
import { columnLabel, isOfSources, type Listing, type ListRow } from "./lists.ts";
import { Mark } from "./mark.tsx";
import { useChoosing } from "./row-filters.ts";
import { useTab } from "./tabs.tsx";
import { orders, type RowOrder, shareOf, useTotal, useVisitsKnown } from "./totals.ts";
import { directionOf, fullWordOf, wordOf } from "./words.ts";

export const SHOWN_ROWS = 9;
/** Rows of the previous period: what is among the first now was hardly below these. */
const COMPARED_ROWS = 200;
/** The figures of rows that are counted by visits. */
const OF_VISITS = ["visits", "views"];
const BY_FIRST_VIEWS = ["visitors", "visits"];

interface Properties {
  listing: Listing;
  /** Additional query parameters. */
  further?: Record<string, string>;
  /** Further actions on a row. */
  more?: (row: ListRow) => ComponentChildren;
  /** The action of choosing a row, if not to filter. */
  choose?: ((row: ListRow) => void) | undefined;
  /** The text if there are no rows. */
  empty?: ComponentChildren;
  /** The label of a row, if not its value. */
  words?: (row: ListRow) => string;
  /** Whether a row cannot be chosen. */
  isFixed?: (row: ListRow) => boolean;
}

export function Rows(properties: Properties) {
  const { listing, further, more, choose, empty, words, isFixed } = properties;
  const { view, zone } = useViewing();
  const areVisits = useVisitsKnown() && isOfSources(listing);
  const known: readonly RowOrder[] = areVisits ? ["visits"] : orders();
  const [kept, setOrder] = useTab(`order.${listing.name}`, known);
  const order = listing.figure === "visitors" ? kept : undefined;
  const nextOrder = known[(known.indexOf(kept) + 1) % known.length] as RowOrder;
  const goal = order && goalIn(view.filters);
  const name = order ?? listing.figure;
  const parameters = {
    ...listing.further,
    ...further,
    summary: "true",
    ...(order === "pageviews" && { views: "true", order }),
    ...(order === "visits" && { [VISITS]: "true", order }),
    ...(goal && { conversions: goal }),
  };
  const { data, error, isStale, partial } = useStatistic<ListRow[]>(listing.statistic, {
    ...parameters,
    limit: String(SHOWN_ROWS),
  });
  // The columns of a chosen goal take the place of the change.
  const isCompared = !goal && comparedWith(view, zone) !== undefined;
  const before = useEarlier<ListRow[]>(data && isCompared ? listing.statistic : null, {
    ...parameters,
    limit: String(COMPARED_ROWS),
  });
  const filter = useChoosing(listing);
  const total = useTotal(order, isStale);
  if (!data) return error ? <Trouble error={error} /> : <Waiting />;
  if (data.length === 0) {
    return (
      <div class="rows-empty soft">
        {OF_VISITS.includes(listing.figure) && lacksVisits(partial) ? (
          <p>{t("panels.visits-unknown")}</p>
        ) : (
          (empty ?? <p>{t("panels.empty")}</p>)
        )}
      </div>
    );
  }
  const showsChange = isCompared && before.data?.length !== 0;
  const earlier = new Map(
    before.isStale ? [] : before.data?.map((row) => [keyOfRow(listing, row), row]),
  );
  // Rows of later views only say little by their visitors or visits, unless there are no others.
  const visited = data.filter((row) => !BY_FIRST_VIEWS.includes(name) || Number(row[name]) > 0);
  const rows = visited.length > 0 ? visited : data;
  const length = order ?? listing.share;
  const isTime = name === "total_duration";
  const most = Math.max(...rows.map((row) => Number(row[length])));
  return (
    <table class={`rows ${goal ? "converted" : ""} ${isStale ? "stale" : ""}`}>
      <thead>
        <tr>
          <th scope="col">{columnLabel(listing)}</th>
          {order && known.length > 1 ? (
            <th scope="col" aria-sort="descending">
              <button
                type="button"
                class="rows-order"
                title={[t(`panels.order.${order}`), t(`panels.order.to-${nextOrder}`)].join(" ")}
                onClick={() => setOrder(nextOrder)}
              >
                {t(`panels.column.${order}`)}
                <Icon of={ArrowUpDown} size={12} />
              </button>
            </th>
          ) : (
            <th scope="col">{t(`panels.figure.${areVisits ? "visits" : listing.figure}`)}</th>
          )}
          {goal ? (
            <>
              <th scope="col">{t("goals.conversions")}</th>
              <th scope="col" title={t("goals.rate-title")}>
                {t("goals.rate")}
              </th>
            </>
          ) : (
            <th scope="col">{t(isTime ? "panels.figure.duration" : "panels.share")}</th>
          )}
          {showsChange && <th scope="col">{t("panels.change")}</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const share = shareOf(row, listing, order, total);
          const value = String(row[listing.column]);
          const word = words?.(row) ?? wordOf(listing.field, value);
          const isPressed = isChosen(view.filters, listing.field, value);
          const key = keyOfRow(listing, row);
          return (
            <tr key={key}>
              <th scope="row">
                <div class="row-name">
                  <span
                    class="row-bar"
                    style={{ width: `${most > 0 ? (Number(row[length]) / most) * 100 : 0}%` }}
                  />
                  {isFixed?.(row) ? (
                    <span class="row-fixed">
                      <Mark field={listing.field} value={value} />
                      {word}
                    </span>
                  ) : (
                    <button
                      type="button"
                      title={words ? word : fullWordOf(listing.field, value)}
                      {...(!choose && { "aria-pressed": isPressed })}
                      onClick={() => (choose ?? filter)(row)}
                    >
                      <Mark field={listing.field} value={value} />
                      <bdi dir={directionOf(listing.field)}>{word}</bdi>
                    </button>
                  )}
                  {more?.(row)}
                  <LinkOut listing={listing} value={value} />
                </div>
              </th>
              <td title={written(name, row, figure)}>{written(name, row, shortFigure)}</td>
              {goal ? (
                <>
                  <td>{written("conversions", row, figure)}</td>
                  <td>{written("conversion_percentage", row, percent)}</td>
                </>
              ) : (
                <td>
                  {isTime
                    ? duration(Number(row.duration))
                    : share === undefined
                      ? "–"
                      : percent(share)}
                </td>
              )}
              {showsChange && (
                <td>
                  <Change
                    measure={measureOf(name)}
                    now={row[name] === undefined ? null : Number(row[name])}
                    before={Number(earlier.get(key)?.[name] ?? 0)}
                  />
                </td>
              )}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function keyOfRow({ column }: Listing, row: ListRow): string {
  return `${row.name ?? ""} ${row[column]}`;
}

/** A row's figure, or a dash while only the rows of another query are there. */
function written(name: string, row: ListRow, write: (value: number) => string): string {
  if (row[name] === undefined) return "–";
  const value = Number(row[name]);
  return name === "total_duration" ? duration(value) : write(value);
}

function measureOf(name: RowOrder | Listing["figure"]): Measure {
  if (name === "total_duration") return "duration";
  return name === "events" || name === "views" ? "pageviews" : name;
}

/** A link to a page or a referrer, if its URL is known. */
export function LinkOut({ listing, value }: { listing: Listing; value: string }) {
  const { hostname } = useViewing();
  const address =
    ofViews(listing.field) === "path"
      ? addressOfPage(hostname, value)
      : listing.field === "referrer"
        ? addressOfReferrer(value)
        : undefined;
  return address ? (
    <a
      class="row-more"
      href={address}
      target="_blank"
      rel="noopener noreferrer"
      title={t("panels.open")}
    >
      <Icon of={ExternalLink} size={14} />
      <span class="hidden">{t("panels.open-what", { what: value })}</span>
    </a>
  ) : null;
}

/** A placeholder for rows that are loading. */
export function Waiting({ count = SHOWN_ROWS }: { count?: number }) {
  return (
    <div class="rows-waiting" aria-busy="true">
      <span class="hidden">{t("common.loading")}</span>
      {Array.from({ length: count }, (_nothing, place) => (
        <span key={place} class="skeleton" style={{ width: `${96 - place * 9}%` }} />
      ))}
    </div>
  );
}
