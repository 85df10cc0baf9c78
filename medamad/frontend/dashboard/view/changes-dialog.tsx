// What is behind the change of a figure: sentences, and the parts that changed.

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { statistic } from "../api/client.ts";
import type { Change, ChangedDimension, Changes, GoalFigures } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { Waiting } from "../panels/rows.tsx";
import { directionOf, fullWordOf, wordOf } from "../panels/words.ts";
import { useAsk } from "../state/data.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Trouble } from "../ui/trouble.tsx";
import { type Measure, writeView } from "./address.ts";
import { amountOf, FIELD_OF, said, sentences, signedOf, standingOut } from "./change-words.ts";
import { comparedWith } from "./comparison.ts";
import { measures } from "./measures.ts";
import { parametersOf, useStatistic, useViewing } from "./page-state.ts";
import { spanUntilNow, writeSpan } from "./periods.ts";
import { comparedLabel, daysLabel } from "./spans.ts";
import { keepsVisits } from "./visits.ts";
import "../style/changes.css" with { type: "css" };

const HEADINGS = {
  source: "filters.field.visit_referrer",
  entry_page: "filters.field.entry_page",
  country: "filters.field.country",
  device: "filters.field.device",
  campaign: "panels.tab.campaigns",
} as const satisfies Record<Exclude<ChangedDimension, "goal">, string>;

/** A figure of which the parts add up, with the goal that it is of. */
interface Summed {
  key: string;
  name: string;
  metric: string;
  goal?: string;
}

interface Properties {
  measure: Measure;
  onClose: () => void;
}

