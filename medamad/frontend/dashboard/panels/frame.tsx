// What every panel has: a heading, a link to the full list, and a way back from a sublist.

import { ArrowLeft, List } from "lucide";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { t } from "../i18n/index.ts";
import { Icon } from "../ui/icon.tsx";
import { later } from "../ui/lazy.tsx";
import { type Listing, listLabel } from "./lists.ts";

const Details = later(() => import("./details.tsx").then(({ Details }) => Details));

interface FrameProperties {
  title: string;
  head?: ComponentChildren;
  /** The full list. */
  listing: Listing;
  further?: Record<string, string>;
  /** The parent of a sublist. */
  of?: string;
  class?: string;
  children: ComponentChildren;
}

/** A panel: heading, content, and a link to the full list. */
export function Frame(properties: FrameProperties) {
  const { title, head, listing, further, of, children } = properties;
  const heading = useId();
  const [isOpen, setOpen] = useState(false);
  const label = t("panels.full-of", { list: listLabel(listing) });
  return (
    <section class={`card panel ${properties.class ?? ""}`} aria-labelledby={heading}>
      <header class="panel-head">
        <h2 id={heading}>{title}</h2>
        {head}
      </header>
      {children}
      <footer class="panel-foot">
        <button
          type="button"
          class="quiet"
          aria-haspopup="dialog"
          onClick={() => setOpen(true)}
          title={label}
          aria-label={label}
        >
          <Icon of={List} size={16} /> {t("panels.full")}
        </button>
      </footer>
      {isOpen && (
        <Details
          listing={listing}
          further={further ?? {}}
          {...(of !== undefined && { of })}
          onClose={() => setOpen(false)}
        />
      )}
    </section>
  );
}

interface BackProperties {
  label: string;
  onClick: () => void;
  children: ComponentChildren;
}

/** Above a sublist: its name, and a way back. */
export function Back({ label, onClick, children }: BackProperties) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // The row that was pressed is gone.
    if (document.activeElement === document.body) button.current?.focus();
  }, []);
  return (
    <p class="panel-back">
      <button
        ref={button}
        type="button"
        class="quiet"
        title={label}
        onClick={(event) => {
          event.currentTarget.closest<HTMLElement>(".panel-body")?.focus();
          onClick();
        }}
      >
        <Icon of={ArrowLeft} size={16} />
        <span class="hidden">{label}</span>
      </button>
      <bdi>{children}</bdi>
    </p>
  );
}
