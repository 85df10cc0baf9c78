// A text with a button that copies it.

import { Check, Copy } from "lucide";
import { useState } from "preact/hooks";
import { t } from "../i18n/index.ts";
import { Icon } from "./icon.tsx";

const SHOWN_MS = 2_000;

export function Copyable({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await writeToClipboard(text);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  return (
    <div class="copyable">
      <figure aria-label={label}>
        <code>{text}</code>
      </figure>
      <button type="button" class="button" onClick={copy}>
        <Icon of={isCopied ? Check : Copy} size={16} />
        <span aria-live="polite">{t(isCopied ? "common.copied" : "common.copy")}</span>
      </button>
    </div>
  );
}

/** Browsers expose the clipboard API only on HTTPS and localhost. */
async function writeToClipboard(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
