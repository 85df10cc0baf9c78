// The page of a website's robots: who reads which pages, and what for. They are in no figure of
// people.

import { ArrowLeft, X } from "lucide";
import { useEffect, useId, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { statistic } from "../api/client.ts";
import type { Purpose, RobotRow } from "../api/types.ts";
import { figure, percent, shortFigure, t } from "../i18n/index.ts";
import { ofRobots, pagesRead } from "../i18n/robots.ts";
import { SHOWN_ROWS, Waiting } from "../panels/rows.tsx";
import { type Answer, useAsk } from "../state/data.ts";
import { sitePath } from "../state/share.ts";
import { nameOf } from "../ui/hostnames.ts";
import { Icon } from "../ui/icon.tsx";
import { NoWebsite } from "../ui/no-such-page.tsx";
import { Trouble } from "../ui/trouble.tsx";
import { writeView } from "../view/address.ts";
import { Change } from "../view/change.tsx";
import { Controls } from "../view/controls.tsx";
import { useAddressedView, useViewing, ViewingContext } from "../view/page-state.ts";
import { PartialNote } from "../view/partial-note.tsx";
import { spanUntilNow, writeSpan } from "../view/periods.ts";
import { dateLabel, daysLabel } from "../view/spans.ts";
import { BlindSpotPanel } from "./blind-spot.tsx";
import { comparedDays, type WholeDays } from "./compared.ts";
import { Days } from "./days.tsx";
import { robotsPath } from "./path.ts";
import "../style/robots.css" with { type: "css" };

/** All rows of a list that is shown whole, as many as the server returns. */
const ALL_ROWS = 5_000;
/** Rows of the previous period: what is among the first now was hardly below these. */
const COMPARED_ROWS = 500;

type Field = "purpose" | "name" | "path";
type By = Field | "date";
type Chosen = Partial<Record<Field, string>>;

const HEADINGS = { purpose: "purposes", name: "robots", path: "pages", date: "days" } as const;

/** The page of the robots of the website in the address or of a share link. */
export function RobotsPage({ shared }: { shared?: string }) {
  const { params } = useRoute();
  const hostname = shared ?? params.hostname ?? "";
  const viewing = useAddressedView(hostname, robotsPath(hostname));
  return (
    <ViewingContext.Provider value={viewing}>
      <Page key={hostname} />
    </ViewingContext.Provider>
  );
}

function Page() {
  const { hostname, view } = useViewing();
  const [chosen, setChosen] = useState<Chosen>({});
  const days = useRobots("date", chosen, ALL_ROWS);
  const site = nameOf(hostname);
  const title = ofRobots("title");
  useEffect(() => {
    document.title = `${title} · ${site} · medamad`;
  }, [title, site]);
  const { error } = days;
  if (error?.status === 404 || error?.status === 400) return <NoWebsite hostname={hostname} />;
  const choose = (field: Field, value: string) =>
    setChosen(({ [field]: before, ...others }) =>
      before === value ? others : { ...others, [field]: value },
    );
  const isNarrowed = Object.keys(chosen).length > 0;
  return (
    <main class="page robots-page">
      <div class="view-head">
        <div class="robots-head">
          <a class="quiet" href={sitePath(hostname) + writeView(view)}>
            <Icon of={ArrowLeft} size={16} /> <bdi>{site}</bdi>
          </a>
          <h1>{title}</h1>
        </div>
        <div class="toolbar">
          <Controls />
        </div>
      </div>
      <PartialNote />
      <Total days={days} />
      {isNarrowed && (
        <p class="robots-all">
          <button type="button" class="button" onClick={() => setChosen({})}>
            <Icon of={X} size={16} /> {ofRobots("all")}
          </button>
        </p>
      )}
      <BlindSpotPanel />
      {days.data && (days.data.length > 0 || isNarrowed) && (
        <div class="panels">
          {(["purpose", "name", "path", "date"] as const).map((by) => (
            <List key={by} by={by} chosen={chosen} choose={choose} />
          ))}
        </div>
      )}
    </main>
  );
}

/** Request the pages that robots read, in the page's period or in one of the compared spans. */
function useRobots(
  by: By,
  chosen: Chosen,
  limit: number,
  which?: keyof WholeDays,
): Answer<RobotRow[]> {
  const { hostname, view, zone } = useViewing();
  const span = () => (which ? comparedDays(view, zone)?.[which] : spanUntilNow(view.period, zone));
  const period = writeView({ ...view, filters: [], measure: undefined, interval: undefined });
  return useAsk<RobotRow[]>(
    span() ? statistic(hostname, "robots") : null,
    () => {
      const asked = span();
      const query = new URLSearchParams();
      if (asked) writeSpan(asked, query);
      query.set("by", by === "date" ? "day" : by);
      query.set("limit", String(limit));
      for (const [field, value] of Object.entries(chosen)) query.set(field, value);
      return query;
    },
    [period, zone, by, limit, which, JSON.stringify(chosen)].join(" "),
  );
}

/** How many pages were read, in words and by day. */
function Total({ days: { data, error, isStale } }: { days: Answer<RobotRow[]> }) {
  const { view, zone } = useViewing();
  const count = data?.reduce((sum, { requests }) => sum + requests, 0) ?? 0;
  const earlier = comparedDays(view, zone)?.before;
  return (
    <section class="card robots-total" aria-label={ofRobots("count")} aria-busy={isStale}>
      {data ? (
        <div class={isStale ? "stale" : ""}>
          <p class="robots-sum">{count > 0 ? pagesRead(count) : ofRobots("none")}</p>
          <p class="soft">
            {daysLabel(spanUntilNow(view.period, zone), view.period, zone)}
            {earlier &&
              ` · ${t("period.compared", { span: daysLabel(earlier, view.period, zone) })}`}
          </p>
          <p class="soft">{ofRobots(count > 0 ? "apart" : "noneText")}</p>
          <Days rows={data} />
        </div>
      ) : error ? (
        <Trouble error={error} />
      ) : (
        <Waiting count={3} />
      )}
    </section>
  );
}

interface Properties {
  by: By;
  chosen: Chosen;
  choose: (field: Field, value: string) => void;
}

/** The first rows of a list, or all; each but a day narrows the other lists. */
function List({ by, chosen, choose }: Properties) {
  const { view, zone } = useViewing();
  const heading = useId();
  const [showsAll, setShowsAll] = useState(false);
  // A list has what else could be chosen in it.
  const { [by as Field]: own, ...others } = chosen;
  const narrowed = by === "date" ? chosen : others;
  const shown = useRobots(by, narrowed, ALL_ROWS);
  const { data, error, isStale } = shown;
  const before = useRobots(by, narrowed, COMPARED_ROWS, "before");
  const passed = useRobots(by, narrowed, ALL_ROWS, "now");
  const compared = by === "date" ? undefined : comparedDays(view, zone);
  const title = ofRobots(HEADINGS[by]);
  const ordered = by === "date" ? data?.toReversed() : data;
  const rows = showsAll ? ordered : ordered?.slice(0, SHOWN_ROWS);
  const most = Math.max(1, ...(data ?? []).map(({ requests }) => requests));
  const requests = ({ isStale, data }: Answer<RobotRow[]>) =>
    new Map(isStale ? [] : data?.map((row) => [row[by], row.requests]));
  const earlier = requests(before);
  const now = requests(compared?.now ? passed : shown);
  return (
    <section class="card panel" aria-labelledby={heading}>
      <header class="panel-head">
        <h2 id={heading}>{title}</h2>
      </header>
      <div class="panel-body">
        {!rows && (error ? <Trouble error={error} /> : <Waiting />)}
        {rows && (
          <table class={`rows ${isStale ? "stale" : ""}`}>
            <thead>
              <tr>
                <th scope="col">
                  <span class="hidden">{title}</span>
                </th>
                <th scope="col">{ofRobots("count")}</th>
                <th scope="col">{t("panels.share")}</th>
                {compared && <th scope="col">{t("panels.change")}</th>}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => {
                const value = row[by] ?? "";
                return (
                  <tr key={value}>
                    <th scope="row">
                      <div class="row-name">
                        <span
                          class="row-bar"
                          style={{ width: `${(row.requests / most) * 100}%` }}
                        />
                        {by === "date" ? (
                          <span class="robots-day">{dateLabel(value)}</span>
                        ) : (
                          <button
                            type="button"
                            title={wordOf(by, row)}
                            aria-pressed={own === value}
                            onClick={() => choose(by, value)}
                          >
                            <bdi dir={by === "path" ? "ltr" : "auto"}>{wordOf(by, row)}</bdi>
                          </button>
                        )}
                      </div>
                    </th>
                    <td title={figure(row.requests)}>{shortFigure(row.requests)}</td>
                    <td>{percent(row.requests_percentage)}</td>
                    {compared && (
                      <td>
                        <Change
                          measure="pageviews"
                          now={now.get(value) ?? null}
                          before={earlier.get(value) ?? null}
                        />
                      </td>
                    )}
                  </tr>
                );
              })}
            </tbody>
          </table>
        )}
      </div>
      {!showsAll && (ordered?.length ?? 0) > SHOWN_ROWS && (
        <footer class="panel-foot">
          <button
            type="button"
            class="quiet"
            aria-label={ofRobots("more", { list: title })}
            onClick={() => setShowsAll(true)}
          >
            {ofRobots("showAll")}
          </button>
        </footer>
      )}
    </section>
  );
}

/** What a row is called. */
function wordOf(by: Field, { purpose, name = "", operator, path = "" }: RobotRow): string {
  if (by === "purpose") return ofRobots(`purpose.${purpose as Purpose}`);
  if (by === "path") return path === "(other)" ? t("panels.other") : path;
  if (name === "(other)") return t("panels.other");
  const word = name === "Unknown" ? t("panels.unknown") : name;
  return operator ? ofRobots("byOperator", { name: word, operator }) : word;
}
