// What is shown in the place of something that could not be read or done.

import type { ApiError } from "../api/client.ts";
import { t } from "../i18n/index.ts";
import { refresh } from "../state/ask.ts";

/** In the place of figures: says why, and offers to try again. */
export function Trouble({ error }: { error: ApiError }) {
  return (
    <div class="trouble" role="alert">
      <strong>{t(error.isAway ? "away.title" : "error.title")}</strong>
      {!error.isAway && <p>{error.message}</p>}
      <button type="button" class="button" onClick={refresh}>
        {t("common.retry")}
      </button>
    </div>
  );
}

interface RefusalProperties {
  error: ApiError | undefined;
  /** What a status means here, in the reader's language. */
  meaning?: Record<number, string>;
}

/** Below a form: what was refused, in the server's words where there are none of ours. */
export function Refusal({ error, meaning = {} }: RefusalProperties) {
  return (
    <p class="refusal" role="alert">
      {error && (error.isAway ? t("away.title") : (meaning[error.status] ?? error.message))}
    </p>
  );
}
