// Imports each of lucide's icons by itself.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname } from "node:path";

const INDEX = createRequire(import.meta.url)
  .resolve("lucide")
  .replace(/dist\/.*/, "dist/esm/iconsAndAliases.mjs");
const EXPORT = /^export \{([^}]*)\} from '\.\/(.*)';$/gm;
const IMPORT = /^import \{([^}]*)\} from "lucide";/m;

/** Return the file of each icon by its names. */
async function files() {
  const text = await readFile(INDEX, "utf-8");
  return new Map(
    [...text.matchAll(EXPORT)].flatMap(([, names, file]) =>
      names.split(",").map((name) => [name.replace("default as", "").trim(), file]),
    ),
  );
}

/**
 * An esbuild plugin. Through the index of lucide, all icons would be part of the first view, whose
 * modules import some of them.
 */
export const lucide = {
  name: "lucide",
  setup(build) {
    const known = files();
    build.onLoad({ filter: /\.tsx$/ }, async ({ path }) => {
      const icons = await known;
      const text = await readFile(path, "utf-8");
      const contents = text.replace(IMPORT, (_, names) =>
        names
          .split(",")
          .filter((name) => name.trim())
          .map((name) => {
            const [icon, local = icon] = name.trim().split(" as ");
            return `import ${local} from "${dirname(INDEX)}/${icons.get(icon)}";`;
          })
          .join(" "),
      );
      return { contents, loader: "tsx" };
    });
  },
};
