// Choosing the time zone in which days begin and times are shown.

import { useState } from "preact/hooks";
import { moment, t } from "../i18n/index.ts";
import { Dialog } from "../ui/dialog.tsx";
import { useViewing } from "./asking.ts";
import { ownZone } from "./periods.ts";

function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return name !== "";
  } catch {
    return false;
  }
}

export function ZoneDialog({ onClose }: { onClose: () => void }) {
  const { zone, show } = useViewing();
  const [name, setName] = useState(zone);
  const isKnown = isZone(name);
  const choose = (chosen: string) => {
    show({ zone: chosen === ownZone() ? undefined : chosen });
    onClose();
  };
  const time = isKnown ? moment(new Date(), { dateStyle: "medium", timeStyle: "short" }, name) : "";
  return (
    <Dialog title={t("zone.title")} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (isKnown) choose(name);
        }}
      >
        <label class="field">
          <span>{t("zone.choose")}</span>
          <input
            list="zones"
            value={name}
            autocomplete="off"
            spellcheck={false}
            onFocus={(event) => event.currentTarget.select()}
            onInput={(event) => setName(event.currentTarget.value.trim())}
          />
        </label>
        <datalist id="zones">
          {["UTC", ...Intl.supportedValuesOf("timeZone")].map((known) => (
            <option key={known} value={known} />
          ))}
        </datalist>
        <p class={isKnown ? "soft" : "refusal"} role="status">
          {isKnown ? time : t("zone.unknown")}
        </p>
        <div class="row">
          <button type="submit" class="button main" disabled={!isKnown}>
            {t("zone.apply")}
          </button>
          <button type="button" class="button" onClick={() => choose(ownZone())}>
            {t("zone.own")}: {ownZone()}
          </button>
          <button type="button" class="button" onClick={() => choose("UTC")}>
            UTC
          </button>
        </div>
      </form>
    </Dialog>
  );
}
