// What is going on at a website: pages, referrers, countries and events of the last half hour.

import { useId } from "preact/hooks";
import type { ApiError } from "../api/client.ts";
import type { Live } from "../api/types.ts";
import { figure, type Key, t } from "../i18n/index.ts";
import { Mark } from "../panels/mark.tsx";
import { Waiting } from "../panels/rows.tsx";
import { directionOf, fullWordOf, wordOf } from "../panels/words.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Trouble } from "../ui/trouble.tsx";
import type { Field } from "./filters.ts";
import { OpenPages } from "./site-head.tsx";
import "../style/live.css" with { type: "css" };

const LISTS = [
  { name: "pages", heading: "panels.pages", column: "path", field: "path" },
  { name: "sources", heading: "panels.referrers", column: "referrer", field: "referrer" },
  { name: "countries", heading: "panels.list.countries", column: "country", field: "country" },
  { name: "events", heading: "live.events", column: "value", field: "prop_value" },
] as const satisfies { name: keyof Live; heading: Key; column: string; field: Field }[];

/** A row of any list; its value is under the list's `column`. */
type ListRow = Record<string, string | number | undefined>;

interface Properties {
  /** Undefined, or without lists, while they are loading. */
  live: Live | undefined;
  error: ApiError | undefined;
  onClose: () => void;
}

export function LiveDialog({ live, error, onClose }: Properties) {
  const areOfVisits = live?.sources?.some(({ visits }) => visits !== undefined);
  return (
    <Dialog title={t("live.title")} onClose={onClose} wide>
      <div>
        <p class={live ? "live" : "live unknown"}>
          <OpenPages live={live} />
        </p>
        <p class="soft">{t("view.live-title")}</p>
      </div>
      {live?.pages ? (
        <div class="live-lists">
          {LISTS.map((list) => (
            <List key={list.name} {...list} rows={(live[list.name] ?? []) as ListRow[]} />
          ))}
        </div>
      ) : error ? (
        <Trouble error={error} />
      ) : (
        <Waiting />
      )}
      <p class="soft">
        {t("live.note")} {areOfVisits && t("live.note-visits")}
      </p>
    </Dialog>
  );
}

type ListProperties = (typeof LISTS)[number] & { rows: readonly ListRow[] };

function List({ name, heading, column, field, rows }: ListProperties) {
  const id = useId();
  const counted = rows.filter((row) => countOf(row) > 0);
  const most = Math.max(...counted.map(countOf));
  const figures = name === "events" ? "events" : rows[0]?.visits === undefined ? "views" : "visits";
  const labelOf = (row: ListRow, write: typeof wordOf) => {
    const value = write(field, String(row[column]));
    return name === "events"
      ? t("panels.property-value", { name: String(row.name), value })
      : value;
  };
  return (
    <table class="rows" aria-labelledby={id}>
      <thead>
        <tr>
          <th scope="col" id={id}>
            {t(heading)}
          </th>
          <th scope="col">
            {/* The heading says that they are events, and an empty list what it lacks. */}
            <span class={name === "events" || counted.length === 0 ? "hidden" : ""}>
              {t(`panels.figure.${figures}`)}
            </span>
          </th>
        </tr>
      </thead>
      <tbody>
        {counted.length === 0 && (
          <tr>
            <td class="live-none soft" colSpan={2}>
              {t(`live.no-${figures}`)}
            </td>
          </tr>
        )}
        {counted.map((row) => (
          <tr key={`${row.name ?? ""} ${row[column]}`}>
            <th scope="row">
              <div class="row-name">
                <span class="row-bar" style={{ width: `${(countOf(row) / most) * 100}%` }} />
                <span class="live-name" title={labelOf(row, fullWordOf)}>
                  <Mark field={field} value={String(row[column])} />
                  <bdi dir={directionOf(field)}>{labelOf(row, wordOf)}</bdi>
                </span>
              </div>
            </th>
            <td>{figure(countOf(row))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function countOf({ visits, pageviews, events }: ListRow): number {
  return Number(visits ?? pageviews ?? events);
}
