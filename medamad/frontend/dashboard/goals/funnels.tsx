// The funnels of a website: how many visits reached each step.

import type { Funnel, FunnelFigures } from "../api/types.ts";
import { figure, percent, shortFigure, t } from "../i18n/index.ts";
import { Waiting } from "../panels/rows.tsx";
import { useAsk } from "../state/data.ts";
import { Edit } from "../ui/edit.tsx";
import { Trouble } from "../ui/trouble.tsx";
import { writeView } from "../view/address.ts";
import { useStatistic, useViewing } from "../view/page-state.ts";
import { funnelPath, pathOf } from "./actions.tsx";
import "../style/funnels.css" with { type: "css" };

export function Funnels({ edit }: { edit: (id: string) => void }) {
  const { hostname } = useViewing();
  const { data, error } = useAsk<Funnel[]>(pathOf(hostname, "funnels"));
  if (!data) return error ? <Trouble error={error} /> : <Waiting count={3} />;
  if (data.length === 0) {
    return (
      <div class="rows-empty soft">
        <p>{t("goals.no-funnels")}</p>
        <p>{t("goals.no-funnels-text")}</p>
      </div>
    );
  }
  return (
    <>
      {data.map((funnel) => (
        <Steps key={funnel.id} funnel={funnel} edit={() => edit(funnel.id)} />
      ))}
    </>
  );
}

function Steps({ funnel, edit }: { funnel: Funnel; edit: () => void }) {
  const { hostname, view } = useViewing();
  const { data, error, isStale } = useStatistic<FunnelFigures>(`funnels/${funnel.id}`);
  const steps = data?.steps ?? [];
  return (
    <section class="funnel" aria-label={funnel.name}>
      <h3>
        <a href={funnelPath(hostname, funnel.id) + writeView(view)}>
          <bdi>{funnel.name}</bdi>
        </a>
        <Edit name={funnel.name} edit={edit} />
      </h3>
      {!data && (error ? <Trouble error={error} /> : <Waiting count={funnel.goals.length} />)}
      {data && (
        <table class={`rows goal-rows ${isStale ? "stale" : ""}`}>
          <thead>
            <tr>
              <th scope="col">{t("goals.step")}</th>
              <th scope="col">{t("panels.figure.visits")}</th>
              <th scope="col">{t("panels.share")}</th>
              <th scope="col">{t("goals.dropped")}</th>
            </tr>
          </thead>
          <tbody>
            {steps.map(({ goal, name, visits, visits_percentage: share }, place) => {
              const before = steps[place - 1]?.visits;
              return (
                <tr key={goal}>
                  <th scope="row">
                    <div class="row-name">
                      <span class="row-bar" style={{ width: `${share * 100}%` }} />
                      <span class="funnel-step" title={name}>
                        {place + 1}. <bdi>{name}</bdi>
                      </span>
                    </div>
                  </th>
                  <td title={figure(visits)}>{shortFigure(visits)}</td>
                  <td>{percent(share)}</td>
                  <td>
                    {!!before &&
                      t("goals.figure-share", {
                        n: shortFigure(before - visits),
                        share: percent(1 - visits / before),
                      })}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </section>
  );
}
