// A website's page: its figures for a period, zone and filters, all in its address.

import { useEffect, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { statistic } from "../api/client.ts";
import type { Live } from "../api/types.ts";
import { Panels } from "../panels/panels.tsx";
import { useAsk } from "../state/data.ts";
import { nameOf } from "../ui/hostnames.ts";
import { later } from "../ui/lazy.tsx";
import { Overview } from "./overview.tsx";
import { useAddressedView, ViewingContext } from "./page-state.ts";
import { PartialNote } from "./partial-note.tsx";
import { SiteHead } from "./site-head.tsx";
import { ViewHead } from "./view-head.tsx";

const NoWebsite = later(() => import("../ui/no-such-page.tsx").then(({ NoWebsite }) => NoWebsite));
const LiveDialog = later(() => import("./live-dialog.tsx").then(({ LiveDialog }) => LiveDialog));

/** How often what goes on now is requested while it is shown. */
const LIVE_MS = 10_000;

/** The page of the website in the address or of a share link. */
export function SitePage({ shared }: { shared?: string }) {
  const { params } = useRoute();
  const hostname = shared ?? params.hostname ?? "";
  const viewing = useAddressedView(hostname);
  const [showsLive, setShowsLive] = useState(false);
  // One request for both: the lists come with the number of open pages.
  const answer = useAsk<Live>(
    statistic(hostname, "live"),
    () => new URLSearchParams(showsLive ? { lists: "true" } : {}),
    "",
    showsLive ? LIVE_MS : 0,
  );
  const { error } = answer;
  const live = answer.isStale ? undefined : answer.data;
  const name = nameOf(hostname);
  useEffect(() => {
    document.title = `${name} · medamad`;
  }, [name]);
  if (error?.status === 404 || error?.status === 400) return <NoWebsite hostname={hostname} />;
  return (
    <ViewingContext.Provider value={viewing}>
      <main class="page" key={hostname}>
        <ViewHead>
          <SiteHead live={live} showLive={() => setShowsLive(true)} />
        </ViewHead>
        <PartialNote />
        <Overview />
        <Panels />
        {showsLive && <LiveDialog live={live} error={error} onClose={() => setShowsLive(false)} />}
      </main>
    </ViewingContext.Provider>
  );
}
