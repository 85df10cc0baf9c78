// The icon beside a value: a flag, a logo, or the first letter. It is decorative: the text next to
// it says the same.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { nameOf } from "../ui/hostnames.ts";
import { type Field, ofViews } from "../view/filters.ts";

type Icons = typeof import("icons").default;

const MARKED = ["browser", "country", "device", "os", "referrer"] as const;
type Marked = (typeof MARKED)[number];
/** As many colours of letters as panels.css has. */
const TONES = 6;
/** Google's sites of each country, which are too many to list. */
const GOOGLE = /^google\.(com?\.)?[a-z]{2,3}$/;

/** Where the icons are, once loaded. */
const icons = signal<Icons>();
let isRequested = false;

/** Load which icons there are; the sprite is loaded with the first that is shown. */
function load(): void {
  if (isRequested) return;
  isRequested = true;
  import("icons").then(
    (module) => {
      icons.value = module.default;
    },
    () => {
      isRequested = false;
    },
  );
}

interface Properties {
  field: Field;
  value: string;
}

/** Nothing for fields without icons. What is loading has the space already. */
export function Mark({ field, value }: Properties) {
  const of = MARKED.find((name) => name === ofViews(field));
  return of ? <Known of={of} value={value} /> : null;
}

function Known({ of, value }: { of: Marked; value: string }) {
  // After the rows are painted.
  useEffect(load, []);
  if (!icons.value) return <span class="mark" aria-hidden="true" />;
  const { sprite, ids } = icons.value;
  const id = ids[of][value] ?? (of === "referrer" ? idOfHost(value, ids[of]) : undefined);
  if (!id) return <Letter name={of === "referrer" ? nameOf(hostOf(value)) : value} />;
  return (
    <svg class={`mark ${of}`} aria-hidden="true">
      <use href={`${new URL(sprite, import.meta.url).pathname}#${id}`} />
    </svg>
  );
}

function idOfHost(value: string, ids: Record<string, string>): string | undefined {
  const host = hostOf(value);
  return ids[host] ?? (GOOGLE.test(host) ? ids.Google : undefined);
}

function hostOf(referrer: string): string {
  return referrer.replace(/\/.*$/s, "").replace(/^www\./, "");
}

function Letter({ name }: { name: string }) {
  const [letter = "…"] = /[\p{L}\p{N}]/u.exec(name) ?? [];
  const sum = [...name].reduce((sum, char) => sum + (char.codePointAt(0) ?? 0), 0);
  return (
    <span
      class="mark"
      data-letter={name === "(other)" ? "…" : letter.toUpperCase()}
      data-tone={sum % TONES}
      aria-hidden="true"
    />
  );
}
