// Modules that the build makes, and files that it takes along.

declare module "*.css";

declare module "world-map" {
  /**
   * Outlines as SVG paths; `code` is the country's ISO 3166 code, "" for a land without. A country
   * that is too small for an outline is a dot.
   */
  const map: {
    width: number;
    height: number;
    countries: { code: string; path: string; isDot?: true }[];
  };
  export default map;
}

declare module "names" {
  /** The codes of countries (ISO 3166) and of languages (BCP 47) by their English names. */
  const names: {
    countries: Record<string, string>;
    languages: Record<string, string>;
  };
  export default names;
}

declare module "punycode/punycode.es6.js" {
  /** Throws a RangeError where the text is no punycode. */
  export function decode(text: string): string;
}
