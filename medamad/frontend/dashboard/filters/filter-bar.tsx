// The active filters in words, each of which can be edited, inverted and removed; and the button
// that adds one.

import { Ban, Filter as FilterIcon, X } from "lucide";
import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import { t, tn } from "../i18n/index.ts";
import { directionOf } from "../panels/words.ts";
import { shareId } from "../state/share.ts";
import { Filled } from "../ui/filled.tsx";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/lazy.tsx";
import { useShortcuts } from "../ui/shortcuts.ts";
import { excludes, type Filter, negated, placed } from "../view/filters.ts";
import { useViewing } from "../view/page-state.ts";
import { inWords, sentenceOf, valuesInWords } from "./words.ts";

const Exclusions = later(() =>
  import("../exclusions/of-filters.tsx").then(({ ExclusionsOfFilters }) => ExclusionsOfFilters),
);
const Editor = later(() => import("./editor.tsx").then(({ Editor }) => Editor));

interface AddProperties {
  /** What has the focus when the last filter is removed. */
  button: RefObject<HTMLButtonElement | null>;
}

/** The button of the toolbar that adds a filter. */
export function AddFilter({ button }: AddProperties) {
  const { view, show } = useViewing();
  const [isOpen, setOpen] = useState(false);
  const add = () => setOpen(true);
  useShortcuts([{ keys: "f", label: t("filters.add"), act: add }]);
  return (
    <>
      <button
        ref={button}
        type="button"
        class="button"
        aria-haspopup="dialog"
        aria-label={t("filters.add")}
        title={t("filters.add")}
        onClick={add}
      >
        <Icon of={FilterIcon} size={16} /> {t("filters.short")}
      </button>
      {isOpen && (
        <Editor
          filter={undefined}
          others={view.filters}
          apply={(filter) => show({ filters: [...view.filters, filter] })}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

export function FilterBar({ button }: AddProperties) {
  const { view, show } = useViewing();
  const { filters } = view;
  const [edited, setEdited] = useState<number>();
  const [leavesOut, setLeavesOut] = useState(false);

  const put = (place: number, filter?: Filter) => show({ filters: placed(filters, place, filter) });
  const remove = (place: number) => {
    // Chips move up with the focus; the last one passes it on.
    if (place === filters.length - 1) button.current?.focus();
    put(place);
  };
  return (
    <>
      {filters.length > 0 && (
        <section class="filters" aria-label={t("filters.title")}>
          <ul>
            {filters.map((filter, place) => (
              <Chip
                key={place}
                filter={filter}
                edit={() => setEdited(place)}
                negate={() => put(place, negated(filter))}
                remove={() => remove(place)}
              />
            ))}
          </ul>
          {filters.length > 1 && (
            <button
              type="button"
              class="quiet"
              onClick={() => {
                button.current?.focus();
                show({ filters: [] });
              }}
            >
              {t("filters.remove-all")}
            </button>
          )}
          {!shareId && (
            <button type="button" class="quiet" onClick={() => setLeavesOut(true)}>
              {t("filters.leave-out")}
            </button>
          )}
        </section>
      )}
      {leavesOut && <Exclusions onClose={() => setLeavesOut(false)} />}
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
    </>
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
  const inverse = excludes(filter.operator) ? "include" : "exclude";
  return (
    <li class="chip">
      <button
        type="button"
        class="chip-words"
        aria-haspopup="dialog"
        title={t("filters.edit-what", { filter: words })}
        disabled={filter.field === "goal"}
        onClick={edit}
      >
        <Filled
          text={sentenceOf(filter)}
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
      {negated(filter) && (
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
