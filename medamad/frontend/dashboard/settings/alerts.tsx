// The alerts of the server and of each website.

import type { TargetedSubmitEvent } from "preact";
import { useId, useState } from "preact/hooks";
import { change } from "../api/client.ts";
import type {
  Alert,
  AlertFormat,
  AlertKind,
  AlertTrial,
  Goal,
  ServiceAlertKind,
  Website,
  WebsiteAlertKind,
} from "../api/types.ts";
import { Actions } from "../goals/actions.tsx";
import { figure, moment, t } from "../i18n/index.ts";
import { refresh, useAsk } from "../state/data.ts";
import { useUsage } from "../state/usage.ts";
import { Copyable } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Edit } from "../ui/edit.tsx";
import { nameOf } from "../ui/hostnames.ts";
import { Refusal, Trouble } from "../ui/trouble.tsx";
import { type AlertKey, said } from "./alert-texts.ts";
import { useSaving } from "./form-state.ts";

const OF_WEBSITE: readonly WebsiteAlertKind[] = [
  "quiet",
  "spike",
  "drop",
  "referrer",
  "goal",
  "no-goal",
];
const OF_SERVICE: readonly ServiceAlertKind[] = ["disk", "backup", "limits", "damage", "import"];
const FORMATS: Record<AlertFormat, () => string> = {
  json: () => said("json"),
  slack: () => "Slack",
  discord: () => "Discord",
  ntfy: () => "ntfy",
  mail: () => said("mail"),
};

/** A mailed report, whose address can get the mails of alerts, too. */
interface Recipient {
  id: string;
  address: string;
  confirmed: boolean;
}
const NOBODY: readonly Recipient[] = [];
/** What a threshold is at first, and at most. */
const THRESHOLDS: Partial<Record<AlertKind, readonly [number, number]>> = {
  spike: [100, 10_000],
  drop: [50, 100],
  referrer: [20, 1_000_000],
  goal: [1, 1_000_000],
  disk: [5, 1_000_000],
};
const MAX_HOURS = 168;
const NO_GOALS: readonly Goal[] = [];

export function Alerts() {
  const { data: websites, error } = useAsk<Website[]>("/websites");
  const { isDemo } = useUsage();
  const [hostname, setHostname] = useState("");
  if (!websites)
    return error ? <Trouble error={error} /> : <span class="skeleton sites-skeleton" />;
  const path = hostname ? `/websites/${encodeURIComponent(hostname)}/alerts` : "/user/alerts";
  return (
    <>
      <section class="card padded form" aria-labelledby="settings-alerts">
        <h2 id="settings-alerts">{t("settings.alerts")}</h2>
        <p>{said("text")}</p>
        <label class="field">
          <span>{said("of")}</span>
          <select value={hostname} onChange={(event) => setHostname(event.currentTarget.value)}>
            <option value="">{said("service")}</option>
            {websites.map((website) => (
              <option key={website.hostname} value={website.hostname}>
                {nameOf(website.hostname)}
              </option>
            ))}
          </select>
        </label>
        <List key={path} path={path} hostname={hostname} isDemo={isDemo} />
      </section>
      {!isDemo && (
        <section class="card padded form" aria-labelledby="settings-make-alert">
          <h2 id="settings-make-alert">{said("make")}</h2>
          <Form key={hostname} path={path} hostname={hostname} />
        </section>
      )}
    </>
  );
}

function useRecipients(): readonly Recipient[] {
  return useAsk<Recipient[]>("/user/reports").data ?? NOBODY;
}

function useGoals(hostname: string): readonly Goal[] {
  const path = hostname && `/websites/${encodeURIComponent(hostname)}/goals`;
  return useAsk<Goal[]>(path || null).data ?? NO_GOALS;
}

interface ListProperties {
  path: string;
  hostname: string;
  isDemo: boolean;
}

function List({ path, hostname, isDemo }: ListProperties) {
  const { data: alerts, error } = useAsk<Alert[]>(path);
  const goals = useGoals(hostname);
  const recipients = useRecipients();
  const [edited, setEdited] = useState<Alert>();
  const close = () => setEdited(undefined);
  if (!alerts) return error ? <Trouble error={error} /> : null;
  return (
    <>
      {alerts.length === 0 && <p class="soft">{said("none")}</p>}
      <ul class="sites alerts">
        {alerts.map((alert) => (
          <One
            key={alert.id}
            alert={alert}
            name={nameIn(alert, goals)}
            receiver={receiverOf(alert, recipients)}
            path={path}
            isDemo={isDemo}
            edit={() => setEdited(alert)}
          />
        ))}
      </ul>
      {edited && (
        <Dialog title={t("goals.edit", { name: nameIn(edited, goals) })} onClose={close}>
          <Form path={path} hostname={hostname} alert={edited} isDemo={isDemo} onClose={close} />
        </Dialog>
      )}
    </>
  );
}

