// Asks for the password of a share link.

import type { TargetedSubmitEvent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { change, showShare } from "../api/client.ts";
import { t } from "../i18n/index.ts";
import { useSaving } from "../settings/form-state.ts";
import { refresh } from "../state/data.ts";
import { Refusal } from "../ui/trouble.tsx";
import "../style/websites.css" with { type: "css" };

export function Unlock({ id }: { id: string }) {
  const [password, setPassword] = useState("");
  const saving = useSaving();
  useEffect(() => {
    document.title = "medamad";
  }, []);
  const enter = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    await saving.save(async () => {
      const { key } = await change<{ key: string }>("POST", `/shared/${id}`, { password });
      showShare(key);
      refresh();
    });
  };
  return (
    <main class="login">
      <form class="card form login-form" onSubmit={enter}>
        <h1>{t("share.locked")}</h1>
        <label class="field">
          <span>{t("login.password")}</span>
          <input
            type="password"
            autocomplete="off"
            autofocus
            required
            maxLength={1024}
            value={password}
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
        </label>
        <Refusal error={saving.error} meaning={{ 401: t("share.wrong") }} />
        <button type="submit" class="button main" disabled={saving.isBusy}>
          {t("share.open")}
        </button>
      </form>
    </main>
  );
}
