// The JSX types of cally's elements.

import type { HTMLAttributes } from "preact";

interface CalendarAttributes extends HTMLAttributes<HTMLElement> {
  value?: string;
  min?: string;
  max?: string;
  today?: string;
  locale?: string;
  "focused-date"?: string;
  months?: number;
  "page-by"?: "months" | "single";
}

declare module "preact" {
  namespace JSX {
    interface IntrinsicElements {
      "calendar-range": CalendarAttributes;
      "calendar-month": HTMLAttributes<HTMLElement> & { offset?: number };
    }
  }
}
