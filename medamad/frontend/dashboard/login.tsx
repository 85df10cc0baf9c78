// The login: name, password, and an explanation of whatever prevents logging in.

import { Eye, EyeOff } from "lucide";
import type { TargetedSubmitEvent } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiError, isAway } from "./api/client.ts";
import { t, tn } from "./i18n/index.ts";
import { at } from "./state/paths.ts";
import { logIn } from "./state/session.ts";
import { Filled } from "./ui/filled.tsx";
import { Icon } from "./ui/icon.tsx";
import { Why } from "./ui/trouble.tsx";
import "./style/websites.css" with { type: "css" };

type Obstacle = "wrong" | "too-many" | "no-cookie" | ApiError;

export function LoginPage() {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [obstacle, setObstacle] = useState<Obstacle>();
  const [isBusy, setBusy] = useState(false);
  const [wait, setWait] = useSeconds();
  const nameField = useRef<HTMLInputElement>(null);
  const passwordField = useRef<HTMLInputElement>(null);

  useEffect(() => {
    document.title = `${t("login.title")} · medamad`;
  });
  useEffect(() => nameField.current?.focus(), []);
  useEffect(() => {
    if (wait === 0) setObstacle((known) => (known === "too-many" ? undefined : known));
  }, [wait]);

  const enter = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setBusy(true);
    setObstacle(undefined);
    try {
      if (!(await logIn(name, password)))
        setObstacle(isAway.value ? new ApiError(0, "") : "no-cookie");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setWait(error.status === 429 ? Math.max(error.retryAfter, 1) : 0);
      setObstacle(obstacleOf(error));
      if (error.status === 401) passwordField.current?.select();
    } finally {
      setBusy(false);
    }
  };

  return (
    <main class="login">
      <div class="login-brand">
        <img src={at("/dashboard/icon.svg")} alt="" width="40" height="40" />
        <span>medamad</span>
      </div>
      <form class="card form login-form" onSubmit={enter}>
        <h1>{t("login.title")}</h1>
        <label class="field">
          <span>{t("login.name")}</span>
          <input
            ref={nameField}
            name="username"
            autocomplete="username"
            autocapitalize="none"
            spellcheck={false}
            required
            maxLength={1024}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <Password value={password} onInput={setPassword} field={passwordField} />
        <div role="alert">{obstacle && <Obstructed by={obstacle} />}</div>
        {wait > 0 && <p class="soft">{tn("login.wait", wait)}</p>}
        <button type="submit" class="button main" disabled={isBusy || wait > 0}>
          {t("login.enter")}
        </button>
      </form>
      <aside class="login-first">
        <h2>{t("login.first")}</h2>
        <p>
          <Filled text={t("login.first-file")} values={{ file: <code>first-login.txt</code> }} />
        </p>
        <p>
          <Filled
            text={t("login.first-terminal")}
            values={{ command: <code>medamad passwd</code> }}
          />
        </p>
      </aside>
    </main>
  );
}

function obstacleOf(error: ApiError): Obstacle {
  if (error.status === 401) return "wrong";
  if (error.status === 429) return "too-many";
  return error;
}

/** Seconds that count down to 0 once set. */
function useSeconds(): [number, (seconds: number) => void] {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (seconds <= 0) return undefined;
    const next = setTimeout(() => setSeconds(seconds - 1), 1_000);
    return () => clearTimeout(next);
  }, [seconds]);
  return [seconds, setSeconds];
}

interface PasswordProperties {
  value: string;
  onInput: (value: string) => void;
  field: { current: HTMLInputElement | null };
}

function Password({ value, onInput, field }: PasswordProperties) {
  const [isShown, setShown] = useState(false);
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{t("login.password")}</label>
      <span class="login-password">
        <input
          id={id}
          ref={field}
          name="password"
          {...(isShown ? ({ type: "text" } as const) : ({ type: "password" } as const))}
          autocomplete="current-password"
          autocapitalize="none"
          spellcheck={false}
          required
          maxLength={1024}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
        <button
          type="button"
          class="quiet"
          aria-label={t(isShown ? "login.hide" : "login.show")}
          title={t(isShown ? "login.hide" : "login.show")}
          onClick={() => setShown(!isShown)}
        >
          <Icon of={isShown ? EyeOff : Eye} />
        </button>
      </span>
    </div>
  );
}

function Obstructed({ by }: { by: Obstacle }) {
  if (by === "no-cookie") return <NoCookie />;
  return <p class="refusal">{by instanceof ApiError ? <Why error={by} /> : t(`login.${by}`)}</p>;
}

/** The server accepted the login, but the browser did not send the cookie back. */
function NoCookie() {
  const { protocol, hostname, port } = location;
  return (
    <div class="login-note">
      <strong>{t("login.no-cookie")}</strong>
      {protocol === "https:" ? (
        <p>{t("login.no-cookie-allow")}</p>
      ) : (
        <>
          <p>{t("login.no-cookie-why")}</p>
          <ul>
            <li>
              <Filled
                text={t("login.no-cookie-https")}
                values={{ address: <code>{`https://${hostname}`}</code> }}
              />
            </li>
            <li>
              {/* Browsers trust what never leaves the machine; Safari alone does not. */}
              {isSecureContext ? (
                t("login.no-cookie-browser")
              ) : (
                <Filled
                  text={t("login.no-cookie-local")}
                  values={{ address: <code>{`http://localhost${port && `:${port}`}`}</code> }}
                />
              )}
            </li>
          </ul>
        </>
      )}
    </div>
  );
}
