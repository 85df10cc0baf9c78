// A website's page.

import { useRoute } from "preact-iso";
import { useAddressedView, ViewingContext } from "./asking.ts";

export function SitePage() {
  const { params } = useRoute();
  const viewing = useAddressedView(params.hostname ?? "");
  return (
    <ViewingContext.Provider value={viewing}>
      <main class="page">
        <h1>{viewing.hostname}</h1>
      </main>
    </ViewingContext.Provider>
  );
}
