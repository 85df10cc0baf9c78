// Keyboard shortcuts for the whole page, and the list of those that are active.

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Shortcut {
  /** The keys in sequence, as in KeyboardEvent.key: "?", "t", "g w". */
  keys: string;
  /** What they do, in the user's language. */
  label: string;
  act: () => void;
}

/** A key as keyboards name it: W is typed with Shift. */
export function keyName(key: string): string {
  const arrows: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→" };
  return arrows[key] ?? key.replace(/^[A-Z]$/, "⇧$&");
}

const inForce = signal<readonly (() => readonly Shortcut[])[]>([]);

/** The shortcuts of all mounted components. */
export function shortcuts(): Shortcut[] {
  return inForce.value.flatMap((given) => given());
}

/** Register shortcuts while the component is mounted. */
export function useShortcuts(given: readonly Shortcut[]): void {
  const latest = useRef(given);
  latest.current = given;
  useLayoutEffect(() => {
    const read = () => latest.current;
    inForce.value = [...inForce.peek(), read];
    return () => {
      inForce.value = inForce.peek().filter((other) => other !== read);
    };
  }, []);
}

const SEQUENCE_MS = 1_000;
let pressed = "";
let pressedAt = 0;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.matches("input:not([type=checkbox], [type=radio]), select, textarea"))
  );
}

addEventListener("keydown", (event) => {
  const isModified = event.ctrlKey || event.metaKey || event.altKey;
  const isElsewhere = isTyping(event.target) || document.querySelector("dialog[open], .menu-list");
  if (isModified || event.defaultPrevented || event.isComposing || isElsewhere) return;
  const isSequence = event.timeStamp - pressedAt < SEQUENCE_MS;
  const keys = isSequence ? `${pressed} ${event.key}` : event.key;
  const all = shortcuts();
  const found =
    all.find((shortcut) => shortcut.keys === keys) ??
    all.find((shortcut) => shortcut.keys === event.key);
  // What ended a sequence begins none.
  pressed = found?.keys.includes(" ") ? "" : event.key;
  pressedAt = event.timeStamp;
  if (found) {
    event.preventDefault();
    found.act();
  }
});
