// The share links of a website.

import type { TargetedSubmitEvent } from "preact";
import { useId, useState } from "preact/hooks";
import { change } from "../api/client.ts";
import type { Share } from "../api/types.ts";
import { t } from "../i18n/index.ts";
import { refresh, useAsk } from "../state/data.ts";
import { origin } from "../state/paths.ts";
import { Copyable } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Filled } from "../ui/filled.tsx";
import { nameOf } from "../ui/hostnames.ts";
import { Refusal, Trouble } from "../ui/trouble.tsx";
import { useSaving } from "./form-state.ts";
import { Grant, NameField, Revoke, refusals } from "./grants.tsx";

const ORIGIN = "https://www.example.com";

interface Properties {
  hostname: string;
  isDemo: boolean;
  onClose: () => void;
}

export function Shares({ hostname, isDemo, onClose }: Properties) {
  const path = `/websites/${encodeURIComponent(hostname)}/shares`;
  const { data: shares, error } = useAsk<Share[]>(path);
  const [revoking, setRevoking] = useState<Share>();
  const [done, setDone] = useState("");
  return (
    <>
      <Dialog title={t("shares.title", { hostname: nameOf(hostname) })} onClose={onClose}>
        <div class="form">
          <p>{t("shares.text")}</p>
          {!shares && error && <Trouble error={error} />}
          {shares?.length === 0 && <p class="soft">{t("shares.none")}</p>}
          <ul class="sites">
            {(shares ?? []).map((share) => (
              <Grant
                key={share.id}
                name={share.name}
                isDemo={isDemo}
                onRevoke={() => {
                  setDone("");
                  setRevoking(share);
                }}
              >
                {share.protected && <span class="soft">{t("shares.protected")}</span>}
                <Copyable text={addressOf(share)} label={t("shares.link")} />
                {share.embed.length > 0 && (
                  <Copyable text={frameOf(share, hostname)} label={t("shares.frame")} />
                )}
              </Grant>
            ))}
          </ul>
          <p class="saved" role="status">
            {done}
          </p>
          {!isDemo && <Make path={path} onMake={() => setDone("")} />}
        </div>
      </Dialog>
      {revoking && (
        <Revoke
          name={revoking.name}
          path={`${path}/${revoking.id}`}
          onClose={(what) => {
            setRevoking(undefined);
            if (what) setDone(what);
          }}
        />
      )}
    </>
  );
}

function addressOf({ id }: Share): string {
  return `${origin}/share/${id}`;
}

function frameOf(share: Share, hostname: string): string {
  return `<iframe src="${addressOf(share)}" title="${hostname}" width="100%" height="900"></iframe>`;
}

function Make({ path, onMake }: { path: string; onMake: () => void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [embed, setEmbed] = useState("");
  const saving = useSaving();
  const ids = { password: useId(), embed: useId() };
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    onMake();
    const wanted = {
      name,
      password: password || null,
      embed: embed.split(/\s+/).filter((origin) => origin),
    };
    if (await saving.save(() => change("POST", path, wanted))) {
      setName("");
      setPassword("");
      setEmbed("");
      refresh();
    }
  };
  const isOrigin = saving.error?.message.startsWith("embed: ");
  return (
    <form class="form" onSubmit={submit}>
      <NameField
        value={name}
        onInput={(typed) => {
          setName(typed);
          saving.forget();
        }}
      />
      <div class="field">
        <label for={`${ids.password}-field`}>{t("login.password")}</label>
        <input
          id={`${ids.password}-field`}
          type="password"
          autocomplete="new-password"
          aria-describedby={ids.password}
          minLength={5}
          maxLength={128}
          value={password}
          onInput={(event) => setPassword(event.currentTarget.value)}
        />
        <p id={ids.password} class="soft">
          {t("shares.password-hint")}
        </p>
      </div>
      <div class="field">
        <label for={`${ids.embed}-field`}>{t("shares.embed")}</label>
        <textarea
          id={`${ids.embed}-field`}
          rows={2}
          spellcheck={false}
          autocapitalize="none"
          aria-describedby={ids.embed}
          value={embed}
          onInput={(event) => {
            setEmbed(event.currentTarget.value);
            saving.forget();
          }}
        />
        <p id={ids.embed} class="soft">
          <Filled
            text={t("shares.embed-hint")}
            values={{ example: <code>{ORIGIN}</code>, any: <code>*</code> }}
          />
        </p>
      </div>
      <Refusal
        error={saving.error}
        meaning={{
          ...refusals(),
          ...(isOrigin && { 400: t("shares.embed-refused", { example: ORIGIN }) }),
        }}
      />
      <div class="row">
        <button type="submit" class="button main" disabled={saving.isBusy}>
          {t("shares.make")}
        </button>
      </div>
    </form>
  );
}
