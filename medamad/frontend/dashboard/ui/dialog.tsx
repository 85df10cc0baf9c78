// A modal dialog: it keeps the focus, and Escape or a click outside closes it.

import { X } from "lucide";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { t } from "../i18n/index.ts";
import { Icon } from "./icon.tsx";

/** Whether a dialog may focus a field: on phones the keyboard would cover it. */
export function hasKeyboard(): boolean {
  return matchMedia("(hover: hover)").matches;
}

interface Properties {
  title: string;
  /** Called after it was closed. */
  onClose: () => void;
  wide?: boolean;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, wide = false, children }: Properties) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement as HTMLElement | null;
    dialog?.showModal();
    return () => {
      dialog?.close();
      // Removing it before it is closed would lose the focus.
      before?.focus({ preventScroll: true });
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog natively
    <dialog
      ref={element}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={heading}
      onClose={onClose}
      onClick={(event) => event.target === element.current && element.current?.close()}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id={heading}>{title}</h2>
          <button type="button" class="quiet" onClick={() => element.current?.close()}>
            <Icon of={X} />
            <span class="hidden">{t("common.close")}</span>
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
