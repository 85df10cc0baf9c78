// The controls for the period, the time zone and the comparison.

import { ArrowLeft, ArrowRight, CalendarRange, Clock, GitCompareArrows } from "lucide";
import { useState } from "preact/hooks";
import { t } from "../i18n/index.ts";
import { refresh } from "../state/data.ts";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/lazy.tsx";
import { Menu } from "../ui/menu.tsx";
import { useShortcuts } from "../ui/shortcuts.ts";
import type { NamedPeriod, Period } from "./address.ts";
import { matchesWeekdays, usuallyMatches } from "./comparison.ts";
import { useViewing } from "./page-state.ts";
import { stepped } from "./periods.ts";
import { periodLabel } from "./spans.ts";

const DaysDialog = later(() => import("./days-dialog.tsx").then(({ DaysDialog }) => DaysDialog));
const ZoneDialog = later(() => import("./zone-dialog.tsx").then(({ ZoneDialog }) => ZoneDialog));

/** The named periods in groups, with their shortcuts. */
const OFFERED: [NamedPeriod, string][][] = [
  [
    ["today", "t"],
    ["yesterday", "y"],
    ["24h", "d"],
  ],
  [
    ["7d", "w"],
    ["14d", "2 w"],
    ["28d", "4 w"],
    ["30d", "m"],
    ["90d", "q"],
    ["6mo", "h"],
    ["12mo", "x"],
  ],
  [
    ["week", "W"],
    ["last-week", "p w"],
    ["month", "M"],
    ["last-month", "p m"],
    ["quarter", "Q"],
    ["last-quarter", "p q"],
    ["year", "Y"],
    ["last-year", "p y"],
    ["ytd", "j"],
  ],
  [["all", "a"]],
];
const COMPARED = [
  ["previous", "v p"],
  ["year", "v y"],
  ["custom", "v r"],
  ["none", "v n"],
] as const;

export function Controls() {
  const { view, zone, show } = useViewing();
  const [open, setOpen] = useState<"days" | "compare" | "zone">();
  const go = (period: Period | undefined) => {
    // An interval chosen for one period may not fit another.
    if (period) show({ period, interval: undefined });
  };
  const earlier = stepped(view.period, -1, zone);
  const later = stepped(view.period, 1, zone);
  const comparison = typeof view.comparison === "object" ? "custom" : view.comparison;
  const isComparable = view.period !== "all";
  const compare = (chosen: (typeof COMPARED)[number][0]) => {
    if (chosen !== "custom") show({ comparison: chosen });
    else if (isComparable) setOpen("compare");
  };
  const areMatched = matchesWeekdays(view, zone);
  const match = () => {
    const isUsual = usuallyMatches(view, zone) !== areMatched;
    show({ weekdays: isUsual ? undefined : !areMatched });
  };
  const compared = COMPARED.map(([name, keys]) => ({
    label: t(`compare.${name}`),
    keys,
    choose: () => compare(name),
  }));
  const weekdays = { label: t("compare.weekdays"), keys: "v w", choose: match };
  const custom = { label: t("period.custom"), keys: "r", choose: () => setOpen("days") };
  const named = OFFERED.map((group) =>
    group.map(([period, keys]) => ({
      label: t(`period.${period}`),
      keys,
      isChosen: view.period === period,
      choose: () => go(period),
    })),
  );
  useShortcuts([
    ...[...named.flat(), custom].map(({ keys, label, choose }) => ({ keys, label, act: choose })),
    { keys: "ArrowLeft", label: t("shortcuts.earlier"), act: () => go(earlier) },
    { keys: "ArrowRight", label: t("shortcuts.later"), act: () => go(later) },
    {
      keys: "c",
      label: t("shortcuts.compare"),
      act: () => compare(comparison === "none" ? "previous" : "none"),
    },
    ...[...compared, weekdays].map(({ keys, label, choose }) => ({
      keys,
      label: `${t("compare.title")}: ${label}`,
      act: choose,
    })),
    { keys: "z", label: t("zone.title"), act: () => setOpen("zone") },
    { keys: ".", label: t("shortcuts.refresh"), act: refresh },
  ]);
  return (
    <div class="controls">
      <Menu
        class={comparison === "none" ? "" : "comparing"}
        title={t("compare.title")}
        disabled={!isComparable}
        label={
          <>
            <Icon of={GitCompareArrows} size={16} />
            <span aria-hidden="true">{t("compare.title")}</span>
            <span class="hidden">{t(`compare.${comparison}`)}</span>
          </>
        }
        groups={[
          compared.map((choice, place) => ({
            ...choice,
            isChosen: COMPARED[place]?.[0] === comparison,
          })),
          comparison === "none" ? [] : [{ ...weekdays, isChosen: areMatched, isOption: true }],
        ]}
      />
      <button
        type="button"
        class="button"
        aria-haspopup="dialog"
        title={t("zone.title")}
        onClick={() => setOpen("zone")}
      >
        <Icon of={Clock} size={16} />
        <span class="hidden">{t("zone.title")}: </span>
        <span class="zone-name">{zone.replaceAll("_", " ")}</span>
      </button>
      <div class="stepper">
        <Step label={t("period.earlier")} icon={ArrowLeft} to={earlier} go={go} />
        <Menu
          title={t("period.title")}
          label={
            <>
              <Icon of={CalendarRange} size={16} /> {periodLabel(view.period, zone)}
            </>
          }
          align="end"
          groups={[
            ...named.slice(0, -1),
            [...named.slice(-1).flat(), { ...custom, isChosen: typeof view.period === "object" }],
          ]}
        />
        <Step label={t("period.later")} icon={ArrowRight} to={later} go={go} />
      </div>
      {(open === "days" || open === "compare") && (
        <DaysDialog isCompared={open === "compare"} onClose={() => setOpen(undefined)} />
      )}
      {open === "zone" && <ZoneDialog onClose={() => setOpen(undefined)} />}
    </div>
  );
}

interface StepProperties {
  label: string;
  icon: typeof ArrowLeft;
  to: Period | undefined;
  go: (period: Period | undefined) => void;
}

function Step({ label, icon, to, go }: StepProperties) {
  return (
    <button type="button" class="button" disabled={!to} title={label} onClick={() => go(to)}>
      <Icon of={icon} size={16} />
      <span class="hidden">{label}</span>
    </button>
  );
}
