// What tokens and share links share: a name, a list, and revocation.

import type { ComponentChildren, TargetedSubmitEvent } from "preact";
import { change } from "../api/client.ts";
import { moment, t } from "../i18n/index.ts";
import { refresh } from "../state/data.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Refusal } from "../ui/trouble.tsx";
import { useSaving } from "./form-state.ts";

export const MAX_NAME = 64;

/** Why one cannot be created, by status. */
export function refusals(): Record<number, string> {
  return { 409: t("grants.full") };
}

/** A day in the user's format. */
export function dayOf(unixSeconds: number): string {
  return moment(new Date(unixSeconds * 1000), { dateStyle: "medium" });
}

interface NameProperties {
  value: string;
  onInput: (value: string) => void;
}

export function NameField({ value, onInput }: NameProperties) {
  return (
    <label class="field">
      <span>{t("grants.name")}</span>
      <input
        required
        autocomplete="off"
        maxLength={MAX_NAME}
        pattern=".*\S.*"
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}

interface GrantProperties {
  name: string;
  children: ComponentChildren;
  isDemo: boolean;
  onRevoke: () => void;
}

export function Grant({ name, children, isDemo, onRevoke }: GrantProperties) {
  return (
    <li>
      <div class="grant">
        <strong>{name}</strong>
        {children}
      </div>
      <button
        type="button"
        class="button danger"
        disabled={isDemo}
        aria-label={t("grants.revoke-of", { name })}
        onClick={onRevoke}
      >
        {t("grants.revoke")}
      </button>
    </li>
  );
}

interface RevokeProperties {
  name: string;
  path: string;
  /** Called with a message about what was done, or with nothing. */
  onClose: (done?: string) => void;
}

export function Revoke({ name, path, onClose }: RevokeProperties) {
  const saving = useSaving();
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (await saving.save(() => change("DELETE", path))) {
      refresh();
      onClose(t("grants.revoked", { name }));
    }
  };
  return (
    <Dialog title={t("grants.revoke-of", { name })} onClose={() => onClose()}>
      <form class="form" onSubmit={submit}>
        <p>{t("grants.revoke-text")}</p>
        <Refusal error={saving.error} />
        <div class="row">
          <button type="submit" class="button danger" disabled={saving.isBusy}>
            {t("grants.revoke")}
          </button>
          <button type="button" class="button" onClick={() => onClose()}>
            {t("common.cancel")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
