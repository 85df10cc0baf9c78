// An annotation: its text, which links to the page about it, and when it is.

import type { Annotation } from "../api/types.ts";
import { annotationLabel } from "./spans.ts";

export function Noted({ of, zone }: { of: Annotation; zone: string }) {
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
      <span class="soft">{annotationLabel(of, zone)}</span>
    </>
  );
}
