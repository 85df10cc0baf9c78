// Choose a range of days, to show or to compare with, by a calendar or by typing.

import { TZDateMini } from "@date-fns/tz";
import { addDays, addMonths } from "date-fns";
import { ChevronLeft, ChevronRight } from "lucide";
import { useEffect, useRef, useState } from "preact/hooks";
import { locale, t } from "../i18n/index.ts";
import { DayField } from "../ui/day-field.tsx";
import { Dialog, hasKeyboard } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { comparedWith } from "./comparison.ts";
import { useViewing } from "./page-state.ts";
import { dayOf, daysBetween, named, wholeSpan } from "./periods.ts";

import "cally";
import "../style/days.css" with { type: "css" };

/** Where two months fit side by side. */
const TWO_MONTHS = "(min-width: 40rem)";

interface CalendarRange extends HTMLElement {
  value: string;
}

interface Properties {
  /** Whether the days are to be compared with. */
  isCompared: boolean;
  onClose: () => void;
}

export function DaysDialog({ isCompared, onClose }: Properties) {
  const { view, zone, show } = useViewing();
  const today = dayOf(new TZDateMini(new Date(), zone));
  const span = isCompared ? comparedWith(view, zone)?.whole : wholeSpan(view.period, zone);
  const shown = span?.start ? daysBetween(span.start, addDays(span.end, -1)) : undefined;
  const [from, setFrom] = useState(shown?.from ?? today);
  const [to, setTo] = useState(shown && shown.to < today ? shown.to : today);
  const calendar = useRef<CalendarRange>(null);
  const isInOrder = from <= to;
  // The last one is that of the last day.
  const [months] = useState(() => (matchMedia(TWO_MONTHS).matches ? 2 : 1));
  const [focused] = useState(() =>
    dayOf(addMonths(new TZDateMini(`${to}T00:00`, zone), 1 - months)),
  );

  useEffect(() => {
    const element = calendar.current;
    if (!element) return undefined;
    const choose = () => {
      const [first = "", last = ""] = element.value.split("/");
      setFrom(first);
      setTo(last);
    };
    element.addEventListener("change", choose);
    return () => element.removeEventListener("change", choose);
  }, []);

  const apply = (event: Event) => {
    event.preventDefault();
    if (!isInOrder) return;
    show(
      isCompared
        ? { comparison: { from, to }, weekdays: undefined }
        : { period: named({ from, to }, zone), interval: undefined },
    );
    onClose();
  };
  return (
    <Dialog title={t(isCompared ? "compare.custom" : "period.custom")} onClose={onClose}>
      <form class="form" onSubmit={apply}>
        <calendar-range
          ref={calendar}
          value={isInOrder ? `${from}/${to}` : ""}
          max={today}
          today={today}
          locale={locale.value}
          focused-date={focused}
          months={months}
          page-by="single"
        >
          <span slot="previous">
            <Icon of={ChevronLeft} />
            <span class="hidden">{t("period.earlier")}</span>
          </span>
          <span slot="next">
            <Icon of={ChevronRight} />
            <span class="hidden">{t("period.later")}</span>
          </span>
          <div class="days-months">
            <calendar-month />
            {months > 1 && <calendar-month offset={1} />}
          </div>
        </calendar-range>
        <div class="days-typed">
          <DayField
            label={t("period.from")}
            value={from}
            last={today}
            onInput={setFrom}
            hasFocus={hasKeyboard()}
          />
          <DayField label={t("period.to")} value={to} last={today} onInput={setTo} />
        </div>
        <p class="refusal" role="alert">
          {!isInOrder && t("period.order")}
        </p>
        <button type="submit" class="button main">
          {t(isCompared ? "compare.title" : "period.apply")}
        </button>
      </form>
    </Dialog>
  );
}
