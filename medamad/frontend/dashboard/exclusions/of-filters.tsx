// Leaving out what the filters of the page match, in its period.

import { parametersOf, useViewing } from "../view/page-state.ts";
import { spanUntilNow } from "../view/periods.ts";
import { daysLabel } from "../view/spans.ts";
import { Exclusions } from "./dialog.tsx";

export function ExclusionsOfFilters({ onClose }: { onClose: () => void }) {
  const viewing = useViewing();
  const { hostname, view, zone } = viewing;
  const query = parametersOf(viewing);
  const [start, end] = [query.get("start"), query.get("end")];
  query.delete("start");
  query.delete("end");
  const span = daysLabel(spanUntilNow(view.period, zone), view.period, zone);
  return (
    <Exclusions
      hostname={hostname}
      proposed={{ filters: `${query}`, start, end, span }}
      onClose={onClose}
    />
  );
}
