// Reports that are mailed, and the test mail.

import type { TargetedSubmitEvent, VNode } from "preact";
import { useId, useState } from "preact/hooks";
import { change } from "../api/client.ts";
import type { Report, Website } from "../api/types.ts";
import { Actions } from "../goals/actions.tsx";
import { language, moment, t } from "../i18n/index.ts";
import { refresh, useAsk } from "../state/data.ts";
import { useUsage } from "../state/usage.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Edit } from "../ui/edit.tsx";
import { Refusal, Trouble } from "../ui/trouble.tsx";
import { ownZone } from "../view/periods.ts";
import { type Saving, useSaving } from "./form-state.ts";
import { LANGUAGE_NAMES, LanguageSelect } from "./language-select.tsx";

const MOST_DAYS = { week: 7, month: 28 } as const;
const HOURS = 24;
/** A Monday. */
const MONDAY = Date.UTC(2024, 0, 1);
const DAY_MS = 86_400_000;

export function Reports() {
  const { data: reports, error } = useAsk<Report[]>("/user/reports");
  const { isDemo } = useUsage();
  const [edited, setEdited] = useState<Report>();
  if (!reports) return error ? <Trouble error={error} /> : <span class="skeleton sites-skeleton" />;
  return (
    <>
      <section class="card padded form" aria-labelledby="settings-reports">
        <h2 id="settings-reports">{t("settings.reports")}</h2>
        <p>{t("reports.text")}</p>
        {reports.length === 0 && <p class="soft">{t("reports.none")}</p>}
        <ul class="sites">
          {reports.map((report) => (
            <Listed key={report.id} report={report} edit={() => setEdited(report)} />
          ))}
        </ul>
      </section>
      {!isDemo && <Add />}
      {!isDemo && <Test />}
      {edited && <Change report={edited} isDemo={isDemo} onClose={() => setEdited(undefined)} />}
    </>
  );
}

function Listed({ report, edit }: { report: Report; edit: () => void }) {
  const { address, day, every, failure, hour, language, timezone } = report;
  return (
    <li>
      <div class="grant">
        <strong>{address}</strong>
        <span>
          {t(`reports.${every}`)} · {dayOf(every, day)}, {clock(hour)} ({timezone})
        </span>
        <span>
          {report.websites.join(", ")} · <span lang={language}>{LANGUAGE_NAMES[language]}</span>
        </span>
        {!report.confirmed && <span class="soft">{t("reports.unconfirmed")}</span>}
        {failure && (
          <span class="refusal">
            {t("reports.failed")} <span lang="en">{failure}</span>
          </span>
        )}
      </div>
      <Edit name={address} edit={edit} />
    </li>
  );
}

/** The name of a weekday, or the number of a day of the month. */
function dayOf(every: Report["every"], day: number): string {
  if (every === "month") return t("reports.day-of-month", { day });
  return moment(new Date(MONDAY + (day - 1) * DAY_MS), { weekday: "long" }, "UTC");
}

function clock(hour: number): string {
  return moment(new Date(hour * 3_600_000), { hour: "numeric", minute: "2-digit" }, "UTC");
}

/** Why a mail was not sent: in the mail server's words, which are the response to a conflict. */
function NotSent({ saving }: { saving: Saving }) {
  const { error } = saving;
  if (error?.status !== 409) return <Refusal error={error} />;
  return (
    <p class="refusal" role="alert">
      {t("reports.not-sent")} <span lang="en">{error.message}</span>
    </p>
  );
}

function Add() {
  const [address, setAddress] = useState("");
  const [said, setSaid] = useState("");
  const plan = usePlan();
  const saving = useSaving();
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setSaid("");
    const body = { address, ...plan.wanted(event.currentTarget) };
    await saving.save(async () => {
      const added = await change<Report>("POST", "/user/reports", body);
      setSaid(t(added.confirmed ? "reports.added" : "reports.asked", { address }));
      setAddress("");
      refresh();
    });
  };
  return (
    <section class="card padded form" aria-labelledby="settings-add-report">
      <h2 id="settings-add-report">{t("reports.add")}</h2>
      <form class="form" onSubmit={submit} onInput={saving.forget}>
        <AddressField value={address} onInput={setAddress} />
        {plan.fields}
        <NotSent saving={saving} />
        <div class="row">
          <button type="submit" class="button main" disabled={saving.isBusy}>
            {t("reports.add")}
          </button>
        </div>
      </form>
      <p class="saved" role="status">
        {said}
      </p>
    </section>
  );
}

interface ChangeProperties {
  report: Report;
  isDemo: boolean;
  onClose: () => void;
}

