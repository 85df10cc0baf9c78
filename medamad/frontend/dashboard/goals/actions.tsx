// What the dialogs of goals and funnels share.

import { useState } from "preact/hooks";
import { change } from "../api/client.ts";
import { t } from "../i18n/index.ts";
import type { Saving } from "../settings/form-state.ts";
import { refresh } from "../state/data.ts";
import { sitePath } from "../state/share.ts";

/** The path of a website's goals or funnels. */
export function pathOf(hostname: string, what: "goals" | "funnels"): string {
  return `/websites/${encodeURIComponent(hostname)}/${what}`;
}

/** The path of a funnel's page. */
export function funnelPath(hostname: string, id: string): string {
  return `${sitePath(hostname)}/funnels/${encodeURIComponent(id)}`;
}

interface Properties {
  /** The path of what is changed; undefined if it is new. */
  path: string | undefined;
  isDemo: boolean;
  isComplete: boolean;
  saving: Saving;
  onClose: () => void;
  /** Called instead once it is deleted. */
  onDelete?: (() => void) | undefined;
}

/** The buttons that save and delete. */
export function Actions({
  path,
  isDemo,
  isComplete,
  saving,
  onClose,
  onDelete = onClose,
}: Properties) {
  const [isSure, setSure] = useState(false);
  const remove = async () => {
    if (!isSure) return setSure(true);
    if (path && (await saving.save(() => change("DELETE", path)))) {
      onDelete();
      refresh();
    }
    return undefined;
  };
  return (
    <>
      {isDemo && <p class="soft">{t("demo.note")}</p>}
      <div class="row">
        <button type="submit" class="button main" disabled={isDemo || !isComplete}>
          {t("goals.save")}
        </button>
        {path && (
          <button type="button" class="button danger" disabled={isDemo} onClick={remove}>
            {t(isSure ? "goals.delete-sure" : "common.delete")}
          </button>
        )}
      </div>
    </>
  );
}
