// The first rows of a list, each with a bar and a filter.

import { ExternalLink } from "lucide";
import type { ComponentChildren } from "preact";
import { duration, figure, percent, shortFigure, t } from "../i18n/index.ts";
import { Icon } from "../ui/icon.tsx";
import { Trouble } from "../ui/trouble.tsx";
import { useStatistic, useViewing } from "../view/page-state.ts";
import { spanBefore } from "../view/periods.ts";
import { Change } from "../view/tiles.tsx";
import { addressOfPage, addressOfReferrer } from "./links.ts";
import { columnLabel, isChosen, type Listing, type ListRow } from "./lists.ts";
import { useChoosing } from "./row-filters.ts";
import { directionOf, fullWordOf, wordOf } from "./words.ts";

export const SHOWN_ROWS = 9;
/** Rows of the previous period: what is among the first now was hardly below these. */
const COMPARED_ROWS = 200;

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
}

export function Rows({ listing, further, more, choose, empty, words }: Properties) {
  const { view, zone } = useViewing();
  const asked = { ...listing.further, ...further, summary: "true" };
  const { data, error, isStale } = useStatistic<ListRow[]>(listing.statistic, {
    ...asked,
    limit: String(SHOWN_ROWS),
  });
  const isCompared = view.compares && spanBefore(view.period, zone) !== undefined;
  const before = useStatistic<ListRow[]>(
    data && isCompared ? listing.statistic : null,
    { ...asked, limit: String(COMPARED_ROWS) },
    () => spanBefore(view.period, zone),
    "before",
  );
  const filter = useChoosing(listing);
  if (!data) return error ? <Trouble error={error} /> : <Waiting />;
  if (data.length === 0) {
    return <div class="rows-empty soft">{empty ?? <p>{t("panels.empty")}</p>}</div>;
  }
  const showsChange = isCompared && before.data?.length !== 0;
  const earlier = new Map(
    before.isStale ? [] : before.data?.map((row) => [keyOfRow(listing, row), row]),
  );
  const most = Math.max(...data.map((row) => Number(row[listing.share])));
  return (
    <table class={isStale ? "rows stale" : "rows"}>
      <thead>
        <tr>
          <th scope="col">{columnLabel(listing)}</th>
          <th scope="col">{t(`panels.figure.${listing.figure}`)}</th>
          <th scope="col">{t("panels.share")}</th>
          {showsChange && <th scope="col">{t("panels.change")}</th>}
        </tr>
      </thead>
      <tbody>
        {data.map((row) => {
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
                    style={{ width: `${most ? (Number(row[listing.share]) / most) * 100 : 0}%` }}
                  />
                  <button
                    type="button"
                    title={words ? word : fullWordOf(listing.field, value)}
                    {...(!choose && { "aria-pressed": isPressed })}
                    onClick={() => (choose ?? filter)(row)}
                  >
                    <bdi dir={directionOf(listing.field)}>{word}</bdi>
                  </button>
                  {more?.(row)}
                  <LinkOut listing={listing} value={value} />
                </div>
              </th>
              <td title={exact(listing, row)}>{short(listing, row)}</td>
              <td>{percent(Number(row[listing.share]))}</td>
              {showsChange && (
                <td>
                  <Change
                    measure={listing.figure === "duration" ? "duration" : "visitors"}
                    now={Number(row[listing.figure])}
                    before={Number(earlier.get(key)?.[listing.figure] ?? 0)}
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

function short({ figure: name }: Listing, row: ListRow): string {
  const value = Number(row[name]);
  return name === "duration" ? duration(value) : shortFigure(value);
}

function exact({ figure: name }: Listing, row: ListRow): string {
  const value = Number(row[name]);
  return name === "duration" ? duration(value) : figure(value);
}

/** A link to a page or a referrer, if its URL is known. */
export function LinkOut({ listing, value }: { listing: Listing; value: string }) {
  const { hostname } = useViewing();
  const address =
    listing.field === "path"
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
function Waiting() {
  return (
    <div class="rows-waiting" aria-busy="true">
      <span class="hidden">{t("common.loading")}</span>
      {Array.from({ length: SHOWN_ROWS }, (_nothing, place) => (
        <span key={place} class="skeleton" style={{ width: `${96 - place * 9}%` }} />
      ))}
    </div>
  );
}
