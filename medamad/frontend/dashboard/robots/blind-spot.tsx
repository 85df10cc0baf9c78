// What the script does not see: page loads in a followed log beside what was counted.

import { useState } from "preact/hooks";
import { statistic } from "../api/client.ts";
import type { BlindSpot } from "../api/types.ts";
import { figure, percent, shortFigure, t } from "../i18n/index.ts";
import { ofRobots } from "../i18n/robots.ts";
import { SHOWN_ROWS } from "../panels/rows.tsx";
import { Tabs } from "../panels/tabs.tsx";
import { wordOf } from "../panels/words.ts";
import { useAsk } from "../state/data.ts";
import { writeView } from "../view/address.ts";
import { useViewing } from "../view/page-state.ts";
import { spanUntilNow, writeSpan } from "../view/periods.ts";
import { dateLabel } from "../view/spans.ts";

const PARTS = ["browser", "path", "day"] as const;
type Part = (typeof PARTS)[number];
const WORDS: Record<Part, () => string> = {
  browser: () => t("panels.tab.browsers"),
  path: () => ofRobots("pages"),
  day: () => ofRobots("days"),
};

/** A sentence and a table, if a log is followed. */
export function BlindSpotPanel() {
  const { hostname, view, zone } = useViewing();
  const [by, setBy] = useState<Part>("browser");
  const period = writeView({ ...view, filters: [], measure: undefined, interval: undefined });
  const { data, isStale } = useAsk<BlindSpot>(
    statistic(hostname, "blind-spot"),
    () => {
      const query = writeSpan(spanUntilNow(view.period, zone), new URLSearchParams());
      query.set("by", by);
      return query;
    },
    [period, zone, by].join(" "),
  );
  if (!data?.first || !data.last) return null;
  const rows = (by === "day" ? data.rows.toReversed() : data.rows).slice(0, SHOWN_ROWS);
  return (
    <section class="card panel panel-wide" aria-labelledby="blind-spot">
      <header class="panel-head">
        <h2 id="blind-spot">{ofRobots("blindSpot")}</h2>
        <Tabs
          label={ofRobots("blindSpot")}
          panel="blind-spot-rows"
          names={PARTS}
          words={(part) => WORDS[part]()}
          chosen={by}
          choose={setBy}
        />
      </header>
      <p>
        {ofRobots("blindSpotText", {
          days: `${dateLabel(data.first)} – ${dateLabel(data.last)}`,
          loads: figure(data.loads),
          robots: figure(data.robots),
          counted: figure(data.counted),
          unseen: figure(data.unseen),
          share: percent(data.loads > 0 ? data.unseen / data.loads : 0),
        })}
      </p>
      <div
        class="panel-body"
        role="tabpanel"
        id="blind-spot-rows"
        tabIndex={-1}
        aria-labelledby={`blind-spot-rows-${by}`}
      >
        <table class={`rows robots-unseen ${isStale ? "stale" : ""}`}>
          <thead>
            <tr>
              <th scope="col">
                <span class="hidden">{ofRobots("blindSpot")}</span>
              </th>
              <th scope="col">{ofRobots("loads")}</th>
              <th scope="col">{ofRobots("counted")}</th>
              <th scope="col">{ofRobots("unseen")}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ browser, path, date, loads, counted, unseen }) => {
              const name = date
                ? dateLabel(date)
                : wordOf(path ? "path" : "browser", path ?? browser ?? "");
              return (
                <tr key={name}>
                  <th scope="row">
                    <div class="row-name">
                      <span class="row-bar" style={{ width: `${(unseen / loads) * 100}%` }} />
                      <span class="robots-day" title={name}>
                        <bdi dir={path ? "ltr" : "auto"}>{name}</bdi>
                      </span>
                    </div>
                  </th>
                  <td title={figure(loads)}>{shortFigure(loads)}</td>
                  <td title={figure(counted)}>{shortFigure(counted)}</td>
                  <td title={figure(unseen)}>
                    {shortFigure(unseen)} ({percent(unseen / loads)})
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
