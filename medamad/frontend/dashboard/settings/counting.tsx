// What counts on a website, and what of its addresses is never stored.

import type { TargetedSubmitEvent } from "preact";
import { useId, useState } from "preact/hooks";
import { change, read } from "../api/client.ts";
import type { SettingsPreview, WebsiteSettings } from "../api/types.ts";
import { figure, t } from "../i18n/index.ts";
import { useAsk } from "../state/data.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Filled } from "../ui/filled.tsx";
import { nameOf } from "../ui/hostnames.ts";
import { Refusal, Trouble } from "../ui/trouble.tsx";
import { useSaving } from "./form-state.ts";

const BOTS = ["declared", "strict", "off"] as const;
const HOSTING = ["count", "count apart", "ignore"] as const;
/** The settings that are lists, in the order of the form, each with an example. */
const LISTS = {
  blocked_networks: "203.0.113.0/24",
  blocked_countries: "DE",
  allowed_hosts: "example.com",
  excluded_paths: "/admin/*",
  redacted_paths: "/reset/*",
  kept_parameters: "t",
} as const;
type List = keyof typeof LISTS;
const SWITCHES = ["redact_uuids", "redact_hexadecimal", "redact_emails"] as const;

type Chosen = Omit<WebsiteSettings, "configured">;

interface Properties {
  hostname: string;
  isDemo: boolean;
  /** Called with a message about what was done, or with nothing. */
  onClose: (done?: string) => void;
}

export function Counting(properties: Properties) {
  const { hostname, onClose } = properties;
  const path = `/websites/${encodeURIComponent(hostname)}/settings`;
  const { data, error } = useAsk<WebsiteSettings>(path);
  return (
    <Dialog title={t("counting.title", { hostname: nameOf(hostname) })} onClose={() => onClose()}>
      {data ? (
        <CountingForm {...properties} path={path} settings={data} />
      ) : error ? (
        <Trouble error={error} />
      ) : (
        <span class="skeleton sites-skeleton" />
      )}
    </Dialog>
  );
}

interface FormProperties extends Properties {
  path: string;
  settings: WebsiteSettings;
}

function CountingForm({ hostname, isDemo, path, settings, onClose }: FormProperties) {
  const { configured, ...saved } = settings;
  const [chosen, setChosen] = useState<Chosen>(saved);
  const [preview, setPreview] = useState<SettingsPreview>();
  const saving = useSaving();
  const set = (changed: Partial<Chosen>) => {
    setChosen({ ...chosen, ...changed });
    setPreview(undefined);
    saving.forget();
  };
  const changes = Object.fromEntries(
    Object.entries(chosen).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(saved[name as keyof Chosen]),
    ),
  );
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (await saving.save(() => change("PATCH", path, changes))) {
      onClose(t("counting.saved", { hostname: nameOf(hostname) }));
    }
  };
  const look = async () => {
    const query = { settings: JSON.stringify(changes) };
    if (await saving.save(async () => setPreview(await read(`${path}/preview`, query)))) {
      saving.forget();
    }
  };
  const list = (name: List) => (
    <Lines
      key={name}
      name={name}
      lines={chosen[name]}
      onLines={(lines) => set({ [name]: lines })}
    />
  );
  return (
    <form class="form counting" onSubmit={submit}>
      <p>{t("counting.text")}</p>
      <fieldset class="form" disabled={isDemo}>
        <legend>{t("counting.ignored")}</legend>
        <Choice
          label={t("counting.bots")}
          value={chosen.bots}
          configured={t(`counting.bots-${configured.bots}`)}
          choices={BOTS.map((name) => [name, t(`counting.bots-${name}`)])}
          onChoose={(bots) => set({ bots })}
        />
        <Choice
          label={t("counting.hosting")}
          value={chosen.hosting}
          configured={t(`counting.hosting-${configured.hosting}`)}
          choices={HOSTING.map((name) => [name, t(`counting.hosting-${name}`)])}
          onChoose={(hosting) => set({ hosting })}
        />
        <Choice
          label="Global Privacy Control"
          value={chosen.respect_gpc === null ? null : `${chosen.respect_gpc}`}
          configured={t(`counting.gpc-${configured.respect_gpc}`)}
          choices={(["true", "false"] as const).map((name) => [name, t(`counting.gpc-${name}`)])}
          onChoose={(name) => set({ respect_gpc: name && name === "true" })}
        />
        {list("excluded_paths")}
        {list("blocked_networks")}
        {list("blocked_countries")}
        {list("allowed_hosts")}
      </fieldset>
      <fieldset class="form" disabled={isDemo}>
        <legend>{t("counting.redacted")}</legend>
        <p class="soft">{t("counting.redacted-text")}</p>
        <div class="choices">
          {SWITCHES.map((name) => (
            <label key={name}>
              <input
                type="checkbox"
                checked={chosen[name]}
                onChange={(event) => set({ [name]: event.currentTarget.checked })}
              />
              <span>{t(`counting.${name}`)}</span>
            </label>
          ))}
        </div>
        {list("redacted_paths")}
        {list("kept_parameters")}
      </fieldset>
      {preview && <Preview preview={preview} />}
      <Refusal error={saving.error} />
      <div class="row">
        <button type="submit" class="button main" disabled={isDemo || saving.isBusy}>
          {t("tracker.save")}
        </button>
        <button type="button" class="button" disabled={isDemo || saving.isBusy} onClick={look}>
          {t("counting.preview")}
        </button>
        <button type="button" class="button" onClick={() => onClose()}>
          {t("common.cancel")}
        </button>
      </div>
    </form>
  );
}

