// Download the data of a website.

import { addDays } from "date-fns";
import { useEffect, useId, useState } from "preact/hooks";
import { ApiError, address, readPartial } from "../api/client.ts";
import type { ExportFormat } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { daysIn } from "../state/partial.ts";
import { useUsage } from "../state/usage.ts";
import { DayField } from "../ui/day-field.tsx";
import { useSettled } from "../ui/debounced.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Filled } from "../ui/filled.tsx";
import { nameOf } from "../ui/hostnames.ts";
import { type NamedPeriod, type Range, readZone } from "../view/address.ts";
import { daysBetween, ownZone, type Span, wholeSpan, writeSpan } from "../view/periods.ts";
import { dateLabel, spanLabel } from "../view/spans.ts";

const WHAT = ["views", "events", "statistics"] as const;
type What = (typeof WHAT)[number];

/** Names that are the same in every language. */
const FORMATS: Record<ExportFormat, string> = { csv: "CSV", ndjson: "NDJSON", parquet: "Parquet" };
const EVERYWHERE: ExportFormat[] = ["csv", "ndjson"];

const PERIODS = ["all", "7d", "30d", "90d", "6mo", "12mo", "custom"] as const;
type Chosen = (typeof PERIODS)[number];

export function Download({ hostname, onClose }: { hostname: string; onClose: () => void }) {
  const { data: usage } = useUsage();
  // The daemon's days, which statistics and daily totals use.
  const zone = readZone(usage?.service.timezone) ?? ownZone();
  const month = daysOf("30d", zone);
  const [what, setWhat] = useState<What>("views");
  const [format, setFormat] = useState<ExportFormat>("csv");
  const [chosen, setChosen] = useState<Chosen>("all");
  const [days, setDays] = useState(month);
  const periodText = useId();
  const isInOrder = days.from <= days.to;
  const areDays = days.from !== "" && days.to !== "";
  const span =
    chosen !== "custom" || (areDays && isInOrder)
      ? wholeSpan(chosen === "custom" ? days : chosen, zone)
      : undefined;
  const path = `/website/${encodeURIComponent(hostname)}/export`;
  const summed = useSummed(path, what, span);
  return (
    <Dialog title={t("sites.download-of", { hostname: nameOf(hostname) })} onClose={onClose}>
      <div class="form">
        <Choice
          label={t("download.what")}
          value={what}
          of={WHAT.map((each) => [each, t(`download.${each}`)])}
          onChoose={setWhat}
          hasFocus
        />
        <Choice
          label={t("period.title")}
          value={chosen}
          of={PERIODS.map((each) => [each, t(`period.${each}`)])}
          onChoose={setChosen}
          text={periodText}
        />
        {chosen === "custom" && (
          <div class="days-typed">
            <DayField
              label={t("period.from")}
              value={days.from}
              last={month.to}
              onInput={(from) => setDays({ ...days, from })}
            />
            <DayField
              label={t("period.to")}
              value={days.to}
              last={month.to}
              onInput={(to) => setDays({ ...days, to })}
            />
          </div>
        )}
        {span?.start && (
          <p id={periodText} class="soft">
            {spanLabel(span, zone, false)} ({zone.replaceAll("_", " ")})
          </p>
        )}
        <p class="refusal" role="alert">
          {chosen === "custom" && areDays && !isInOrder && t("period.order")}
        </p>
        <Choice
          label={t("download.format")}
          value={format}
          of={(usage?.service.export_formats ?? EVERYWHERE).map((each) => [each, FORMATS[each]])}
          onChoose={setFormat}
        />
        {summed && (
          <p class="note" role="note">
            {t(what === "statistics" ? "download.partial" : "download.summed", {
              first: dateLabel(summed.first),
              last: dateLabel(summed.last),
            })}
          </p>
        )}
        <p class="soft">
          <Filled text={t("download.text")} values={{ command: <code>medamad import</code> }} />
        </p>
        <div class="row">
          {span ? (
            <a
              class="button main"
              href={address(path, exportQuery(span, { what, format }))}
              download={`${hostname}-${what}.${format}`}
            >
              {t("sites.download")}
            </a>
          ) : (
            <button type="button" class="button main" disabled>
              {t("sites.download")}
            </button>
          )}
          <button type="button" class="button" onClick={onClose}>
            {t("common.close")}
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function daysOf(period: NamedPeriod, zone: string): Range {
  const { start, end } = wholeSpan(period, zone);
  return daysBetween(start as Date, addDays(end, -1));
}

/** The query: everything that is stored if there is no start. */
function exportQuery(span: Span, further: Record<string, string>): URLSearchParams {
  const query = new URLSearchParams(further);
  return span.start ? writeSpan(span, query) : query;
}

/** The first and last day that a file would not cover, because only daily totals remain. */
function useSummed(path: string, what: What, span: Span | undefined) {
  const [summed, setSummed] = useState<ReturnType<typeof daysIn>>();
  const question = span ? `${path}?${exportQuery(span, { what }).toString()}` : "";
  const settled = useSettled(question);
  useEffect(() => {
    setSummed(undefined);
    const [path = "", query] = settled.split("?");
    if (!path) return undefined;
    const abort = new AbortController();
    readPartial(path, new URLSearchParams(query), abort.signal).then(
      (partial) => setSummed(daysIn(partial ?? "")),
      (error) => {
        // The download itself reports what is wrong.
        if (!abort.signal.aborted && !(error instanceof ApiError)) throw error;
      },
    );
    return () => abort.abort();
  }, [settled]);
  return settled === question ? summed : undefined;
}

interface ChoiceProperties<T extends string> {
  label: string;
  value: T;
  /** The choices and their names. */
  of: readonly (readonly [T, string])[];
  onChoose: (value: T) => void;
  /** The id of the description. */
  text?: string;
  hasFocus?: boolean;
}

function Choice<T extends string>({
  label,
  value,
  of,
  onChoose,
  text,
  hasFocus = false,
}: ChoiceProperties<T>) {
  return (
    <label class="field">
      <span>{label}</span>
      <select
        autofocus={hasFocus}
        aria-describedby={text}
        value={value}
        onChange={(event) => onChoose(event.currentTarget.value as T)}
      >
        {of.map(([each, name]) => (
          <option key={each} value={each}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
