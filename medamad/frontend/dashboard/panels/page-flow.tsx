// The pages that came before and after the chosen one, in the same visit.

import { useId } from "preact/hooks";
import { t } from "../i18n/index.ts";
import { useViewing } from "../view/page-state.ts";
import { LISTINGS } from "./lists.ts";
import { Rows } from "./rows.tsx";
import "../style/page-flow.css" with { type: "css" };

const STEPS = ["previous", "next"] as const;

export function PageFlow({ path }: { path: string }) {
  const heading = useId();
  return (
    <section class="card panel page-flow" aria-labelledby={heading}>
      <header class="panel-head">
        <h2 id={heading}>
          {t("panels.flow")} <bdi dir="ltr">{path}</bdi>
        </h2>
      </header>
      <div class="page-flow-steps">
        {STEPS.map((name) => (
          <Step key={name} name={name} path={path} />
        ))}
      </div>
    </section>
  );
}

function Step({ name, path }: { name: (typeof STEPS)[number]; path: string }) {
  const { view, show } = useViewing();
  const heading = useId();
  const end = t(`panels.flow.${name === "previous" ? "begin" : "end"}`);
  return (
    <section aria-labelledby={heading}>
      <h3 id={heading}>{t(`panels.flow.${name}`)}</h3>
      <Rows
        listing={LISTINGS[name]}
        further={{ of: path }}
        words={(row) => String(row.path) || end}
        isFixed={(row) => row.path === ""}
        choose={(row) =>
          show({
            filters: view.filters.map((filter) =>
              filter.field === "path" && filter.operator === "eq"
                ? { ...filter, values: [String(row.path)] }
                : filter,
            ),
          })
        }
      />
    </section>
  );
}
