// The head of a page with figures: its name, the toolbar beside it, and the filters below.

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { AddFilter, FilterBar } from "../filters/filter-bar.tsx";
import { Controls } from "./controls.tsx";

export function ViewHead({ children }: { children: ComponentChildren }) {
  const adding = useRef<HTMLButtonElement>(null);
  return (
    <>
      <div class="view-head">
        {children}
        <div class="toolbar">
          <AddFilter button={adding} />
          <Controls />
        </div>
      </div>
      <FilterBar button={adding} />
    </>
  );
}
