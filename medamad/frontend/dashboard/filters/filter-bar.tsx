// The active filters in words; each can be edited, inverted and removed.

import { Ban, Filter as FilterIcon, X } from "lucide";
import { useRef, useState } from "preact/hooks";
import { t, tn } from "../i18n/index.ts";
import { directionOf } from "../panels/words.ts";
import { Filled } from "../ui/filled.tsx";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/lazy.tsx";
import { useShortcuts } from "../ui/shortcuts.ts";
import { excludes, type Filter, opposite, placed } from "../view/filters.ts";
import { useViewing } from "../view/page-state.ts";
import { inWords, valuesInWords } from "./words.ts";

const Editor = later(() => import("./editor.tsx").then(({ Editor }) => Editor));

export function FilterBar() {
  const { view, show } = useViewing();
  const { filters } = view;
  const [edited, setEdited] = useState<number>();
  const adding = useRef<HTMLButtonElement>(null);
  const add = () => setEdited(filters.length);
  useShortcuts([{ keys: "f", label: t("filters.add"), act: add }]);

  const put = (place: number, filter?: Filter) => show({ filters: placed(filters, place, filter) });
  const remove = (place: number) => {
    // Chips move up with the focus; the last one passes it on.
    if (place === filters.length - 1) adding.current?.focus();
    put(place);
  };
  return (
    <section class="filters" aria-label={t("filters.title")}>
      {filters.length > 0 && (
        <ul>
          {filters.map((filter, place) => (
            <Chip
              key={place}
              filter={filter}
              edit={() => setEdited(place)}
              negate={() => put(place, { ...filter, operator: opposite(filter.operator) })}
              remove={() => remove(place)}
            />
          ))}
        </ul>
      )}
      <button
        ref={adding}
        type="button"
        class="button"
        aria-haspopup="dialog"
        title={t("filters.add")}
        onClick={add}
      >
        <Icon of={FilterIcon} size={16} /> {t("filters.add")}
      </button>
      {filters.length > 1 && (
        <button
          type="button"
          class="quiet"
          onClick={() => {
            adding.current?.focus();
            show({ filters: [] });
          }}
        >
          {t("filters.remove-all")}
        </button>
      )}
      <span class="hidden" role="status">
        {tn("filters.count", filters.length)}
      </span>
      {edited !== undefined && (
        <Editor
          filter={filters[edited]}
          others={filters.filter((_filter, place) => place !== edited)}
          apply={(filter) => put(edited, filter)}
          onClose={() => setEdited(undefined)}
        />
      )}
    </section>
  );
}

interface ChipProperties {
  filter: Filter;
  edit: () => void;
  negate: () => void;
  remove: () => void;
}

function Chip({ filter, edit, negate, remove }: ChipProperties) {
  const words = inWords(filter);
  const value = valuesInWords(filter);
  // Whether a goal was reached is all that can be asked of it.
  const isFixed = filter.field === "goal";
  const inverse = excludes(filter.operator) ? "include" : "exclude";
  return (
    <li class="chip">
      <button
        type="button"
        class="chip-words"
        aria-haspopup="dialog"
        title={t("filters.edit-what", { filter: words })}
        disabled={isFixed}
        onClick={edit}
      >
        <Filled
          text={t(`filters.chip.${filter.operator}`)}
          values={{
            field: t(`filters.field.${filter.field}`),
            value: (
              <strong>
                <bdi dir={directionOf(filter.field)}>{value || "“”"}</bdi>
              </strong>
            ),
          }}
        />
      </button>
      {!isFixed && (
        <button type="button" title={t(`filters.${inverse}`)} onClick={negate}>
          <Icon of={Ban} size={14} />
          <span class="hidden">{t(`filters.${inverse}-what`, { filter: words })}</span>
        </button>
      )}
      <button type="button" title={t("filters.remove")} onClick={remove}>
        <Icon of={X} size={14} />
        <span class="hidden">{t("filters.remove-what", { filter: words })}</span>
      </button>
    </li>
  );
}
