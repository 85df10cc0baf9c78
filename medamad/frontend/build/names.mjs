// Gives the dashboard the codes of the names that the interface uses (made by hatch_build.py).

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";

const FILE = resolve(import.meta.dirname, "../../_build/names.json");

/** The English names of countries and languages by code, and countries by their numeric codes. */
export async function readNames() {
  return JSON.parse(await readFile(FILE, "utf-8"));
}

/** An esbuild plugin that gives the module "names": { countries, languages }, codes by name. */
export const names = {
  name: "names",
  setup(build) {
    build.onResolve({ filter: /^names$/ }, ({ path }) => ({ path, namespace: "names" }));
    build.onLoad({ filter: /.*/, namespace: "names" }, async () => {
      const { territories, languages } = await readNames();
      return {
        contents: JSON.stringify({
          countries: codesByName(territories),
          languages: codesByName(languages),
        }),
        loader: "json",
        watchFiles: [FILE],
      };
    });
  },
};

/** Languages come with underscores, as CLDR writes them; browsers want hyphens. */
function codesByName(names) {
  return Object.fromEntries(
    Object.entries(names).map(([code, name]) => [name, code.replaceAll("_", "-")]),
  );
}
