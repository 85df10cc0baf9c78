// API tokens.

import type { TargetedSubmitEvent } from "preact";
import { useState } from "preact/hooks";
import { change } from "../api/client.ts";
import type { Scope, Token, Website } from "../api/types.ts";
import { t, tn } from "../i18n/index.ts";
import { refresh, useAsk } from "../state/data.ts";
import { useUsage } from "../state/usage.ts";
import { Copyable } from "../ui/copy.tsx";
import { Filled } from "../ui/filled.tsx";
import { Refusal, Trouble } from "../ui/trouble.tsx";
import { useSaving } from "./form-state.ts";
import { dayOf, Grant, NameField, Revoke, refusals } from "./grants.tsx";

const SCOPES: readonly Scope[] = ["read", "send", "annotate", "full"];
const DAYS = [7, 30, 90, 365] as const;
const DAY_S = 86_400;

export function Tokens() {
  const { data: tokens, error } = useAsk<Token[]>("/user/tokens");
  const { isDemo } = useUsage();
  const [revoking, setRevoking] = useState<Token>();
  const [done, setDone] = useState("");
  if (!tokens) return error ? <Trouble error={error} /> : <span class="skeleton sites-skeleton" />;
  return (
    <>
      <section class="card padded form" aria-labelledby="settings-tokens">
        <h2 id="settings-tokens">{t("settings.tokens")}</h2>
        <p>
          <Filled
            text={t("tokens.text")}
            values={{ header: <code>Authorization: Bearer medamad_…</code> }}
          />
        </p>
        {tokens.length === 0 && <p class="soft">{t("tokens.none")}</p>}
        <ul class="sites">
          {tokens.map((token) => (
            <Grant
              key={token.id}
              name={token.name}
              isDemo={isDemo}
              onRevoke={() => {
                setDone("");
                setRevoking(token);
              }}
            >
              <span>
                {t(`tokens.scope-${token.scope}`)} · {token.websites?.join(", ") ?? t("tokens.all")}
              </span>
              <span class="soft">
                {token.dateLastUsed
                  ? t("tokens.last-used", { day: dayOf(token.dateLastUsed) })
                  : t("tokens.unused")}
                {token.dateExpires && ` · ${ending(token.dateExpires)}`}
              </span>
            </Grant>
          ))}
        </ul>
        <p class="saved" role="status">
          {done}
        </p>
        {revoking && (
          <Revoke
            name={revoking.name}
            path={`/user/tokens/${revoking.id}`}
            onClose={(what) => {
              setRevoking(undefined);
              if (what) setDone(what);
            }}
          />
        )}
      </section>
      {!isDemo && <Make />}
    </>
  );
}

function ending(unixSeconds: number): string {
  const hasEnded = unixSeconds * 1000 <= Date.now();
  return t(hasEnded ? "tokens.ended" : "tokens.until", { day: dayOf(unixSeconds) });
}

function Make() {
  const { data: websites } = useAsk<Website[]>("/websites");
  const [name, setName] = useState("");
  const [scope, setScope] = useState<Scope>("read");
  const [hostname, setHostname] = useState("");
  const [days, setDays] = useState(0);
  const [text, setText] = useState("");
  const saving = useSaving();
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setText("");
    await saving.save(async () => {
      const { token } = await change<{ token: string }>("POST", "/user/tokens", {
        name,
        scope,
        websites: hostname ? [hostname] : null,
        dateExpires: days ? Math.floor(Date.now() / 1000) + days * DAY_S : null,
      });
      setText(token);
      setName("");
      refresh();
    });
  };
  return (
    <section class="card padded form" aria-labelledby="settings-make-token">
      <h2 id="settings-make-token">{t("tokens.make")}</h2>
      <form class="form" onSubmit={submit}>
        <NameField
          value={name}
          onInput={(typed) => {
            setName(typed);
            saving.forget();
          }}
        />
        <label class="field">
          <span>{t("tokens.scope")}</span>
          <select value={scope} onChange={(event) => setScope(event.currentTarget.value as Scope)}>
            {SCOPES.map((each) => (
              <option key={each} value={each}>
                {t(`tokens.scope-${each}`)}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>{t("tokens.websites")}</span>
          <select value={hostname} onChange={(event) => setHostname(event.currentTarget.value)}>
            <option value="">{t("tokens.all")}</option>
            {(websites ?? []).map((website) => (
              <option key={website.hostname} value={website.hostname}>
                {website.hostname}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>{t("tokens.ends")}</span>
          <select value={days} onChange={(event) => setDays(Number(event.currentTarget.value))}>
            <option value={0}>{t("tokens.never")}</option>
            {DAYS.map((each) => (
              <option key={each} value={each}>
                {tn("tokens.after", each)}
              </option>
            ))}
          </select>
        </label>
        <Refusal error={saving.error} meaning={refusals()} />
        <div class="row">
          <button type="submit" class="button main" disabled={saving.isBusy}>
            {t("tokens.make")}
          </button>
        </div>
      </form>
      <div role="status">
        {text && (
          <>
            <p>{t("tokens.once")}</p>
            <Copyable text={text} label={t("tokens.token")} />
          </>
        )}
      </div>
    </section>
  );
}
