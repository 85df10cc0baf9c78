// The application: session, routing, shell.

import { useEffect, useState } from "preact/hooks";
import { LocationProvider, Route, Router } from "preact-iso";
import { isAway } from "./api/client.ts";
import { t } from "./i18n/index.ts";
import { Shell } from "./shell.tsx";
import { refreshes } from "./state/data.ts";
import { at } from "./state/paths.ts";
import { recognise, user } from "./state/session.ts";
import { shareId } from "./state/share.ts";
import { later } from "./ui/lazy.tsx";
import { SitePage } from "./view/page.tsx";

const LoginPage = later(() => import("./login.tsx").then(({ LoginPage }) => LoginPage));
const WebsitesPage = later(() =>
  import("./websites/list.tsx").then(({ WebsitesPage }) => WebsitesPage),
);
const AddPage = later(() => import("./websites/add.tsx").then(({ AddPage }) => AddPage));
const SetupPage = later(() => import("./websites/setup.tsx").then(({ SetupPage }) => SetupPage));
const FunnelPage = later(() =>
  import("./goals/funnel-page.tsx").then(({ FunnelPage }) => FunnelPage),
);
const RobotsPage = later(() => import("./robots/page.tsx").then(({ RobotsPage }) => RobotsPage));
const SharedPage = later(() => import("./share/page.tsx").then(({ SharedPage }) => SharedPage));
const SettingsPage = later(() =>
  import("./settings/page.tsx").then(({ SettingsPage }) => SettingsPage),
);
const NoSuchPage = later(() =>
  import("./ui/no-such-page.tsx").then(({ NoSuchPage }) => NoSuchPage),
);

export function App({ recognised }: { recognised: Promise<boolean> }) {
  if (shareId) {
    return (
      <LocationProvider scope={at("/share")}>
        <SharedPage id={shareId} />
      </LocationProvider>
    );
  }
  return (
    <LocationProvider scope={at("/dashboard")}>
      <Pages recognised={recognised} />
    </LocationProvider>
  );
}

function Pages({ recognised }: { recognised: Promise<boolean> }) {
  const [isKnown, setKnown] = useState(false);
  useEffect(() => {
    recognised.finally(() => setKnown(true));
  }, [recognised]);
  const turn = refreshes.value;
  useEffect(() => {
    if (isKnown && user.peek() === undefined) recognise();
  }, [turn, isKnown]);

  if (user.value === undefined) return <Waiting isKnown={isKnown} />;
  if (user.value === null) return <LoginPage />;
  return (
    <Shell>
      <Router>
        <Route path={at("/dashboard")} component={WebsitesPage} />
        <Route path={at("/dashboard/add")} component={AddPage} />
        <Route path={at("/dashboard/websites/:hostname")} component={SitePage} />
        <Route path={at("/dashboard/websites/:hostname/setup")} component={SetupPage} />
        <Route path={at("/dashboard/websites/:hostname/funnels/:funnel")} component={FunnelPage} />
        <Route path={at("/dashboard/websites/:hostname/robots")} component={RobotsPage} />
        <Route path={at("/dashboard/settings/:section?")} component={SettingsPage} />
        <Route default component={NoSuchPage} />
      </Router>
    </Shell>
  );
}

function Waiting({ isKnown }: { isKnown: boolean }) {
  return (
    <main class="waiting" aria-busy="true">
      {isKnown && isAway.value && (
        <p role="alert">
          <strong>{t("away.title")}</strong>
        </p>
      )}
    </main>
  );
}
