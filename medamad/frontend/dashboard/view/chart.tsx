// The chart of one measure over time, beside what it is compared with. uPlot draws; tooltips,
// keys and zooming are ours.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Annotation } from "../api/types.ts";
import { figure, locale, t } from "../i18n/index.ts";
import { isDark } from "../state/theme.ts";
import type { Interval, Measure } from "./address.ts";
import type { Part } from "./buckets.ts";
import { Change } from "./change.tsx";
import { known, measured } from "./measures.ts";
import { startsUntil } from "./periods.ts";
import { partLabel, tickLabel } from "./spans.ts";
import { VisitorKinds } from "./visitors.tsx";

interface Properties {
  buckets: Part[];
  /** The bucket that each is compared with. */
  before: (Part | undefined)[] | undefined;
  /** The annotations of each bucket, by its place. */
  annotations: Map<number, Annotation[]>;
  measure: Measure;
  interval: Interval;
  zone: string;
  /** The end of the period; the part after now stays empty. */
  end: Date;
  onZoom: (first: number, last: number) => void;
}

const SECONDS = { minute: 60, hour: 3_600, day: 86_400, week: 604_800, month: 2_628_000 };
/** Measures that are whole numbers. */
const COUNTS: readonly Measure[] = ["visitors", "visits", "pageviews"];
/** How many annotations a tip has at most. */
const MOST_NOTED = 5;
const TICK_WIDTH_PX = 84;
/** Natural steps between labels. */
const STEPS: Record<Interval, number[]> = {
  minute: [1, 5, 10, 15, 30, 60, 120, 180, 360],
  hour: [1, 2, 3, 4, 6, 12, 24, 48, 96, 168],
  day: [1, 2, 7, 14, 28, 56, 91, 182, 364],
  week: [1, 2, 4, 8, 13, 26, 52, 104],
  month: [1, 2, 3, 6, 12, 24],
};
const DURATION_STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400]
  .map((seconds) => seconds * 1000)
  .concat([28_800_000, 86_400_000]);

export function Chart(properties: Properties) {
  const { buckets, before, measure, interval, zone, annotations } = properties;
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(null);
  const [at, setAt] = useState<{ index: number; left: number }>();
  const latest = useRef(properties);
  latest.current = properties;
  const data = dataOf(properties);
  const isEmpty = buckets.every(({ pageviews }) => pageviews === 0);
  const look = [measure, interval, zone, isDark.value, locale.value, before !== undefined].join();

  useLayoutEffect(() => {
    const element = place.current as HTMLDivElement;
    const made = new uPlot(optionsOf(element, latest, setAt), data, element);
    chart.current = made;
    const observer = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: element.clientHeight });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = null;
      setAt(undefined);
    };
  }, [look]);

  // Only when figures change: the chart reports its cursor again with new data.
  useEffect(() => {
    chart.current?.setData(data);
  }, [buckets, before, measure]);

  useEffect(() => chart.current?.redraw(false), [annotations]);

  const move = (index: number) => {
    const { current } = chart;
    const bounded = Math.max(0, Math.min(index, buckets.length - 1));
    if (!current) return;
    const left = current.valToPos(data[0][bounded] as number, "x");
    current.setCursor({ left, top: 10 });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const index = at?.index ?? buckets.length - 1;
    if (event.key === "ArrowLeft") move(at ? index - 1 : index);
    else if (event.key === "ArrowRight") move(at ? index + 1 : index);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(buckets.length - 1);
    else if (event.key === "Enter" && at) latest.current.onZoom(index, index);
    else if (event.key === "Escape" && at) chart.current?.setCursor({ left: -10, top: -10 });
    else return;
    event.preventDefault();
  };
  const label = t("chart.label", {
    measure: t(`measure.${measure}`),
    interval: t(`interval.${interval}`),
  });
  return (
    // biome-ignore lint/a11y/useSemanticElements: a chart is not a group of form fields
    <div
      class="chart"
      role="group"
      aria-label={`${label}. ${t("chart.help")}`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keys above move along it
      tabIndex={0}
      onKeyDown={onKeyDown}
      // A mouse click takes no focus, so the page's shortcuts keep working.
      onMouseDown={(event) => event.preventDefault()}
      onBlur={() => chart.current?.setCursor({ left: -10, top: -10 })}
    >
      <div ref={place} class="chart-place" aria-hidden="true" />
      {isEmpty && <p class="chart-empty soft">{t("chart.empty")}</p>}
      {at && <Tip {...properties} index={at.index} left={at.left} />}
    </div>
  );
}

/** Isolated points, whose neighbours are unknown. */
function alone(values: ArrayLike<number | null | undefined>): number[] {
  return Array.from(values, (_value, place) => place).filter(
    (place) => values[place] != null && values[place - 1] == null && values[place + 1] == null,
  );
}

type Data = [number[], ...(number | null)[][]];

