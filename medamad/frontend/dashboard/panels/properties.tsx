// The panel of custom properties: their names, and the values of the one that is chosen.

import { ArrowLeft } from "lucide";
import { useId, useState } from "preact/hooks";
import type { PropertyRow } from "../api/types.ts";
import { figure, shortFigure, t } from "../i18n/index.ts";
import { Icon } from "../ui/icon.tsx";
import { useStatistic, useViewing } from "../view/asking.ts";
import { isSame, toggled } from "../view/filters.ts";
import { Bars } from "./panel.tsx";

export function Properties() {
  const { view, show } = useViewing();
  const [name, setName] = useState<string>();
  const heading = useId();
  const { data, error, isStale } = useStatistic<PropertyRow[]>("properties", {
    limit: "9",
    ...(name !== undefined && { "prop_name[eq]": name }),
  });
  // Most websites send none: nothing is said about what is not there.
  if (error || !data || (data.length === 0 && name === undefined)) return null;
  const rows = data.map((row) => ({
    value: name === undefined ? row.name : (row.value ?? ""),
    label: (name === undefined ? row.name : row.value) || t("panels.none"),
    share: row.events_percentage,
    amount: shortFigure(row.events),
    exact: figure(row.events),
  }));
  const of = (value: string) => ({
    field: "prop_value" as const,
    operator: "eq" as const,
    values: [value],
  });
  return (
    <section class="card panel" aria-labelledby={heading}>
      <header class="panel-head">
        <h2 id={heading} dir="auto">
          {name === undefined ? t("panels.properties") : t("panels.values", { name })}
        </h2>
        {name !== undefined && (
          <button type="button" class="quiet" onClick={() => setName(undefined)}>
            <Icon of={ArrowLeft} size={16} /> {t("panels.all-properties")}
          </button>
        )}
      </header>
      <Bars
        rows={rows}
        isStale={isStale}
        isChosen={(value) =>
          name !== undefined && view.filters.some((filter) => isSame(filter, of(value)))
        }
        onChoose={(value) => {
          if (name === undefined) return setName(value);
          const named = toggled(
            view.filters.filter(({ field }) => field !== "prop_name"),
            "prop_name",
            name,
          );
          const filters = toggled(named, "prop_value", value);
          const isKept = filters.some((filter) => isSame(filter, of(value)));
          show({
            filters: isKept ? filters : filters.filter(({ field }) => field !== "prop_name"),
          });
        }}
      />
    </section>
  );
}
