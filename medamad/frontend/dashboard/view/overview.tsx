// The overview of a period: a tile for each measure, and a chart of the selected one.

import { Flag, Table, TrendingUp } from "lucide";
import { useMemo, useState } from "preact/hooks";
import type { Figures } from "../api/types.ts";
import { figure, type Key, t, tn } from "../i18n/index.ts";
import { shareId } from "../state/share.ts";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/lazy.tsx";
import { Menu } from "../ui/menu.tsx";
import { Trouble } from "../ui/trouble.tsx";
import { byPlace, useAnnotations } from "./annotations.ts";
import { pairsOf, partsOf } from "./buckets.ts";
import { Chart } from "./chart.tsx";
import { type Filter, isOfVisits } from "./filters.ts";
import { charted } from "./measures.ts";
import { useViewing } from "./page-state.ts";
import { rangeOf, spanUntilNow, wholeSpan } from "./periods.ts";
import { useSeries } from "./series.ts";
import { comparedLabel, daysLabel } from "./spans.ts";
import { Tiles } from "./tiles.tsx";
import { VisitorKinds } from "./visitors.tsx";
import { countsVisitors, keepsVisits } from "./visits.ts";

const AnnotationsDialog = later(() =>
  import("../annotations/dialog.tsx").then(({ AnnotationsDialog }) => AnnotationsDialog),
);
const ChartTable = later(() => import("./chart-table.tsx").then(({ ChartTable }) => ChartTable));
const NeverVisited = later(() =>
  import("./never-visited.tsx").then(({ NeverVisited }) => NeverVisited),
);

export function Overview() {
  const { view, show } = useViewing();
  const series = useSeries();
  const { period, zone, interval, intervals, summary, earlier, first, end } = series;
  const isEmptyBefore = series.before?.current.pageviews === 0;
  const before = isEmptyBefore ? undefined : series.before;
  const [showsTable, setShowsTable] = useState(false);
  // Only when figures change: a rolling period moves its buckets every minute.
  const [buckets, pairs] = useMemo(() => {
    const { start, end } = wholeSpan(period, zone);
    const parts =
      summary?.interval &&
      partsOf(summary.interval, interval, zone, { start: first ?? start, end });
    return [
      parts,
      parts &&
        before?.interval &&
        earlier &&
        pairsOf(parts, before.interval, interval, zone, earlier),
    ];
  }, [summary, before, interval, zone, period, first?.valueOf()]);

  const annotations = useAnnotations();
  const places = useMemo(
    () => byPlace(annotations, buckets ?? [], zone),
    [annotations, buckets, zone],
  );
  const [showsAnnotations, setShowsAnnotations] = useState(false);

  // While figures are loading, the lines have their place.
  const hasLines = earlier && !isEmptyBefore && !(before && buckets && !pairs);

  const zoom = (place: number) => zoomTo(place, place);
  const zoomTo = (first: number, last: number) => {
    const [start, end] = [buckets?.[first]?.start, buckets?.[last]?.end];
    if (!start || !end || (first === last && interval === "minute")) return;
    show({ period: rangeOf(start, end, interval, zone), interval: undefined });
  };

  return (
    <section
      class="card overview"
      aria-label={daysLabelOf(period, zone)}
      aria-busy={series.isLoading}
    >
      <Tiles
        current={summary?.current}
        before={before?.current}
        isCompared={!!earlier}
        isStale={series.isStale}
        hasFailed={!!series.error}
      />
      {summary && <VisitorKinds of={summary.current} className="tiles-note soft" />}
      {viewsNote(view.filters, summary?.current ?? UNKNOWN).map((note) => (
        <p key="views" class={`tiles-note soft ${summary && !series.isStale ? "" : "unknown"}`}>
          {note}
        </p>
      ))}
      {visitorsNotes(view.filters).map((key) => (
        <p key={key} class="tiles-note soft">
          {t(key)}
        </p>
      ))}
      <div class="chart-head">
        <p class="soft">
          {hasLines && <i class="line-key" />}
          {daysLabelOf(period, zone)}
          {earlier && " · "}
          {hasLines && <i class="line-key compared" />}
          {earlier &&
            t(isEmptyBefore ? "period.nothing-before" : "period.compared", {
              span: comparedLabel(earlier, period, zone),
            })}
        </p>
        <div class="row">
          {intervals.length > 1 && (
            <Menu
              title={t("interval.title")}
              label={t(`interval.${interval}`)}
              align="end"
              groups={[
                intervals.map((other) => ({
                  label: t(`interval.${other}`),
                  isChosen: other === interval,
                  choose: () => show({ interval: other }),
                })),
              ]}
            />
          )}
          {(!shareId || annotations.length > 0) && (
            <button
              type="button"
              class="button"
              aria-haspopup="dialog"
              title={t("annotations.title")}
              onClick={() => setShowsAnnotations(true)}
            >
              <Icon of={Flag} size={16} />
              <span class="hidden">{t("annotations.title")}</span>
            </button>
          )}
          <button
            type="button"
            class="button"
            aria-pressed={showsTable}
            title={t(showsTable ? "chart.chart" : "chart.table")}
            onClick={() => setShowsTable(!showsTable)}
          >
            <Icon of={showsTable ? TrendingUp : Table} size={16} />
            <span class="hidden">{t("chart.table")}</span>
          </button>
        </div>
      </div>
      {series.error && !summary ? (
        <Trouble error={series.error} />
      ) : (
        <div class={series.isStale ? "chart-body stale" : "chart-body"}>
          {!buckets && <span class="skeleton chart-skeleton" />}
          {buckets?.length === 0 && <p class="chart-nothing soft">{t("chart.empty")}</p>}
          {buckets && buckets.length > 0 && !showsTable && (
            <Chart
              buckets={buckets}
              before={pairs}
              annotations={places}
              measure={charted(view)}
              interval={interval}
              zone={zone}
              end={end}
              onZoom={zoomTo}
            />
          )}
          {summary?.current.pageviews === 0 && <NeverVisited />}
          {first && <p class="chart-note soft">{t("chart.first-days")}</p>}
          {before && buckets && buckets.length > 0 && !pairs && (
            <p class="chart-note soft">{t("chart.unpaired")}</p>
          )}
          {buckets && (
            <ChartTable
              buckets={buckets}
              before={pairs}
              annotations={places}
              interval={interval}
              zone={zone}
              isShown={showsTable}
              onZoom={zoom}
            />
          )}
        </div>
      )}
      {showsAnnotations && (
        <AnnotationsDialog
          annotations={annotations}
          days={daysLabelOf(period, zone)}
          onClose={() => setShowsAnnotations(false)}
        />
      )}
    </section>
  );
}