/** Starts in Unix seconds; what they are compared with; past buckets; the current bucket. */
function dataOf({ buckets, before, measure, end }: Properties): Data {
  const starts = buckets.map(({ date }) => Date.parse(date) / 1000);
  const values = buckets.map((bucket) => known(measure, bucket));
  const last = values.length - 1;
  const isUnderWay = end.valueOf() > Date.now() && last > 0;
  const past = values.map((value, place) => (isUnderWay && place === last ? null : value));
  const open = values.map((value, place) => (isUnderWay && place >= last - 1 ? value : null));
  const earlier = starts.map((_start, place) => {
    const part = before?.[place];
    return part ? known(measure, part) : null;
  });
  return [starts, earlier, past, open];
}

function optionsOf(
  element: HTMLElement,
  latest: { current: Properties },
  setAt: (at: { index: number; left: number } | undefined) => void,
): uPlot.Options {
  const { measure, interval, zone } = latest.current;
  const accent = colour(element, "--accent");
  const soft = colour(element, "--soft");
  const line = colour(element, "--line");
  const earlier = colour(element, "--compared");
  const font = `12px ${getComputedStyle(element).fontFamily}`;
  const points: uPlot.Series.Points = {
    show: latest.current.buckets.length < 3,
    size: 7,
    filter: (chart, series, isShown) => (isShown ? null : alone(chart.data[series] ?? [])),
  };
  return {
    width: element.clientWidth,
    height: element.clientHeight,
    // On the right, half of the last label extends beyond the chart.
    padding: [12, 28, 0, 0],
    legend: { show: false },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone),
    scales: {
      x: {
        time: true,
        range: (_chart, least, most) => {
          const { end } = latest.current;
          const last = end.valueOf() / 1000 - SECONDS[interval];
          return least === most
            ? [least - SECONDS[interval], most + SECONDS[interval]]
            : [least, Math.max(most, last)];
        },
      },
      y: { range: (_chart, _least, most) => [0, topOf(measure, most)] },
    },
    axes: [
      {
        stroke: soft,
        font,
        grid: { show: false },
        ticks: { stroke: line, size: 5 },
        size: 32,
        splits: (chart) => splitsOf(chart, latest.current),
        values: (_chart, splits) => ticks(splits, latest.current),
      },
      {
        stroke: soft,
        font,
        size: 58,
        grid: { stroke: line, width: 1 },
        ticks: { show: false },
        ...(measure.endsWith("duration") && { incrs: DURATION_STEPS_MS }),
        ...(COUNTS.includes(measure) && {
          incrs: [1, 2, 5]
            .flatMap((digit) => [0, 1, 2, 3, 4, 5, 6, 7, 8].map((power) => digit * 10 ** power))
            .sort((one, other) => one - other),
        }),
        values: (_chart, splits) => splits.map((value) => measured(measure, value)),
      },
    ],
    series: [
      {},
      { stroke: earlier, width: 2, dash: [4, 4], points },
      { stroke: accent, width: 2, fill: fade(accent), points },
      { stroke: accent, width: 2, dash: [5, 5], fill: fade(accent), points },
    ],
    cursor: {
      y: false,
      move: (chart, left, top) => [onPoint(chart, left), top],
      points: { size: 8, fill: (_chart, place) => (place === 1 ? earlier : accent) },
      // On a point, a click looks like a drag to uPlot; `zoomByClick` tells them apart.
      drag: { x: true, y: false, setScale: false, dist: 8, click: () => {} },
      bind: { dblclick: () => null },
    },
    hooks: {
      setCursor: [
        (chart) => {
          const { idx, left } = chart.cursor;
          const isOver = typeof idx === "number" && left !== undefined && left >= 0;
          const isThere = isOver && idx < latest.current.buckets.length;
          setAt(
            isThere
              ? {
                  index: idx,
                  left: chart.valToPos(chart.data[0][idx] as number, "x") + chart.over.offsetLeft,
                }
              : undefined,
          );
        },
      ],
      setSelect: [
        (chart) => {
          const { left, width } = chart.select;
          if (width < 8) return;
          const first = chart.posToIdx(left);
          const last = chart.posToIdx(left + width);
          chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          latest.current.onZoom(first, last);
        },
      ],
      ready: [(chart) => zoomByClick(chart, latest)],
      // Below the lines.
      drawAxes: [(chart) => mark(chart, latest.current, soft)],
    },
  };
}

/** Mark the buckets that have annotations with a line, and a pennant above it. */
function mark(chart: uPlot, { annotations }: Properties, colour: string): void {
  const { ctx, bbox, data } = chart;
  const { pxRatio: px } = uPlot;
  ctx.fillStyle = colour;
  for (const place of annotations.keys()) {
    const x = Math.round(chart.valToPos(data[0][place] as number, "x", true));
    ctx.fillRect(x, bbox.top - 10 * px, px, bbox.height + 10 * px);
    ctx.fillRect(x, bbox.top - 10 * px, 9 * px, 6 * px);
  }
}

