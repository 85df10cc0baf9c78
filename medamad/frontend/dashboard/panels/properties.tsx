// The properties panel: their names, or the values of one.

import { useState } from "preact/hooks";
import { t } from "../i18n/index.ts";
import { useViewing } from "../view/page-state.ts";
import { Back, Frame } from "./frame.tsx";
import { LISTINGS, type ListRow } from "./lists.ts";
import { Rows } from "./rows.tsx";
import { wordOf } from "./words.ts";

export function PropertiesPanel() {
  const { view } = useViewing();
  const [chosen, setChosen] = useState<string>();
  // With a filter on names the API returns the values of every matching name.
  const named = view.filters.filter(({ field }) => field === "prop_name");
  const exact = named.find(({ operator }) => operator === "eq")?.values[0];
  const name = exact ?? chosen;
  const showsValues = name !== undefined || named.length > 0;
  const further = name === undefined ? {} : { "prop_name[eq]": name };
  const valueWord = (row: ListRow) => {
    const value = wordOf("prop_value", String(row.value));
    return name === undefined
      ? t("panels.property-value", { name: String(row.name), value })
      : value;
  };
  return (
    <Frame
      title={t("panels.properties")}
      class="panel-wide"
      listing={showsValues ? LISTINGS.values : LISTINGS.properties}
      further={further}
      {...(name !== undefined && { of: name })}
    >
      <div class="panel-body" tabIndex={-1}>
        {name !== undefined && exact === undefined && (
          <Back label={t("panels.all-properties")} onClick={() => setChosen(undefined)}>
            {name}
          </Back>
        )}
        {showsValues ? (
          <Rows
            key={`values ${name ?? ""}`}
            listing={LISTINGS.values}
            further={further}
            words={valueWord}
          />
        ) : (
          <Rows
            key="names"
            listing={LISTINGS.properties}
            choose={({ name }) => setChosen(String(name))}
            empty={
              <>
                <p>{t("panels.no-properties")}</p>
                <p>{t("panels.no-properties-text")}</p>
              </>
            }
          />
        )}
      </div>
    </Frame>
  );
}