interface ChoiceProperties<Name extends string> {
  label: string;
  /** Null stands for what is configured. */
  value: Name | null;
  configured: string;
  choices: (readonly [Name, string])[];
  onChoose: (name: Name | null) => void;
}

function Choice<Name extends string>(properties: ChoiceProperties<Name>) {
  const { label, value, configured, choices, onChoose } = properties;
  return (
    <label class="field">
      <span>{label}</span>
      <select
        value={value ?? ""}
        onChange={(event) => onChoose((event.currentTarget.value || null) as Name | null)}
      >
        <option value="">{t("counting.configured", { value: configured })}</option>
        {choices.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

interface LinesProperties {
  name: List;
  lines: readonly string[];
  onLines: (lines: string[]) => void;
}

function Lines({ name, lines, onLines }: LinesProperties) {
  const [text, setText] = useState(lines.join("\n"));
  const id = useId();
  return (
    <div class="field">
      <label for={`${id}-field`}>{t(`counting.${name}`)}</label>
      <textarea
        id={`${id}-field`}
        rows={2}
        spellcheck={false}
        autocapitalize="none"
        aria-describedby={id}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          const typed = event.currentTarget.value.split("\n").map((line) => line.trim());
          onLines(typed.filter((line) => line));
        }}
      />
      <p id={id} class="soft">
        <Filled
          text={t(`counting.${name}-hint`)}
          values={{ example: <code>{LISTS[name]}</code>, any: <code>*</code> }}
        />
      </p>
    </div>
  );
}

function Preview({ preview }: { preview: SettingsPreview }) {
  const { paths, redacted, excluded, changes } = preview;
  return (
    <div class="preview" role="status">
      <p>
        {t(redacted + excluded ? "counting.would-change" : "counting.would-stay", {
          paths: figure(paths),
          redacted: figure(redacted),
          excluded: figure(excluded),
        })}
      </p>
      {changes.length > 0 && (
        <ul class="path-changes">
          {changes.map(({ path, stored }) => (
            <li key={path}>
              <bdi dir="ltr">{path}</bdi> →{" "}
              {stored === null ? <em>{t("counting.excluded")}</em> : <bdi dir="ltr">{stored}</bdi>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
