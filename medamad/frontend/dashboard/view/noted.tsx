// An annotation: its text, which links to the page about it, and when it is.

import type { Annotation } from "../api/types.ts";

interface Properties {
  of: Annotation;
  when: string;
}

export function Noted({ of, when }: Properties) {
  const { text, link } = of;
  return (
    <>
      {link ? (
        <a href={link} target="_blank" rel="noopener noreferrer">
          {text}
        </a>
      ) : (
        <bdi>{text}</bdi>
      )}{" "}
      <span class="soft">{when}</span>
    </>
  );
}
