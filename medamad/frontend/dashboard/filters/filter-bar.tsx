// The filters in force, in words, each to edit, to turn round and to take away.

import { Plus, Repeat2, X } from "lucide";
import { useState } from "preact/hooks";
import { t } from "../i18n/index.ts";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/later.tsx";
import { useShortcuts } from "../ui/shortcuts.ts";
import { useViewing } from "../view/asking.ts";
import { type Filter, opposite } from "../view/filters.ts";

const Editor = later(() => import("./editor.tsx").then(({ Editor }) => Editor));

export function FilterBar() {
  const { view, show } = useViewing();
  const { filters } = view;
  const [edited, setEdited] = useState<number>();
  useShortcuts([{ keys: "f", label: t("filters.add"), act: () => setEdited(filters.length) }]);
  const put = (place: number, filter?: Filter) => {
    show({ filters: filters.toSpliced(place, 1, ...(filter ? [filter] : [])) });
  };
  return (
    <section class="filters" aria-label={t("filters.title")}>
      {filters.map((filter, place) => (
        <span class="chip" key={`${filter.field} ${filter.operator} ${filter.values.join()}`}>
          <button type="button" title={t("filters.edit")} onClick={() => setEdited(place)}>
            {t(`field.${filter.field}`)} <em>{t(`operator.${filter.operator}`)}</em>{" "}
            <strong dir="auto">{valuesOf(filter)}</strong>
          </button>
          <button
            type="button"
            title={t("filters.negate")}
            onClick={() => put(place, { ...filter, operator: opposite(filter.operator) })}
          >
            <Icon of={Repeat2} size={14} />
            <span class="hidden">{t("filters.negate")}</span>
          </button>
          <button type="button" title={t("filters.remove")} onClick={() => put(place)}>
            <Icon of={X} size={14} />
            <span class="hidden">{t("filters.remove")}</span>
          </button>
        </span>
      ))}
      <button type="button" class="quiet" onClick={() => setEdited(filters.length)}>
        <Icon of={Plus} size={16} /> {t("filters.add")}
      </button>
      {filters.length > 1 && (
        <button type="button" class="quiet" onClick={() => show({ filters: [] })}>
          {t("filters.clear")}
        </button>
      )}
      {edited !== undefined && (
        <Editor
          filter={filters[edited]}
          onApply={(filter) => put(edited, filter)}
          onClose={() => setEdited(undefined)}
        />
      )}
    </section>
  );
}

function valuesOf({ values }: Filter): string {
  return values.map((value) => value || t("filters.empty")).join(", ");
}
