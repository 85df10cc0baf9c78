// A text with elements in it, where t() alone gives nothing but text.

import type { ComponentChildren } from "preact";
import { Fragment } from "preact";

interface Properties {
  text: string;
  /** What takes the place of `{name}`, by its name. */
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