/** Where an alert is sent to, in words. */
function receiverOf({ url, report, format }: Alert, recipients: readonly Recipient[]): string {
  if (url) return said("to", { url, format: FORMATS[format]() });
  const address = recipients.find(({ id }) => id === report)?.address ?? "?";
  return said("to-mail", { address });
}

/** What an alert reports, in words. */
function nameIn(alert: Alert, goals: readonly Goal[]): string {
  const { kind, threshold, hours } = alert;
  const goal = goals.find(({ id }) => id === alert.goal)?.name ?? alert.goal ?? "";
  const isFilled = threshold !== undefined || hours !== undefined;
  const key = `${isFilled ? "name" : "kind"}.${kind}` as AlertKey;
  return said(key, { n: figure(threshold ?? 0), hours: figure(hours ?? 0), goal });
}

interface OneProperties {
  alert: Alert;
  name: string;
  receiver: string;
  path: string;
  isDemo: boolean;
  edit: () => void;
}

function One({ alert, name, receiver, path, isDemo, edit }: OneProperties) {
  const [trial, setTrial] = useState<AlertTrial>();
  const saving = useSaving();
  const tryIt = () => {
    setTrial(undefined);
    return saving.save(async () => {
      setTrial(await change<AlertTrial>("POST", `${path}/${alert.id}/test`));
    });
  };
  return (
    <li>
      <div class="grant">
        <strong>{name}</strong>
        <span>{receiver}</span>
        <span class="soft">{stateOf(alert)}</span>
        {alert.failure && (
          <span class="bad">
            {said("failed")} <span lang="en">{alert.failure}</span>
          </span>
        )}
        {alert.secret && (
          <details>
            <summary>{said("secret")}</summary>
            <Copyable text={alert.secret} label={said("secret")} />
          </details>
        )}
        <div role="status">
          {trial && (
            <p class={trial.failure ? "bad" : "saved"}>
              {trial.failure
                ? said("not-sent", { text: trial.failure })
                : said("sent", { text: trial.text })}
            </p>
          )}
        </div>
        <Refusal error={saving.error} />
      </div>
      <div class="row">
        <button
          type="button"
          class="button"
          disabled={isDemo || saving.isBusy}
          aria-label={said("try-of", { name })}
          onClick={tryIt}
        >
          {said("try")}
        </button>
        <Edit name={name} edit={edit} />
      </div>
    </li>
  );
}

function stateOf({ dateBegan, dateFired }: Alert): string {
  if (dateBegan !== null) return said("going-on", { when: timeOf(dateBegan) });
  return dateFired === null ? said("never") : said("fired", { when: timeOf(dateFired) });
}

function timeOf(unixSeconds: number): string {
  return moment(new Date(unixSeconds * 1000), { dateStyle: "medium", timeStyle: "short" });
}

interface FormProperties {
  path: string;
  hostname: string;
  /** The one that is changed; undefined for a new one. */
  alert?: Alert;
  isDemo?: boolean;
  onClose?: () => void;
}

