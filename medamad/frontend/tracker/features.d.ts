// The script's features: true or false, fixed at build time.

declare const CLICK_EVENTS: boolean;
declare const PAGE_EVENTS: boolean;
declare const OUTBOUND_LINKS: boolean;
declare const FILE_DOWNLOADS: boolean;
declare const NOT_FOUND: boolean;
declare const HASH_ROUTING: boolean;

/** Report a custom event, with properties if any. */
declare var medamad: (event: string, properties?: object) => void;

/** A view as it is reported; GET /openapi.yaml documents the fields. */
interface Load {
  e: "load";
  /** The beacon. */
  b: string;
  /** The URLs of the page and of the referrer. */
  u: string;
  r: string;
  /** Whether this is the visitor's first view today, the first of this page, and its number. */
  p: boolean;
  q: boolean;
  n: number;
  /** The time zone. */
  t: string;
  /** The width of the window, in pixels. */
  w: number;
  /** Properties of the page. */
  d: object;
}
