// What the script is composed of: true or false, fixed when it is built.

declare const CLICK_EVENTS: boolean;
declare const PAGE_EVENTS: boolean;
declare const OUTBOUND_LINKS: boolean;
declare const FILE_DOWNLOADS: boolean;
declare const NOT_FOUND: boolean;
declare const HASH_ROUTING: boolean;

interface Window {
  /** Report an event of a page's own, with properties if it has any. */
  medamad: (event: string, properties?: object) => void;
}
