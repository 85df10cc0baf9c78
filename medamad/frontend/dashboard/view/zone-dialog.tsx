// Choose the time zone in which days begin and times are shown.

import { useState } from "preact/hooks";
import { moment, t } from "../i18n/index.ts";
import { Dialog, hasKeyboard } from "../ui/dialog.tsx";
import { useViewing } from "./page-state.ts";
import { ownZone } from "./periods.ts";

/** The zone with a name, or with a city of that name. */
function zoneNamed(name: string): string | undefined {
  try {
    return name && new Intl.DateTimeFormat("en", { timeZone: name }) ? name : undefined;
  } catch {
    const city = `/${name.toLowerCase().replaceAll(" ", "_")}`;
    return Intl.supportedValuesOf("timeZone").find((known) => known.toLowerCase().endsWith(city));
  }
}

export function ZoneDialog({ onClose }: { onClose: () => void }) {
  const { zone, show } = useViewing();
  const [name, setName] = useState(zone);
  const named = zoneNamed(name.trim());
  const choose = (chosen: string) => {
    show({ zone: chosen === ownZone() ? undefined : chosen });
    onClose();
  };
  const time = named && moment(new Date(), { dateStyle: "medium", timeStyle: "short" }, named);
  return (
    <Dialog title={t("zone.title")} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (named) choose(named);
        }}
      >
        <label class="field">
          <span>{t("zone.choose")}</span>
          <input
            list="zones"
            value={name}
            autofocus={hasKeyboard()}
            autocomplete="off"
            spellcheck={false}
            onFocus={(event) => event.currentTarget.select()}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <datalist id="zones">
          {["UTC", ...Intl.supportedValuesOf("timeZone")].map((known) => (
            <option key={known} value={known} />
          ))}
        </datalist>
        <p class={named ? "soft" : "refusal"} role="status">
          {named ? `${named.replaceAll("_", " ")}: ${time}` : t("zone.unknown")}
        </p>
        <div class="row">
          <button type="submit" class="button main" disabled={!named}>
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
