// Styles of parts that are imported while the page runs: they come with the part's script.

import { readFile } from "node:fs/promises";
import { transform } from "esbuild";

/** An esbuild plugin: `import "x.css" with { type: "css" }` applies a stylesheet to the page. */
export const sheets = {
  name: "sheets",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path, with: { type } }) => {
      if (type !== "css") return null;
      const { code } = await transform(await readFile(path, "utf-8"), {
        loader: "css",
        minify: true,
        target: build.initialOptions.target,
      });
      return {
        contents: `const sheet = new CSSStyleSheet();
sheet.replaceSync(${JSON.stringify(code.trim())});
document.adoptedStyleSheets.push(sheet);`,
        loader: "js",
      };
    });
  },
};