export function ChangesDialog({ measure, onClose }: Properties) {
  const { view, zone } = useViewing();
  const goals = useStatistic<GoalFigures[]>(keepsVisits.value ? "goals" : null).data ?? [];
  const figures = summed(measures(view), goals);
  const [chosen, choose] = useState<string>(measure);
  const summedFigure = figures.find(({ key }) => key === chosen) ?? figures[0];
  const isSummed = figures.some(({ key }) => key === measure);
  const earlier = comparedWith(view, zone);
  return (
    <Dialog title={said("title")} onClose={onClose} wide>
      {earlier && (
        <p class="soft">
          {daysLabel(spanUntilNow(view.period, zone), view.period, zone)}
          {" · "}
          {t("period.compared", { span: comparedLabel(earlier, view.period, zone) })}
        </p>
      )}
      {!isSummed && <p>{said("noSum", { measure: t(`measure.${measure}`) })}</p>}
      {figures.length > 1 && (
        <label class="field changes-figure">
          <span>{said("figure")}</span>
          <select value={summedFigure?.key} onChange={(event) => choose(event.currentTarget.value)}>
            {figures.map(({ key, name }) => (
              <option key={key} value={key}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {summedFigure && <Found figure={summedFigure} />}
    </Dialog>
  );
}

/** The measures of which the parts add up, and those of goals. */
function summed(shown: readonly Measure[], goals: readonly GoalFigures[]): Summed[] {
  const ofVisits = keepsVisits.value ? ["visits", "visitors", "pageviews"] : ["visitors"];
  return [
    ...shown
      .filter((measure) => ofVisits.includes(measure))
      .map((measure) => ({ key: measure, name: t(`measure.${measure}`), metric: measure })),
    ...goals.flatMap(({ id, name, revenue }) => [
      {
        key: `conversions ${id}`,
        name: said("conversions", { goal: name }),
        metric: "conversions",
        goal: id,
      },
      ...(revenue
        ? [
            {
              key: `revenue ${id}`,
              name: said("revenue", { goal: name }),
              metric: "revenue",
              goal: id,
            },
          ]
        : []),
    ]),
  ];
}

/** Request what changed in a figure, and show it. */
function Found({ figure }: { figure: Summed }) {
  const viewing = useViewing();
  const { hostname, view, zone } = viewing;
  const { data, error, isStale } = useAsk<Changes>(
    statistic(hostname, "changes"),
    () => {
      const query = parametersOf(viewing);
      query.set("metric", figure.metric);
      if (figure.goal) query.set("conversions", figure.goal);
      const earlier = comparedWith(view, zone);
      const bounds = earlier ? writeSpan(earlier, new URLSearchParams()) : [];
      for (const [name, moment] of bounds) query.set(`compare_${name}`, moment);
      return query;
    },
    `${writeView({ ...view, measure: undefined, interval: undefined })} ${zone} ${figure.key}`,
  );
  if (error?.status === 400 && error.message.startsWith("compare_")) {
    return <p>{said("overlap")}</p>;
  }
  if (!data) return error ? <Trouble error={error} /> : <Waiting />;
  const pieces = standingOut(data);
  return (
    <div class={isStale ? "changes stale" : "changes"} aria-busy={isStale}>
      <div class="changes-said" aria-live="polite">
        {sentences(data, figure.name).map((sentence) => (
          <p key={sentence}>
            <bdi>{sentence}</bdi>
          </p>
        ))}
      </div>
      {figure.metric === "pageviews" && <p class="soft">{said("ofViews")}</p>}
      {figure.metric === "conversions" && <p class="soft">{said("ofConversions")}</p>}
      <div class="changes-lists">
        {pieces.some(({ parts }) => parts.length > 1) && <Pairs changes={data} />}
        {data.dimensions.map(({ dimension }) =>
          dimension === "goal" ? null : (
            <Parts key={dimension} changes={data} dimension={dimension} />
          ),
        )}
      </div>
      <p class="soft">
        {said("legend")} {said("addUp")}
      </p>
    </div>
  );
}

/** The largest parts of a dimension, and all others together. */
function Parts({ changes, dimension }: { changes: Changes; dimension: keyof typeof FIELD_OF }) {
  const listed = changes.dimensions.find((one) => one.dimension === dimension);
  const field = FIELD_OF[dimension];
  return (
    <Table heading={t(HEADINGS[dimension])}>
      {listed?.parts.map((part) => (
        <Row
          key={part.name}
          change={part}
          currency={changes.currency}
          isAsBefore={part.by_chance === true}
        >
          <span class="changes-name" title={fullWordOf(field, part.name)}>
            <bdi dir={directionOf(field)}>{wordOf(field, part.name)}</bdi>
          </span>
        </Row>
      ))}
      {listed && listed.others.parts > 0 && (
        <Row change={listed.others} currency={changes.currency} areOthers>
          {said("others", { n: amountOf(listed.others.parts, undefined) })}
        </Row>
      )}
    </Table>
  );
}

function Pairs({ changes }: { changes: Changes }) {
  return (
    <Table heading={said("pairs")}>
      {changes.pairs.map((pair) => (
        <Row
          key={pair.parts.map(({ name }) => name).join(" ")}
          change={pair}
          currency={changes.currency}
        >
          {pair.parts.map(({ dimension, name }) => {
            if (dimension === "goal") return null;
            const field = FIELD_OF[dimension];
            return (
              <span key={dimension} class="changes-name" title={fullWordOf(field, name)}>
                <span class="soft">{t(HEADINGS[dimension])}</span>{" "}
                <bdi dir={directionOf(field)}>{wordOf(field, name)}</bdi>
              </span>
            );
          })}
        </Row>
      ))}
    </Table>
  );
}

function Table({ heading, children }: { heading: string; children: ComponentChildren }) {
  const id = useId();
  return (
    <table class="rows changes-rows" aria-labelledby={id}>
      <thead>
        <tr>
          <th scope="col" id={id}>
            {heading}
          </th>
          <th scope="col">{said("before")}</th>
          <th scope="col">{said("now")}</th>
          <th scope="col">{t("panels.change")}</th>
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

interface RowProperties {
  change: Change;
  currency: string | undefined;
  /** Whether chance explains the difference. */
  isAsBefore?: boolean;
  areOthers?: boolean;
  children: ComponentChildren;
}

function Row({ change, currency, isAsBefore = false, areOthers = false, children }: RowProperties) {
  const { before, now, difference } = change;
  return (
    <tr class={isAsBefore || areOthers ? "soft" : ""}>
      <th scope="row">{children}</th>
      <td>{amountOf(before, currency)}</td>
      <td>{amountOf(now, currency)}</td>
      <td>
        {isAsBefore && (
          <>
            <span aria-hidden="true">≈ </span>
            <span class="hidden">{said("rest")}</span>{" "}
          </>
        )}
        {signedOf(difference, currency)}
      </td>
    </tr>
  );
}
