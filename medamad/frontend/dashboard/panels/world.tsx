// The map of the world: countries coloured by their visitors, or by visits. Choosing one filters by it.

import names from "names";
import { useMemo, useRef, useState } from "preact/hooks";
import map from "world-map";
import { percent, t, tn } from "../i18n/index.ts";
import { Trouble } from "../ui/trouble.tsx";
import { isChosen } from "../view/filters.ts";
import { useStatistic, useViewing } from "../view/page-state.ts";
import { countsVisitors } from "../view/visits.ts";
import { byLeading, LISTINGS, type ListRow } from "./lists.ts";
import { useChoosing } from "./row-filters.ts";
import { countryWord, wordOf } from "./words.ts";
import "../style/world.css" with { type: "css" };

const STEPS = 5;
const LISTING = LISTINGS.countries;

export function World() {
  const counted = countsVisitors.value ? "visitors" : "visits";
  const { data, error, isStale } = useStatistic<ListRow[]>("countries", {
    summary: "true",
    ...byLeading(LISTING),
  });
  const { view } = useViewing();
  const choose = useChoosing(LISTING);
  const [pointed, setPointed] = useState<{ code: string; x: number; y: number }>();
  const place = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => byCode(data ?? []), [data]);
  if (!data && error) return <Trouble error={error} />;
  const most = Math.max(...[...rows.values()].map((row) => Number(row[counted])), 1);
  const unknown = data?.find(({ country }) => country === "Unknown");
  const codeAt = (event: Event) => (event.target as Element).getAttribute("data-code") ?? "";
  const point = (event: PointerEvent) => {
    const code = codeAt(event);
    const bounds = place.current?.getBoundingClientRect();
    if (!code || !bounds) return setPointed(undefined);
    return setPointed({ code, x: event.clientX - bounds.x, y: event.clientY - bounds.y });
  };
  const press = (event: Event) => {
    const row = rows.get(codeAt(event));
    if (row) choose(row);
  };
  return (
    <div class={isStale ? "map stale" : "map"} ref={place}>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the list of countries is there for keys */}
      <svg
        viewBox={`0 0 ${map.width} ${map.height}`}
        role="img"
        aria-label={t("panels.map.label")}
        onPointerMove={point}
        onPointerLeave={() => setPointed(undefined)}
        onClick={press}
      >
        {map.countries.map(({ code, path, isDot }) => {
          const row = rows.get(code);
          const step = row ? Math.ceil(STEPS * Math.sqrt(Number(row[counted]) / most)) : 0;
          const isShown = row && isChosen(view.filters, "country", String(row.country));
          return (
            <path
              key={path}
              d={path}
              class={isDot ? "map-dot" : ""}
              data-code={code}
              data-step={step}
              {...(isShown && { "data-chosen": "" })}
            />
          );
        })}
      </svg>
      <Legend unknown={Number(unknown?.[counted] ?? 0)} counted={counted} />
      {pointed && (
        <Tip {...pointed} row={rows.get(pointed.code)} counted={counted} place={place.current} />
      )}
    </div>
  );
}

/** The rows of countries by their codes. */
function byCode(rows: readonly ListRow[]): Map<string, ListRow> {
  const found = new Map<string, ListRow>();
  for (const row of rows) {
    const code = names.countries[String(row.country)];
    if (code) found.set(code, row);
  }
  return found;
}

type Counted = "visitors" | "visits";

function Legend({ unknown, counted }: { unknown: number; counted: Counted }) {
  const words = counted === "visits" ? "panels.map.unknown-visits" : "panels.map.unknown";
  return (
    <p class="map-legend soft">
      <span>{unknown > 0 && tn(words, unknown)}</span>
      <span class="map-scale" aria-hidden="true">
        {t("panels.map.fewer")}
        {Array.from({ length: STEPS }, (_nothing, place) => (
          <i key={place} data-step={place + 1} />
        ))}
        {t("panels.map.more")}
      </span>
    </p>
  );
}

interface TipProperties {
  code: string;
  x: number;
  y: number;
  row: ListRow | undefined;
  counted: Counted;
  place: HTMLElement | null;
}

function Tip({ code, x, y, row, counted, place }: TipProperties) {
  const isRight = x > (place?.clientWidth ?? 0) / 2;
  return (
    <div
      class="tip map-tip"
      data-side={isRight ? "left" : "right"}
      style={{ "--left": `${x}px`, "--top": `${y}px` }}
    >
      <strong>{row ? wordOf("country", String(row.country)) : countryWord(code)}</strong>
      <div>
        {tn(`panels.map.${counted}`, Number(row?.[counted] ?? 0))}
        {row && ` · ${percent(Number(row[`${counted}_percentage`]))}`}
      </div>
    </div>
  );
}
