// The field for a website's hostname. Of a pasted URL, it keeps the host.

import { t } from "../i18n/index.ts";
import { nameOf } from "../ui/hostnames.ts";

/** The hostname in what was typed or pasted; anything else is left for the server to check. */
export function hostnameIn(text: string): string {
  const typed = text.trim();
  if (!/[/:?#@]/.test(typed)) return typed;
  const url = /^\w+:\/\//.test(typed) ? typed : `https://${typed}`;
  return URL.canParse(url) ? new URL(url).hostname : typed;
}

/** The meaning of errors about a hostname. `isKnown` reports a rename to an existing name. */
export function hostnameRefusals(hostname: string, isKnown = false): Record<number, string> {
  const known = t("hostname.known", { hostname });
  return { 400: isKnown ? known : t("hostname.refused"), 409: known };
}

interface Properties {
  value: string;
  onInput: (value: string) => void;
  disabled?: boolean;
  /** Whether a dialog focuses this field first. */
  isFirst?: boolean;
}

export function HostnameField({ value, onInput, disabled = false, isFirst = false }: Properties) {
  const hostname = hostnameIn(value);
  const isTaken = hostname !== value.trim();
  return (
    <div class="field">
      <label for="hostname">{t("hostname.label")}</label>
      <input
        id="hostname"
        autofocus={isFirst}
        aria-describedby="hostname-hint"
        autocomplete="off"
        autocapitalize="none"
        inputmode="url"
        spellcheck={false}
        required
        disabled={disabled}
        placeholder="example.com"
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <p id="hostname-hint" class="soft" role="status">
        {isTaken ? t("hostname.taken", { hostname: nameOf(hostname) }) : t("hostname.hint")}
      </p>
    </div>
  );
}
