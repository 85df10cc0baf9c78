// Switch to another of many websites: search for it by its name.

import { useState } from "preact/hooks";
import type { Website } from "../api/types.ts";
import { ValueField } from "../filters/value-field.tsx";
import { t } from "../i18n/index.ts";
import { at } from "../state/paths.ts";
import { Dialog } from "../ui/dialog.tsx";
import { isCalled, nameOf } from "../ui/hostnames.ts";

const MOST_SHOWN = 100;

interface Properties {
  websites: readonly Website[];
  /** The path of the current website's setup. */
  setup: string;
  choose: (hostname: string) => void;
  onClose: () => void;
}

export function Switcher({ websites, setup, choose, onClose }: Properties) {
  const [text, setText] = useState("");
  const found = websites.filter(({ hostname }) => isCalled(hostname, text));
  const suggestions = found
    .slice(0, MOST_SHOWN)
    .map(({ hostname }) => ({ value: hostname, word: nameOf(hostname) }));
  const take = (hostname: string | undefined) => {
    if (hostname === undefined) return false;
    onClose();
    choose(hostname);
    return true;
  };
  return (
    <Dialog title={t("nav.switch")} onClose={onClose}>
      <ValueField
        label={t("websites.search")}
        text={text}
        suggestions={suggestions}
        title={t("nav.websites")}
        none={t("websites.none-found", { text })}
        onText={setText}
        onChoose={take}
        onEnter={() => take(found[0]?.hostname)}
      />
      <p class="row">
        <a class="button" href={setup}>
          {t("view.setup")}
        </a>
        <a class="button" href={at("/dashboard/")}>
          {t("nav.websites")}
        </a>
      </p>
    </Dialog>
  );
}
