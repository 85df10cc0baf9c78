// Tabs: the selected one is remembered. Arrow keys move between them.

import type { TargetedKeyboardEvent } from "preact";
import { useState } from "preact/hooks";
import { local } from "../state/local-storage.ts";

interface Properties<Name extends string> {
  /** The label of the tab list. */
  label: string;
  /** The id of the element that shows the selected tab. */
  panel: string;
  names: readonly Name[];
  words: (name: Name) => string;
  chosen: Name;
  choose: (name: Name) => void;
}

export function Tabs<Name extends string>(properties: Properties<Name>) {
  const { label, panel, names, words, chosen, choose } = properties;
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>) => {
    const tabs = [...event.currentTarget.children] as HTMLElement[];
    const at = names.indexOf(chosen);
    const places: Record<string, number> = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      Home: 0,
      End: names.length - 1,
    };
    const place = places[event.key];
    if (place === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = (place + names.length) % names.length;
    event.preventDefault();
    choose(names[next] as Name);
    tabs[next]?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`${panel}-${name}`}
          aria-selected={name === chosen}
          aria-controls={panel}
          tabIndex={name === chosen ? 0 : -1}
          onClick={() => choose(name)}
        >
          {words(name)}
        </button>
      ))}
    </div>
  );
}

/** The selected tab as last left in this browser; otherwise the first. */
export function useTab<Name extends string>(
  kept: string,
  names: readonly Name[],
): [Name, (name: Name) => void] {
  const key = `medamad.tab.${kept}`;
  const [tab, setTab] = useState(
    () => names.find((name) => name === local?.getItem(key)) ?? (names[0] as Name),
  );
  const choose = (name: Name) => {
    local?.setItem(key, name);
    setTab(name);
  };
  return [names.includes(tab) ? tab : (names[0] as Name), choose];
}
