// A translated text with elements in it; t() returns only strings.

import type { ComponentChildren } from "preact";
import { Fragment } from "preact";

interface Properties {
  text: string;
  /** The replacement for each `{name}`. */
  values: Record<string, ComponentChildren>;
}

export function Filled({ text, values }: Properties) {
  return (
    <>
      {text.split(/\{(\w+)\}/).map((part, place) => (
        <Fragment key={place}>{place % 2 ? values[part] : part}</Fragment>
      ))}
    </>
  );
}
