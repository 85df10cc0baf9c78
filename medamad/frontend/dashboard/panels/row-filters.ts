// Choosing a row toggles its filter.

import { type Field, type Filter, isField, isSame, toggled } from "../view/filters.ts";
import { useViewing } from "../view/page-state.ts";
import type { Listing, ListRow } from "./lists.ts";
import { useVisitsKnown } from "./totals.ts";

export function useChoosing(listing: Listing): (row: ListRow) => void {
  const { view, show } = useViewing();
  const field = useVisitField(listing.field);
  return (row) => {
    const value = String(row[listing.column]);
    const filters =
      listing.field === "prop_value"
        ? toggledProperty(view.filters, String(row.name), value)
        : toggled(view.filters, field, value);
    show({ filters });
  };
}

/** Choosing a source or a campaign shows all that its visits did, where visits are known. */
function useVisitField(field: Field): Field {
  const isKnown = useVisitsKnown();
  const ofVisits = `visit_${field}`;
  return isKnown && isField(ofVisits) ? ofVisits : field;
}

/** A value alone says little, so its property's name is filtered too. */
function toggledProperty(filters: readonly Filter[], name: string, value: string): Filter[] {
  const wanted: Filter[] = [
    { field: "prop_name", operator: "eq", values: [name] },
    { field: "prop_value", operator: "eq", values: [value] },
  ];
  const others = filters.filter(
    ({ field, operator }) => !(field.startsWith("prop_") && operator === "eq"),
  );
  const isThere = wanted.every((filter) => filters.some((other) => isSame(filter, other)));
  return isThere ? others : [...others, ...wanted];
}
