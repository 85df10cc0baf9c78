// A funnel's page: how many visits reach each step and go on to the next.

import { ArrowLeft } from "lucide";
import { useEffect, useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso";
import type { FunnelFigures, Goal } from "../api/types.ts";
import { figure, percent, t } from "../i18n/index.ts";
import { Waiting } from "../panels/rows.tsx";
import { goalNames } from "../panels/words.ts";
import { useAsk } from "../state/data.ts";
import { sitePath } from "../state/share.ts";
import { Edit } from "../ui/edit.tsx";
import { nameOf } from "../ui/hostnames.ts";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/lazy.tsx";
import { NoFunnel } from "../ui/no-such-page.tsx";
import { Trouble } from "../ui/trouble.tsx";
import { writeView } from "../view/address.ts";
import { Change } from "../view/change.tsx";
import { comparedWith } from "../view/comparison.ts";
import {
  useAddressedView,
  useEarlier,
  useStatistic,
  useViewing,
  ViewingContext,
} from "../view/page-state.ts";
import { PartialNote } from "../view/partial-note.tsx";
import { spanUntilNow } from "../view/periods.ts";
import { comparedLabel, daysLabel } from "../view/spans.ts";
import { ViewHead } from "../view/view-head.tsx";
import { funnelPath, pathOf } from "./actions.tsx";
import "../style/funnels.css" with { type: "css" };

const FunnelDialog = later(() =>
  import("./funnel-dialog.tsx").then(({ FunnelDialog }) => FunnelDialog),
);

/** The page of the funnel in the address, for the website there or of a share link. */
export function FunnelPage({ shared }: { shared?: string }) {
  const { params } = useRoute();
  const hostname = shared ?? params.hostname ?? "";
  const funnel = params.funnel ?? "";
  const viewing = useAddressedView(hostname, funnelPath(hostname, funnel));
  return (
    <ViewingContext.Provider value={viewing}>
      <Page key={`${hostname} ${funnel}`} id={funnel} />
    </ViewingContext.Provider>
  );
}

function Page({ id }: { id: string }) {
  const { hostname, view } = useViewing();
  const { data, error, isStale } = useStatistic<FunnelFigures>(`funnels/${id}`);
  const { data: goals } = useAsk<Goal[]>(pathOf(hostname, "goals"));
  const [isEdited, setEdited] = useState(false);
  const { route } = useLocation();
  const back = sitePath(hostname) + writeView(view);
  const name = data?.name ?? "";
  const site = nameOf(hostname);
  useEffect(() => {
    document.title = [name, site, "medamad"].filter(Boolean).join(" · ");
  }, [name, site]);
  useEffect(() => {
    if (goals) goalNames.value = Object.fromEntries(goals.map(({ id, name }) => [id, name]));
  }, [goals]);
  if (error?.status === 404) return <NoFunnel hostname={hostname} />;
  return (
    <main class="page">
      <ViewHead>
        <div class="funnel-head">
          <a class="quiet" href={back}>
            <Icon of={ArrowLeft} size={16} /> <bdi>{site}</bdi>
          </a>
          <h1>
            <bdi>{name}</bdi>
          </h1>
          {data && <Edit name={name} edit={() => setEdited(true)} />}
        </div>
      </ViewHead>
      <PartialNote />
      <section class="card funnel-card" aria-label={t("goals.steps")} aria-busy={isStale}>
        {data ? (
          <Steps data={data} isStale={isStale} />
        ) : error ? (
          <Trouble error={error} />
        ) : (
          <Waiting count={3} />
        )}
      </section>
      {isEdited && (
        <FunnelDialog id={id} onClose={() => setEdited(false)} onDelete={() => route(back, true)} />
      )}
    </main>
  );
}

function Steps({ data: { id, steps }, isStale }: { data: FunnelFigures; isStale: boolean }) {
  const { view, zone } = useViewing();
  const earlier = comparedWith(view, zone);
  const before = useEarlier<FunnelFigures>(`funnels/${id}`);
  const visitsBefore = new Map(
    before.isStale ? [] : before.data?.steps.map(({ goal, visits }) => [goal, visits]),
  );
  const all = steps[0]?.visits ?? 0;
  const last = steps.at(-1);
  const days = daysLabel(spanUntilNow(view.period, zone), view.period, zone);
  return (
    <div class={isStale ? "stale" : ""}>
      <p class="funnel-total">
        {t("goals.reached-last", {
          n: figure(last?.visits ?? 0),
          all: figure(all),
          share: percent(last?.visits_percentage ?? 0),
        })}
      </p>
      <p class="soft">
        {days}
        {earlier &&
          ` · ${t("period.compared", { span: comparedLabel(earlier, view.period, zone) })}`}
      </p>
      <ol class="funnel-steps">
        {steps.map(({ goal, name, visits, visits_percentage: share }, place) => {
          const { visits: from } = steps[place - 1] ?? {};
          return (
            <li key={goal}>
              {!!from && (
                <p class="funnel-between">
                  <span>
                    {t("goals.went-on", { n: figure(visits), share: percent(visits / from) })}
                  </span>
                  <span class="soft">
                    {t("goals.dropped-off", {
                      n: figure(from - visits),
                      share: percent(1 - visits / from),
                    })}
                  </span>
                </p>
              )}
              <div class="funnel-line">
                <h2>
                  <bdi>{name}</bdi>
                </h2>
                <strong>{figure(visits)}</strong>
                <Change
                  measure="visits"
                  now={visits}
                  before={isStale ? null : (visitsBefore.get(goal) ?? null)}
                />
                <span class="soft">{percent(share)}</span>
              </div>
              <div class="funnel-bar" aria-hidden="true">
                <span style={{ width: `${share * 100}%` }} />
              </div>
            </li>
          );
        })}
      </ol>
    </div>
  );
}
