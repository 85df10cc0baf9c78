// The list of the keyboard shortcuts that are active.

import { t } from "../i18n/index.ts";
import { Dialog } from "./dialog.tsx";
import { keyName, shortcuts } from "./shortcuts.ts";

export function Keys({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title={t("shortcuts.title")} onClose={onClose}>
      <dl class="keys">
        {shortcuts().map(({ keys, label }) => (
          <div class="keys-row" key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{keyName(key)}</kbd>
              ))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