function Form({ path, hostname, alert, isDemo = false, onClose }: FormProperties) {
  const kinds: readonly AlertKind[] = hostname ? OF_WEBSITE : OF_SERVICE;
  const goals = useGoals(hostname);
  const recipients = useRecipients().filter(({ confirmed }) => confirmed);
  const [kind, setKind] = useState(alert?.kind ?? (kinds[0] as AlertKind));
  const [threshold, setThreshold] = useState(String(alert?.threshold ?? firstOf(kind)));
  const [goal, setGoal] = useState(alert?.goal ?? "");
  const [hours, setHours] = useState(String(alert?.hours ?? 24));
  const [url, setUrl] = useState("");
  const [format, setFormat] = useState(alert?.format ?? "json");
  const [report, setReport] = useState(alert?.report ?? "");
  const saving = useSaving();
  const hint = useId();
  const own = `${path}/${alert?.id ?? ""}`;
  const bounds = THRESHOLDS[kind];
  const isOfGoal = kind === "goal" || kind === "no-goal";
  const isMail = format === "mail";
  const recipient = report || recipients[0]?.id || "";
  const chosen = goal || goals[0]?.id || "";
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const wanted = {
      kind,
      format,
      ...(isMail && { report: recipient }),
      ...(!isMail && url && { url }),
      ...(bounds && { threshold: Number(threshold) }),
      ...(isOfGoal && { goal: chosen, hours: Number(hours) }),
    };
    // What the alert had and does not need any more is removed.
    const removed = { threshold: null, goal: null, hours: null, report: null };
    const save = () =>
      alert
        ? change("PATCH", own, { ...removed, ...(isMail && { url: null }), ...wanted })
        : change("POST", path, wanted);
    if (await saving.save(save)) {
      setUrl("");
      onClose?.();
      refresh();
    }
  };
  const message = saving.error?.message ?? "";
  const isLacking = (isOfGoal && goals.length === 0) || (isMail && recipients.length === 0);
  return (
    <form class="form" onSubmit={submit} onInput={saving.forget}>
      <label class="field">
        <span>{said("kind")}</span>
        <select
          value={kind}
          onChange={(event) => {
            const wanted = event.currentTarget.value as AlertKind;
            setKind(wanted);
            setThreshold(firstOf(wanted));
          }}
        >
          {kinds.map((each) => (
            <option key={each} value={each}>
              {said(`kind.${each}`)}
            </option>
          ))}
        </select>
      </label>
      {isOfGoal && goals.length === 0 && <p class="soft">{said("no-goals")}</p>}
      {isOfGoal && goals.length > 0 && (
        <label class="field">
          <span>{said("goal")}</span>
          <select value={chosen} onChange={(event) => setGoal(event.currentTarget.value)}>
            {goals.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {bounds && (
        <NumberField
          label={said(`threshold.${kind}` as AlertKey)}
          most={bounds[1]}
          value={threshold}
          onInput={setThreshold}
        />
      )}
      {isOfGoal && (
        <NumberField label={said("hours")} most={MAX_HOURS} value={hours} onInput={setHours} />
      )}
      <label class="field">
        <span>{said("format")}</span>
        <select
          value={format}
          onChange={(event) => setFormat(event.currentTarget.value as AlertFormat)}
        >
          {(Object.keys(FORMATS) as AlertFormat[]).map((each) => (
            <option key={each} value={each}>
              {FORMATS[each]()}
            </option>
          ))}
        </select>
      </label>
      {isMail && recipients.length === 0 && <p class="soft">{said("no-recipients")}</p>}
      {isMail && recipients.length > 0 && (
        <label class="field">
          <span>{said("address")}</span>
          <select value={recipient} onChange={(event) => setReport(event.currentTarget.value)}>
            {recipients.map(({ id, address }) => (
              <option key={id} value={id}>
                {address}
              </option>
            ))}
          </select>
        </label>
      )}
      {!isMail && (
        <div class="field">
          <label for={`${hint}-field`}>{said("url")}</label>
          <input
            id={`${hint}-field`}
            required={!alert?.url}
            placeholder={alert?.url}
            type="url"
            autocomplete="off"
            spellcheck={false}
            maxLength={2048}
            aria-describedby={hint}
            value={url}
            onInput={(event) => setUrl(event.currentTarget.value)}
          />
          <p id={hint} class="soft">
            {said(alert?.url ? "url-kept" : "url-hint")}
          </p>
        </div>
      )}
      <Refusal
        error={saving.error}
        meaning={{
          ...(message.startsWith("url: ") && { 400: said("url-refused") }),
          ...(message.startsWith("alerts: ") && { 400: said("full") }),
        }}
      />
      {alert && onClose ? (
        <Actions
          path={own}
          isDemo={isDemo}
          isComplete={!isLacking && !saving.isBusy}
          saving={saving}
          onClose={onClose}
        />
      ) : (
        <div class="row">
          <button type="submit" class="button main" disabled={saving.isBusy || isLacking}>
            {said("create")}
          </button>
        </div>
      )}
    </form>
  );
}

function firstOf(kind: AlertKind): string {
  return String(THRESHOLDS[kind]?.[0] ?? "");
}

interface NumberProperties {
  label: string;
  most: number;
  value: string;
  onInput: (value: string) => void;
}

function NumberField({ label, most, value, onInput }: NumberProperties) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        required
        type="number"
        min={1}
        max={most}
        step={1}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}