/** In the place of figures that are not there yet: a note is as long with others. */
const UNKNOWN = { pageviews: 1_000, visits: 1_000, visit_pageviews: 1_000 } as Figures;

/** Tell the views that the filters let through from all views of the visits they are in. */
function viewsNote(filters: readonly Filter[], figures: Figures): string[] {
  const { pageviews, visits, visit_pageviews: all } = figures;
  if (filters.length === 0 || visits === undefined || all === undefined) return [];
  // A view has its country from its visit.
  const [one, ...others] = filters.filter(
    ({ field }) => !isOfVisits(field) && !(field === "country" && keepsVisits.value),
  );
  if (!one) return [tn("measure.views-of-visits", all)];
  // Some are of visits that began before the period: these are not more.
  if (pageviews > all) return [];
  const isOfPage = one.field === "path" && one.operator === "eq" && others.length === 0;
  const key = isOfPage ? "measure.views-of-page" : "measure.views-matching";
  return [tn(key, pageviews, { all: figure(all) })];
}

/** What to say about which visitors count under filters. */
function visitorsNotes(filters: readonly Filter[]): Key[] {
  const ofPath = filters.filter(({ field }) => field === "path");
  const isOfPages = ofPath.length > 0 && !ofPath.some(({ operator }) => operator === "eq");
  const isOfEvents = filters.some(({ field }) => field.startsWith("prop_"));
  return [
    ...(isOfPages && countsVisitors.value ? (["measure.by-page"] as const) : []),
    ...(isOfEvents && countsVisitors.value
      ? ([ofPath.length > 0 ? "measure.by-event-of-page" : "measure.by-event"] as const)
      : []),
  ];
}

function daysLabelOf(period: Parameters<typeof daysLabel>[1], zone: string): string {
  return daysLabel(spanUntilNow(period, zone), period, zone);
}
