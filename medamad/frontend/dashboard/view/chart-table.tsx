// The chart as a table: always available to screen readers, shown on request.

import type { Annotation } from "../api/types.ts";
import { moment, t } from "../i18n/index.ts";
import type { Interval, Measure } from "./address.ts";
import { isOfDay } from "./annotations.ts";
import type { Part } from "./buckets.ts";
import { known, measured, measures } from "./measures.ts";
import { Noted } from "./noted.tsx";
import { useViewing } from "./page-state.ts";
import { annotationLabel, partLabel } from "./spans.ts";
import { KINDS } from "./visitors.tsx";

interface Properties {
  buckets: Part[];
  before: (Part | undefined)[] | undefined;
  /** The annotations of each bucket, by its place. */
  annotations: Map<number, Annotation[]>;
  interval: Interval;
  zone: string;
  isShown: boolean;
  onZoom: (place: number) => void;
}

export function ChartTable({
  buckets,
  before,
  annotations,
  interval,
  zone,
  isShown,
  onZoom,
}: Properties) {
  const { view } = useViewing();
  const shown = measures(view);
  const [first = "visitors"] = shown;
  const kinds = KINDS.filter((kind) => buckets.some((bucket) => bucket[kind] !== undefined));
  return (
    <section
      class={isShown ? "chart-table" : "hidden"}
      {...(isShown && { tabIndex: 0 })}
      aria-label={t(`interval.${interval}`)}
    >
      <table>
        <thead>
          <tr>
            <th scope="col">{t("chart.time")}</th>
            {annotations.size > 0 && (
              <th scope="col" class="notes">
                {t("annotations.title")}
              </th>
            )}
            {shown.map((measure) => (
              <th scope="col" key={measure}>
                {t(`measure.${measure}`)}
              </th>
            ))}
            {kinds.map((kind) => (
              <th scope="col" key={kind}>
                {t(`measure.${kind}`)}
              </th>
            ))}
            {before && (
              <>
                <th scope="col">{t("chart.before")}</th>
                <th scope="col">{`${t(`measure.${first}`)}, ${t("chart.before")}`}</th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {buckets.map((bucket, place) => (
            <tr key={bucket.date}>
              <th scope="row">
                {isShown && interval !== "minute" ? (
                  <button
                    type="button"
                    class="link"
                    title={t("chart.zoom")}
                    onClick={() => onZoom(place)}
                  >
                    {partLabel(bucket, interval, zone)}
                  </button>
                ) : (
                  partLabel(bucket, interval, zone)
                )}
              </th>
              {annotations.size > 0 && (
                <td class="notes">
                  {annotations.get(place)?.map((one) => (
                    <div key={one.id}>
                      <Noted of={one} when={whenIn(one, interval, zone)} />
                    </div>
                  ))}
                </td>
              )}
              {shown.map((measure) => (
                <td key={measure}>{measured(measure, known(measure, bucket), true)}</td>
              ))}
              {kinds.map((kind) => (
                <td key={kind}>{measured("visitors", bucket[kind] ?? null, true)}</td>
              ))}
              {before && (
                <Before first={first} part={before[place]} interval={interval} zone={zone} />
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** When an annotation is within its interval. */
function whenIn(one: Annotation, interval: Interval, zone: string): string {
  if (interval === "week" || interval === "month") return annotationLabel(one, zone);
  if (isOfDay(one)) return "";
  return moment(new Date(one.time), { timeStyle: "short" }, zone);
}

interface BeforeProperties {
  first: Measure;
  part: Part | undefined;
  interval: Interval;
  zone: string;
}

function Before({ first, part, interval, zone }: BeforeProperties) {
  return (
    <>
      <td>{part && partLabel(part, interval, zone)}</td>
      <td>{part && measured(first, known(first, part), true)}</td>
    </>
  );
}
