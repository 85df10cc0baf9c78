// Modules that the build makes, and files that it takes along.

declare module "*.css";

declare module "world-map" {
  /** Outlines as SVG paths; `id` is the country's ISO 3166 numeric code, "" for a land without. */
  const map: {
    width: number;
    height: number;
    countries: { id: string; name: string; path: string }[];
  };
  export default map;
}

declare module "names" {
  /** The English names that the interface uses, by code; and countries by numeric code. */
  const names: {
    territories: Record<string, string>;
    languages: Record<string, string>;
    numeric: Record<string, string>;
  };
  export default names;
}
