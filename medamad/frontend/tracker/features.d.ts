// What the script is composed of: true or false, fixed when it is built.

declare const CLICK_EVENTS: boolean;
declare const PAGE_EVENTS: boolean;
declare const OUTBOUND_LINKS: boolean;
declare const FILE_DOWNLOADS: boolean;
declare const NOT_FOUND: boolean;
declare const HASH_ROUTING: boolean;

/** Report an event of a page's own, with properties if it has any. */
declare var medamad: (event: string, properties?: object) => void;

/** A view as it is reported; `contract` of the fields: GET /openapi, the events. */
interface Load {
  e: "load";
  /** The beacon. */
  b: string;
  /** The address of the page, and that from which the visitor came. */
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
