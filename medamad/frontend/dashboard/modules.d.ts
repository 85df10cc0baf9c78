// Modules that the build generates, and files that it bundles.

declare module "*.css";

declare module "world-map" {
  /**
   * Outlines as SVG paths; `code` is the country's ISO 3166 code, "" if it has none. A country
   * that is too small for an outline is a dot.
   */
  const map: {
    width: number;
    height: number;
    countries: { code: string; path: string; isDot?: true }[];
  };
  export default map;
}

declare module "icons" {
  /**
   * The sprite's path from the scripts' folder, and the ids of its symbols by the API's fields and
   * their values; hosts of referrers besides their names.
   */
  const icons: {
    sprite: string;
    ids: Record<"browser" | "country" | "device" | "os" | "referrer", Record<string, string>>;
  };
  export default icons;
}

declare module "names" {
  /** Country codes (ISO 3166) and language codes (BCP 47) by English name. */
  const names: {
    countries: Record<string, string>;
    languages: Record<string, string>;
  };
  export default names;
}

declare module "punycode/punycode.es6.js" {
  /** Throws a RangeError if the text is not punycode. */
  export function decode(text: string): string;
}