/** The place of the nearest point. */
function onPoint(chart: uPlot, left: number): number {
  const start = chart.data[0][left < 0 ? -1 : chart.posToIdx(left)];
  return start === undefined ? left : chart.valToPos(start, "x");
}

/** A click zooms in. On touch, the first tap selects and the second zooms in. */
function zoomByClick(chart: uPlot, latest: { current: Properties }): void {
  let pressed = 0;
  let tapped: number | null | undefined;
  chart.over.addEventListener("pointerdown", (event) => {
    pressed = event.clientX;
  });
  chart.over.addEventListener("click", (event) => {
    const { idx } = chart.cursor;
    const isTouch = event instanceof PointerEvent && event.pointerType !== "mouse";
    const isAgain = tapped === idx;
    tapped = idx;
    if (Math.abs(event.clientX - pressed) > 4 || typeof idx !== "number") return;
    if (idx < latest.current.buckets.length && (!isTouch || isAgain))
      latest.current.onZoom(idx, idx);
  });
}

function topOf(measure: Measure, most: number | null): number {
  if (measure.endsWith("_percentage")) return Math.min(Math.max((most ?? 0) * 1.1, 0.1), 1);
  return Math.max((most ?? 0) * 1.08, measure.endsWith("duration") ? 5_000 : 4);
}

/** The starts that get a label, far enough apart for each to fit, also after now. */
function splitsOf(chart: uPlot, { buckets, interval, zone, end }: Properties): number[] {
  const starts = startsUntil(buckets, interval, zone, end);
  const [first = 0, second = 0] = starts.map((start) => start.valueOf() / 1000);
  const width = Math.abs(chart.valToPos(second, "x") - chart.valToPos(first, "x"));
  const least = starts.length > 1 ? TICK_WIDTH_PX / Math.max(width, 0.01) : 1;
  const step = STEPS[interval].find((step) => step >= least) ?? Math.ceil(least);
  const shown = starts.filter((start, place) => (countOf(start, interval) ?? place) % step === 0);
  return shown.map((start) => start.valueOf() / 1000);
}

/** Steps count hours and minutes from midnight, everything else from the first start. */
function countOf(start: Date, interval: Interval): number | undefined {
  if (interval === "hour") return dayNumber(start) * 24 + start.getHours();
  if (interval === "minute") return start.getHours() * 60 + start.getMinutes();
  return undefined;
}

function dayNumber(date: Date): number {
  return Math.round(Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / 86_400_000);
}

function ticks(splits: number[], { buckets, interval, zone }: Properties): string[] {
  const isFine = interval === "minute" || interval === "hour";
  const turn = new Intl.DateTimeFormat("en", {
    timeZone: zone,
    year: "numeric",
    ...(isFine && { month: "numeric", day: "numeric" }),
  });
  let before = "";
  return splits.map((split, place) => {
    const begun = new Date(split * 1000);
    const [first] = buckets;
    // The period may cut off the start of its first bucket.
    const date = first && first.start > begun ? first.start : begun;
    const now = turn.format(date);
    const isTurn = now !== before && (place > 0 || isFine);
    before = now;
    return tickLabel(date, interval, zone, isTurn);
  });
}

/** A colour of the stylesheet for the canvas. */
function colour(element: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function fade(accent: string): string {
  return accent.replace("rgb(", "rgba(").replace(")", ", 0.1)");
}

function Tip({
  buckets,
  before,
  measure,
  interval,
  zone,
  annotations,
  index,
  left,
}: Properties & { index: number; left: number }) {
  const bucket = buckets[index];
  if (!bucket) return null;
  const earlier = before?.[index];
  const noted = annotations.get(index) ?? [];
  return (
    <div
      class="tip"
      role="status"
      style={{ "--left": `${left}px` }}
      data-side={index > buckets.length / 2 ? "left" : "right"}
    >
      {earlier && <i class="line-key" />}
      <strong>{measured(measure, known(measure, bucket), true)}</strong> {t(`measure.${measure}`)}
      <div>{partLabel(bucket, interval, zone)}</div>
      {measure === "visitors" && <VisitorKinds of={bucket} className="tip-kinds" />}
      {noted.slice(0, MOST_NOTED).map(({ id, text }) => (
        <p key={id} class="tip-note">
          {text}
        </p>
      ))}
      {noted.length > MOST_NOTED && `+${figure(noted.length - MOST_NOTED)}`}
      {earlier && (
        <div class="tip-before">
          <i class="line-key compared" />
          <strong>{measured(measure, known(measure, earlier), true)}</strong>{" "}
          <Change measure={measure} now={known(measure, bucket)} before={known(measure, earlier)} />
          <div>{partLabel(earlier, interval, zone)}</div>
        </div>
      )}
    </div>
  );
}
