// A menu button: arrows move through the choices, Enter chooses, Escape closes.

import { Check, ChevronDown } from "lucide";
import type { ComponentChildren, TargetedKeyboardEvent } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n/index.ts";
import { Icon } from "./icon.tsx";
import { keyName } from "./shortcuts.ts";

const MARGIN_PX = 8;

export interface Choice {
  label: ComponentChildren;
  /** The text that typing a letter searches, if the label is not a text. */
  text?: string;
  isChosen?: boolean;
  /** Whether it is chosen beside others. */
  isOption?: boolean;
  /** The page's shortcut for the same action, shown next to the label. */
  keys?: string;
  choose: () => void;
}

interface Properties {
  label: ComponentChildren;
  /** The purpose of the button, if the label alone does not say it. */
  title: string;
  /** Groups of choices, separated by lines. */
  groups: Choice[][];
  isOpen?: boolean;
  onToggle?: (isOpen: boolean) => void;
  class?: string;
  align?: "start" | "end";
  plain?: boolean;
  disabled?: boolean;
}

export function Menu({
  label,
  title,
  groups,
  align = "start",
  plain = false,
  disabled = false,
  ...rest
}: Properties) {
  const [isOpenHere, setOpenHere] = useState(false);
  const isOpen = rest.isOpen ?? isOpenHere;
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);

  const toggle = (open: boolean) => {
    setOpenHere(open);
    rest.onToggle?.(open);
  };

  const items = () => [
    ...(root.current?.querySelectorAll<HTMLButtonElement>("[role^=menuitem]") ?? []),
  ];

  useLayoutEffect(() => {
    if (isOpen && list.current) keepInWindow(list.current);
  }, [isOpen]);

  useEffect(() => {
    if (!isOpen) return undefined;
    const all = items();
    (all.find((item) => item.ariaChecked === "true") ?? all[0])?.focus();
    const leave = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) toggle(false);
    };
    document.addEventListener("pointerdown", leave);
    return () => document.removeEventListener("pointerdown", leave);
  }, [isOpen]);

  const close = () => {
    toggle(false);
    button.current?.focus();
  };

  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    if (!isOpen) return;
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const focus = (place: number) => all[(place + all.length) % all.length]?.focus();
    if (event.key === "Escape") close();
    else if (event.key === "ArrowDown") focus(at + 1);
    else if (event.key === "ArrowUp") focus(at - 1);
    else if (event.key === "Home") focus(0);
    else if (event.key === "End") focus(-1);
    else if (event.key === "Tab" && event.shiftKey) close();
    else if (event.key === "Tab") {
      toggle(false);
      return;
    } else if (/^\S$/.test(event.key)) {
      const sought = event.key.toLowerCase();
      const order = [...all.slice(at + 1), ...all.slice(0, at + 1)];
      order.find((item) => item.textContent?.trim().toLowerCase().startsWith(sought))?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it handles the keys of its content
    <div class={`menu ${rest.class ?? ""}`} ref={root} onKeyDown={onKeyDown}>
      <button
        ref={button}
        type="button"
        class={plain ? "quiet" : "button"}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        title={title}
        disabled={disabled}
        onClick={() => toggle(!isOpen)}
      >
        <span class="hidden">{t("panels.of", { list: title, value: "" })}</span>
        {label}
        {!plain && <Icon of={ChevronDown} size={14} />}
      </button>
      {isOpen && (
        <div
          ref={list}
          class={`menu-list ${align}`}
          role="menu"
          aria-label={title}
          // A long one scrolls on a phone.
          tabIndex={0}
        >
          {groups.map((group, place) => (
            // biome-ignore lint/a11y/useSemanticElements: a menu's group is not a form group
            <div role="group" key={place}>
              {group.map((choice, place) => (
                <button
                  key={place}
                  type="button"
                  role={roleOf(choice)}
                  {...(choice.isChosen !== undefined && { "aria-checked": choice.isChosen })}
                  tabIndex={-1}
                  onClick={() => {
                    close();
                    choice.choose();
                  }}
                >
                  <span class="menu-mark">{choice.isChosen && <Icon of={Check} size={14} />}</span>
                  <span class="menu-label">{choice.label}</span>
                  {choice.keys && <kbd>{choice.keys.split(" ").map(keyName).join(" ")}</kbd>}
                </button>
              ))}
            </div>
          ))}
        </div>
      )}
    </div>
  );
}

function roleOf({ isChosen, isOption }: Choice) {
  if (isChosen === undefined) return "menuitem";
  return isOption ? "menuitemcheckbox" : "menuitemradio";
}

/** Move a list that would extend beyond the window, as on a phone. */
function keepInWindow(list: HTMLElement): void {
  const { left, right } = list.getBoundingClientRect();
  const most = document.documentElement.clientWidth - MARGIN_PX;
  const shift = Math.max(Math.min(most - right, 0), MARGIN_PX - left);
  if (shift !== 0 && right - left < most) list.style.translate = `${shift}px`;
}