/** Changes or ends a report; its address stays. */
function Change({ report, isDemo, onClose }: ChangeProperties) {
  const plan = usePlan(report);
  const saving = useSaving();
  const path = `/user/reports/${report.id}`;
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const wanted = plan.wanted(event.currentTarget);
    if (await saving.save(() => change("PATCH", path, wanted))) {
      onClose();
      refresh();
    }
  };
  return (
    <Dialog title={t("goals.edit", { name: report.address })} onClose={onClose}>
      <form class="form" onSubmit={submit} onInput={saving.forget}>
        {plan.fields}
        <Refusal error={saving.error} />
        <Actions
          path={path}
          isDemo={isDemo}
          isComplete={!saving.isBusy}
          saving={saving}
          onClose={onClose}
        />
      </form>
    </Dialog>
  );
}

interface Plan {
  fields: VNode;
  /** Return what a form with the fields asks for. */
  wanted: (form: HTMLFormElement) => object;
}

/** What a report is of, and when it is mailed in which language. */
function usePlan(report?: Report): Plan {
  const { data: websites } = useAsk<Website[]>("/websites");
  const [every, setEvery] = useState(report?.every ?? "week");
  const [day, setDay] = useState(report?.day ?? 1);
  const [hour, setHour] = useState(report?.hour ?? 8);
  const [timezone, setTimezone] = useState(report?.timezone ?? ownZone());
  const [speech, setSpeech] = useState(report?.language ?? language.value);
  const id = useId();
  const names = (websites ?? []).map(({ hostname }) => hostname);
  const chosen = report?.websites ?? (names.length === 1 ? names : []);
  const fields = (
    <>
      <label class="field">
        <span>{t("tokens.websites")}</span>
        <select multiple required name="websites" size={Math.min(Math.max(names.length, 2), 8)}>
          {names.map((name) => (
            <option key={name} value={name} selected={chosen.includes(name)}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>{t("reports.every")}</span>
        <select
          value={every}
          onChange={({ currentTarget }) => {
            setEvery(currentTarget.value as Report["every"]);
            setDay(1);
          }}
        >
          <option value="week">{t("reports.week")}</option>
          <option value="month">{t("reports.month")}</option>
        </select>
      </label>
      <label class="field">
        <span>{t("reports.day")}</span>
        <select value={day} onChange={({ currentTarget }) => setDay(Number(currentTarget.value))}>
          {Array.from({ length: MOST_DAYS[every] }, (_, number) => (
            <option key={number} value={number + 1}>
              {dayOf(every, number + 1)}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>{t("reports.hour")}</span>
        <select value={hour} onChange={({ currentTarget }) => setHour(Number(currentTarget.value))}>
          {Array.from({ length: HOURS }, (_, number) => (
            <option key={number} value={number}>
              {clock(number)}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>{t("zone.title")}</span>
        <input
          required
          list={`${id}-zones`}
          autocomplete="off"
          spellcheck={false}
          value={timezone}
          onInput={({ currentTarget }) => setTimezone(currentTarget.value)}
        />
      </label>
      <datalist id={`${id}-zones`}>
        {["UTC", ...Intl.supportedValuesOf("timeZone")].map((known) => (
          <option key={known} value={known} />
        ))}
      </datalist>
      <div class="field">
        <span id={`${id}-language`}>{t("account.language")}</span>
        <LanguageSelect labelledBy={`${id}-language`} value={speech} onChange={setSpeech} />
      </div>
    </>
  );
  const wanted = (form: HTMLFormElement) => ({
    websites: new FormData(form).getAll("websites"),
    every,
    day,
    hour,
    timezone,
    language: speech,
  });
  return { fields, wanted };
}

function Test() {
  const [address, setAddress] = useState("");
  const saving = useSaving();
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    await saving.save(() => change("POST", "/user/test-mail", { address }));
  };
  return (
    <section class="card padded form" aria-labelledby="settings-test-mail">
      <h2 id="settings-test-mail">{t("reports.test")}</h2>
      <p class="soft">{t("reports.test-text")}</p>
      <form class="form" onSubmit={submit} onInput={saving.forget}>
        <AddressField value={address} onInput={setAddress} />
        <NotSent saving={saving} />
        <div class="row">
          <button type="submit" class="button" disabled={saving.isBusy}>
            {t("reports.test")}
          </button>
        </div>
      </form>
      <p class="saved" role="status">
        {saving.isSaved && t("reports.tested")}
      </p>
    </section>
  );
}

interface AddressProperties {
  value: string;
  onInput: (value: string) => void;
}

function AddressField({ value, onInput }: AddressProperties) {
  return (
    <label class="field">
      <span>{t("reports.address")}</span>
      <input
        required
        type="email"
        autocomplete="email"
        maxLength={254}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}
