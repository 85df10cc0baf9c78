// The page of a share link: the figures of one website for anyone with the link.

import { Route, Router } from "preact-iso";
import type { Shared } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { useAsk } from "../state/data.ts";
import { at } from "../state/paths.ts";
import { later } from "../ui/lazy.tsx";
import { Away, Trouble } from "../ui/trouble.tsx";
import { SitePage } from "../view/page.tsx";
import { Unlock } from "./unlock.tsx";

const FunnelPage = later(() =>
  import("../goals/funnel-page.tsx").then(({ FunnelPage }) => FunnelPage),
);

const RobotsPage = later(() => import("../robots/page.tsx").then(({ RobotsPage }) => RobotsPage));

export function SharedPage({ id }: { id: string }) {
  return (
    <>
      <Away />
      <Content id={id} />
    </>
  );
}

function Content({ id }: { id: string }) {
  const { data, error } = useAsk<Shared>(`/shared/${id}`);
  if (error?.status === 404) {
    return (
      <main class="page narrow">
        <h1>{t("share.gone")}</h1>
      </main>
    );
  }
  if (!data) {
    return (
      <main class="waiting" aria-busy={!error}>
        {error && <Trouble error={error} />}
      </main>
    );
  }
  if (!data.hostname) return <Unlock id={id} />;
  return (
    <Router>
      <Route
        path={at("/share/:share/funnels/:funnel")}
        component={FunnelPage}
        shared={data.hostname}
      />
      <Route path={at("/share/:share/robots")} component={RobotsPage} shared={data.hostname} />
      <Route default component={SitePage} shared={data.hostname} />
    </Router>
  );
}
