// The controls for the period, the time zone and the comparison.

import { ArrowLeft, ArrowRight, CalendarRange, Clock, GitCompareArrows } from "lucide";
import { useState } from "preact/hooks";
import { t } from "../i18n/index.ts";
import { refresh } from "../state/data.ts";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/lazy.tsx";
import { type Choice, Menu } from "../ui/menu.tsx";
import { useShortcuts } from "../ui/shortcuts.ts";
import type { NamedPeriod, Period } from "./address.ts";
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
    ["30d", "m"],
    ["90d", "q"],
  ],
  [
    ["6mo", "h"],
    ["12mo", "x"],
    ["all", "a"],
  ],
];

export function Controls() {
  const { view, zone, show } = useViewing();
  const [open, setOpen] = useState<"days" | "zone">();
  const go = (period: Period | undefined) => {
    // An interval chosen for one period may not fit another.
    if (period) show({ period, interval: undefined });
  };
  const earlier = stepped(view.period, -1, zone);
  const later = stepped(view.period, 1, zone);
  const compare = () => show({ compares: !view.compares });
  useShortcuts([
    ...OFFERED.flat().map(([period, keys]) => ({
      keys,
      label: t(`period.${period}`),
      act: () => go(period),
    })),
    { keys: "r", label: t("period.custom"), act: () => setOpen("days") },
    { keys: "ArrowLeft", label: t("shortcuts.earlier"), act: () => go(earlier) },
    { keys: "ArrowRight", label: t("shortcuts.later"), act: () => go(later) },
    { keys: "c", label: t("shortcuts.compare"), act: compare },
    { keys: "z", label: t("zone.title"), act: () => setOpen("zone") },
    { keys: ".", label: t("shortcuts.refresh"), act: refresh },
  ]);
  const groups = OFFERED.map((group) =>
    group.map(
      ([period, keys]): Choice => ({
        label: t(`period.${period}`),
        isChosen: view.period === period,
        keys,
        choose: () => go(period),
      }),
    ),
  );
  const custom: Choice = {
    label: t("period.custom"),
    isChosen: typeof view.period === "object",
    keys: "r",
    choose: () => setOpen("days"),
  };
  return (
    <div class="controls">
      <button
        type="button"
        class="button"
        aria-pressed={view.compares}
        title={t("compare.on")}
        disabled={view.period === "all"}
        onClick={compare}
      >
        <Icon of={GitCompareArrows} size={16} />
        <span>{t("compare.short")}</span>
      </button>
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
          groups={[...groups, [custom]]}
        />
        <Step label={t("period.later")} icon={ArrowRight} to={later} go={go} />
      </div>
      {open === "days" && <DaysDialog onClose={() => setOpen(undefined)} />}
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
