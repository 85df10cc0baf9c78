// What is shown when something could not be loaded or done.

import { type ApiError, awayReason, isAway } from "../api/client.ts";
import { type Key, t } from "../i18n/index.ts";
import { refresh } from "../state/data.ts";

/** The meaning of each status, unless something more specific is known. */
const STATUSES: Record<number, Key> = {
  403: "refused.forbidden",
  404: "refused.gone",
  409: "refused.known",
  413: "refused.too-large",
  429: "refused.too-many",
};

/** What is expected of the fields that a 400 names. */
const FIELDS: Record<string, Key> = {
  hostname: "hostname.refused",
  password: "refused.password",
  username: "refused.username",
};

interface RefusalProperties {
  error: ApiError | undefined;
  /** The meaning of a status here, in the user's language. */
  meaning?: Record<number, string>;
}

/** Why something was refused, in the user's language, with the server's own message if it says more. */
export function Why({ error, meaning = {} }: RefusalProperties & { error: ApiError }) {
  const { status, message } = error;
  if (error.isAway) {
    // A collector that is not the primary says that settings cannot be changed there.
    return <Said reason={status === 503 && message} />;
  }
  if (meaning[status]) return <>{meaning[status]}</>;
  const known = status === 400 ? FIELDS[fieldOf(message)] : STATUSES[status];
  if (known || status >= 500) return <>{t(known ?? "refused.fault")}</>;
  return (
    <>
      {t("refused.request")} <span lang="en">{message}</span>
    </>
  );
}

function Said({ reason }: { reason: string | false }) {
  return (
    <>
      {t("away.title")}
      {reason && <span lang="en"> ({reason})</span>}
    </>
  );
}

/** The field that a message begins with. */
function fieldOf(message: string): string {
  return message.split(": ", 1)[0] as string;
}

/** Says that the daemon is unreachable; what is on the page stays, greyed out. */
export function Away() {
  if (!isAway.value) return null;
  return (
    <div class="away" role="alert">
      <strong>
        <Said reason={awayReason.value} />
      </strong>{" "}
      <span>{t("away.text")}</span>{" "}
      <button type="button" class="button" onClick={refresh}>
        {t("common.retry")}
      </button>
    </div>
  );
}

/** Replaces figures: says why they are missing and offers to retry. */
export function Trouble({ error }: { error: ApiError }) {
  return (
    <div class="trouble" role="alert">
      <strong>{t(error.isAway ? "away.title" : "error.title")}</strong>
      {!error.isAway && (
        <p>
          <Why error={error} />
        </p>
      )}
      <button type="button" class="button" onClick={refresh}>
        {t("common.retry")}
      </button>
    </div>
  );
}

/** Below a form: the error. */
export function Refusal({ error, meaning }: RefusalProperties) {
  return (
    <p class="refusal" role="alert">
      {error && <Why error={error} {...(meaning && { meaning })} />}
    </p>
  );
}
