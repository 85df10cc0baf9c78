// A text field with suggestions below it: arrows move through them,
// Enter takes one.

import type { TargetedKeyboardEvent } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { shortFigure, t } from "../i18n/index.ts";
import { hasKeyboard } from "../ui/dialog.tsx";
import "../style/editor.css" with { type: "css" };

export interface Suggested {
  value: string;
  word: string;
  direction?: "ltr" | "auto";
  count?: number;
}

interface Properties {
  label: string;
  text: string;
  suggestions: readonly Suggested[] | undefined;
  /** The title of the suggestions, and the text shown if there are none. */
  title: string;
  none: string;
  /** The id of the field's description. */
  describedBy?: string;
  onText: (text: string) => void;
  onChoose: (value: string) => void;
  /** Accept what was typed; returns whether there was anything. */
  onEnter: () => boolean;
}

export function ValueField(properties: Properties) {
  const { label, text, suggestions, title, none, onText, onChoose, onEnter } = properties;
  const [marked, setMarked] = useState<string>();
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const all = suggestions ?? [];
  const at = all.findIndex(({ value }) => value === marked);
  const active = all[at];
  useEffect(() => {
    if (active) document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" });
  }, [at]);

  const choose = (value: string) => {
    onChoose(value);
    setMarked(undefined);
    input.current?.focus();
  };
  const mark = (place: number) => setMarked(all[Math.min(place, all.length - 1)]?.value);
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLInputElement>) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown") mark(at + 1);
    else if (event.key === "ArrowUp") mark(at - 1);
    else if (event.key === "Enter" && active) choose(active.value);
    else if (event.key !== "Enter" || !onEnter()) return;
    event.preventDefault();
  };
  return (
    <div class="value-field">
      <label class="field">
        <span>{label}</span>
        <input
          ref={input}
          role="combobox"
          aria-expanded={all.length > 0}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          {...(properties.describedBy && { "aria-describedby": properties.describedBy })}
          {...(active && { "aria-activedescendant": `${id}-${at}` })}
          autofocus={hasKeyboard()}
          value={text}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          onInput={(event) => {
            setMarked(undefined);
            onText(event.currentTarget.value);
          }}
          onKeyDown={onKeyDown}
        />
      </label>
      {all.length > 0 ? (
        <div id={`${id}-list`} class="suggestions" role="listbox" aria-label={title}>
          {all.map(({ value, word, direction, count }, place) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field above handles the keys
            // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field
            <div
              key={value}
              id={`${id}-${place}`}
              role="option"
              aria-selected={place === at}
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => choose(value)}
            >
              <bdi dir={direction ?? "auto"}>{word}</bdi>
              {count !== undefined && <span class="soft">{shortFigure(count)}</span>}
            </div>
          ))}
        </div>
      ) : (
        <p class="suggestions soft">{suggestions ? none : t("common.loading")}</p>
      )}
    </div>
  );
}
