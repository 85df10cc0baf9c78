// How a figure changed since what it is compared with; nothing if that is unknown.

import { changeOf, t } from "../i18n/index.ts";
import type { Measure } from "./address.ts";
import { measured } from "./measures.ts";

interface Properties {
  measure: Measure;
  now: number | null;
  before: number | null;
  onOpen?: () => void;
}

export function Change({ measure, now, before, onOpen }: Properties) {
  // A change from nothing has no percentage.
  if (now === null || !before) return null;
  const fraction = (now - before) / before;
  const isUp = fraction > 0;
  const isGood = measure.endsWith("bounce_percentage") ? !isUp : isUp;
  const isSame = Math.abs(fraction) < 0.005;
  const tone = isSame ? "" : isGood ? "good" : "bad";
  const change = changeOf(Math.abs(fraction)).replace(/^\+/, "");
  const words = isSame ? t("measure.same") : t(isUp ? "measure.more" : "measure.less", { change });
  const Element = onOpen ? "button" : "span";
  return (
    <Element
      type={onOpen && "button"}
      aria-haspopup={onOpen && "dialog"}
      class={`change ${tone}`}
      title={t("measure.before", { value: measured(measure, before, true) })}
      onClick={onOpen}
    >
      <span aria-hidden="true">
        {isSame ? "=" : isUp ? "▲" : "▼"}
        {!isSame && change}
      </span>
      <span class="hidden">{words}</span>
    </Element>
  );
}
