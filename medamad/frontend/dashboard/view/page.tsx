// A website's page: its figures for a period, zone and filters, all in its address.

import { useEffect } from "preact/hooks";
import { useRoute } from "preact-iso";
import { statistic } from "../api/client.ts";
import type { Live } from "../api/types.ts";
import { FilterBar } from "../filters/filter-bar.tsx";
import { Panels } from "../panels/panels.tsx";
import { useAsk } from "../state/data.ts";
import { nameOf } from "../ui/hostnames.ts";
import { NoWebsite } from "../ui/no-such-page.tsx";
import { Controls } from "./controls.tsx";
import { Overview } from "./overview.tsx";
import { useAddressedView, ViewingContext } from "./page-state.ts";
import { PartialNote } from "./partial-note.tsx";
import { SiteHead } from "./site-head.tsx";

/** The page of the website in the address or of a share link. */
export function SitePage({ shared }: { shared?: string }) {
  const { params } = useRoute();
  const hostname = shared ?? params.hostname ?? "";
  const viewing = useAddressedView(hostname);
  const { data: live, error, isStale } = useAsk<Live>(statistic(hostname, "live"));
  const name = nameOf(hostname);
  useEffect(() => {
    document.title = `${name} · medamad`;
  }, [name]);
  if (error?.status === 404 || error?.status === 400) return <NoWebsite hostname={hostname} />;
  return (
    <ViewingContext.Provider value={viewing}>
      <main class="page" key={hostname}>
        <div class="view-head">
          <SiteHead live={isStale ? undefined : live} />
          <Controls />
        </div>
        <FilterBar />
        <PartialNote />
        <Overview />
        <Panels />
      </main>
    </ViewingContext.Provider>
  );
}
