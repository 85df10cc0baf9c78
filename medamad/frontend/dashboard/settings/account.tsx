// The account: name, password, language; and this browser's theme and session.

import type { TargetedSubmitEvent } from "preact";
import { useState } from "preact/hooks";
import type { Language } from "../api/types.ts";
import { language, speak, t } from "../i18n/index.ts";
import { changeUser, logOut, user } from "../state/session.ts";
import { THEMES, theme } from "../state/theme.ts";
import { useUsage } from "../state/usage.ts";
import { Refusal } from "../ui/trouble.tsx";
import { type Saving, useSaving } from "./form-state.ts";
import { LanguageSelect } from "./language-select.tsx";

export function Account() {
  const { data: usage, error, isDemo } = useUsage();
  return (
    <>
      <Name isDemo={isDemo} />
      <Password isDemo={isDemo} />
      <Speech isDemo={isDemo} isKnown={!!(usage || error)} />
      <Theme />
      <section class="card padded">
        <button type="button" class="button" onClick={() => void logOut()}>
          {t("account.log-out")}
        </button>
      </section>
    </>
  );
}

function Outcome({ saving }: { saving: Saving }) {
  return (
    <>
      <Refusal error={saving.error} />
      <p class="saved" role="status">
        {saving.isSaved && t("common.saved")}
      </p>
    </>
  );
}

function Name({ isDemo }: { isDemo: boolean }) {
  const known = user.value?.username ?? "";
  const [name, setName] = useState(known);
  const saving = useSaving();
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    void saving.save(() => changeUser({ username: name }));
  };
  return (
    <section class="card padded" aria-labelledby="account-name">
      <form class="form" onSubmit={submit}>
        <h2 id="account-name">{t("account.name")}</h2>
        <div class="field">
          <input
            aria-labelledby="account-name"
            aria-describedby="account-name-hint"
            autocomplete="username"
            autocapitalize="none"
            spellcheck={false}
            required
            minLength={3}
            maxLength={48}
            disabled={isDemo}
            value={name}
            onInput={(event) => {
              setName(event.currentTarget.value);
              saving.forget();
            }}
          />
          <p id="account-name-hint" class="soft">
            {t("account.name-hint")}
          </p>
        </div>
        <Outcome saving={saving} />
        <div class="row">
          <button type="submit" class="button" disabled={isDemo || saving.isBusy || name === known}>
            {t("account.name-save")}
          </button>
        </div>
      </form>
    </section>
  );
}

function Password({ isDemo }: { isDemo: boolean }) {
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const [differ, setDiffer] = useState(false);
  const saving = useSaving();
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setDiffer(password !== again);
    if (password !== again) return;
    if (await saving.save(() => changeUser({ password }))) {
      setPassword("");
      setAgain("");
    }
  };
  const typed = (set: (text: string) => void) => (text: string) => {
    set(text);
    setDiffer(false);
    saving.forget();
  };
  return (
    <section class="card padded" aria-labelledby="account-password">
      <form class="form" onSubmit={submit}>
        <h2 id="account-password">{t("account.password")}</h2>
        {/* For the browser, which keeps the password beside the name. */}
        <input hidden readOnly autocomplete="username" value={user.value?.username ?? ""} />
        <NewPassword
          label={t("account.new")}
          hint={t("account.new-hint")}
          value={password}
          onInput={typed(setPassword)}
          disabled={isDemo}
        />
        <NewPassword
          label={t("account.again")}
          value={again}
          onInput={typed(setAgain)}
          disabled={isDemo}
        />
        <p class="refusal" role="alert">
          {differ && t("account.differ")}
        </p>
        <Outcome saving={saving} />
        <div class="row">
          <button type="submit" class="button" disabled={isDemo || saving.isBusy}>
            {t("account.password-save")}
          </button>
        </div>
      </form>
    </section>
  );
}

interface NewPasswordProperties {
  label: string;
  hint?: string;
  value: string;
  onInput: (value: string) => void;
  disabled: boolean;
}

function NewPassword({ label, hint, value, onInput, disabled }: NewPasswordProperties) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="password"
        autocomplete="new-password"
        required
        minLength={5}
        maxLength={128}
        disabled={disabled}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {hint && <small class="soft">{hint}</small>}
    </label>
  );
}

/** A demo stores no language, but can be viewed in each. */
function Speech({ isDemo, isKnown }: { isDemo: boolean; isKnown: boolean }) {
  const saving = useSaving();
  const choose = (wanted: Language) =>
    saving.save(() => (isDemo ? speak(wanted) : changeUser({ settings: { language: wanted } })));
  return (
    <section class="card padded form" aria-labelledby="account-language">
      <h2 id="account-language">{t("account.language")}</h2>
      <div class="field">
        <LanguageSelect
          labelledBy="account-language"
          disabled={!isKnown}
          value={language.value}
          onChange={(wanted) => void choose(wanted)}
        />
        <p class="soft">{t("account.language-hint")}</p>
      </div>
      <Outcome saving={saving} />
    </section>
  );
}

function Theme() {
  return (
    <section class="card padded">
      <fieldset class="choices">
        <legend>
          <h2>{t("theme.title")}</h2>
        </legend>
        {THEMES.map((name) => (
          <label key={name}>
            <input
              type="radio"
              name="theme"
              checked={theme.value === name}
              onChange={() => {
                theme.value = name;
              }}
            />
            {t(`theme.${name}`)}
          </label>
        ))}
        <p class="soft">{t("account.theme-hint")}</p>
      </fieldset>
    </section>
  );
}
