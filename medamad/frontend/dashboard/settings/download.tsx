// What is stored of a website, as a file to download.

import { useState } from "preact/hooks";
import { address } from "../api/client.ts";
import { t } from "../i18n/index.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Filled } from "../ui/filled.tsx";
import { nameOf } from "../ui/hostnames.ts";

const WHAT = ["views", "events", "statistics"] as const;
type What = (typeof WHAT)[number];

/** Names that are the same in every language. */
const FORMATS = { csv: "CSV", ndjson: "NDJSON" };
type Format = keyof typeof FORMATS;

export function Download({ hostname, onClose }: { hostname: string; onClose: () => void }) {
  const [what, setWhat] = useState<What>("views");
  const [format, setFormat] = useState<Format>("csv");
  const path = `/website/${encodeURIComponent(hostname)}/export`;
  return (
    <Dialog title={t("sites.download-of", { hostname: nameOf(hostname) })} onClose={onClose}>
      <div class="form">
        <label class="field">
          <span>{t("download.what")}</span>
          <select
            autofocus
            value={what}
            onChange={(event) => setWhat(event.currentTarget.value as What)}
          >
            {WHAT.map((each) => (
              <option key={each} value={each}>
                {t(`download.${each}`)}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>{t("download.format")}</span>
          <select
            value={format}
            onChange={(event) => setFormat(event.currentTarget.value as Format)}
          >
            {Object.entries(FORMATS).map(([each, name]) => (
              <option key={each} value={each}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <p class="soft">
          <Filled text={t("download.text")} values={{ command: <code>medamad import</code> }} />
        </p>
        <div class="row">
          <a
            class="button main"
            href={address(path, { what, format })}
            download={`${hostname}-${what}.${format}`}
          >
            {t("sites.download")}
          </a>
          <button type="button" class="button" onClick={onClose}>
            {t("common.close")}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
