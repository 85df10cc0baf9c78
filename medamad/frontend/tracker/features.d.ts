// The script's features: true or false, fixed at build time.

declare const CLICK_EVENTS: boolean;
declare const PAGE_EVENTS: boolean;
declare const OUTBOUND_LINKS: boolean;
declare const FILE_DOWNLOADS: boolean;
declare const NOT_FOUND: boolean;
declare const HASH_ROUTING: boolean;
declare const PAGE_CONTROL: boolean;
/** Whether the server tells new visitors from returning ones; not a feature that websites choose. */
declare const RETURNING: boolean;
/** Whether visitors are not counted, so that nothing is asked of the browser's cache. */
declare const UNCOUNTED: boolean;

/** Report a custom event, with properties if any. */
declare var medamad: Medamad;

interface Medamad {
  (event: string, properties?: object): void;
  /** Begin a view of the page's address, or of a path. */
  view: (path?: string) => void;
}

/** The functions that a page defines. */
type Hooks = Record<string, ((hit: object) => object | undefined) | undefined>;

/** A visitor's earlier views of the website today, and when the visitor was here last. */
interface Returning {
  n: number;
  since?: string;
}

/** The earlier views today, by the browser's cache entry of a URL. */
type Before = number | Returning;

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
  /** When the visitor was here last. */
  since?: string | undefined;
  /** The time zone. */
  t: string;
  /** The width of the window, in pixels. */
  w: number;
  /** Properties of the page. */
  d: object;
}
