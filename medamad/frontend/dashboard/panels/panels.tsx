// The panels of a website's page: who came from where, to what, with what.

import { Panel } from "./panel.tsx";
import { Properties } from "./properties.tsx";
import { PANELS } from "./statistics.ts";

export function Panels() {
  return (
    <div class="panels">
      {PANELS.map((panel) => (
        <Panel key={panel.id} {...panel} />
      ))}
      <Properties />
    </div>
  );
}
