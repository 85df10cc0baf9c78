// Bundles the dashboard: a page, and files under assets/ with content hashes in their names.

import { readFile } from "node:fs/promises";
import { basename, relative, resolve } from "node:path";
import { build } from "esbuild";
import { minify } from "terser";
import { putIn } from "./files.mjs";
import { icons } from "./icons.mjs";
import { laterThan } from "./later.mjs";
import { lucide } from "./lucide.mjs";
import { worldMap } from "./map.mjs";
import { names } from "./names.mjs";
import { sheets } from "./sheets.mjs";

const SOURCE = resolve(import.meta.dirname, "../dashboard");

/**
 * Write the dashboard. `before` is the folder of the build before, if there was one.
 * Returns the sizes of its files by name, and what the first view loads.
 */
export async function buildDashboard(folder, before) {
  const put = putIn(folder, before);
  const bundled = await build({
    absWorkingDir: SOURCE,
    entryPoints: { main: `${SOURCE}/main.tsx`, theme: `${SOURCE}/theme.ts` },
    bundle: true,
    write: false,
    outdir: `${folder}/assets`,
    format: "esm",
    splitting: true,
    target: ["chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    metafile: true,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    legalComments: "none",
    plugins: [laterThan(`${SOURCE}/app.tsx`), names, icons, lucide, sheets, worldMap],
  });
  const sizes = new Map();
  for (const file of bundled.outputFiles) {
    const path = relative(folder, file.path);
    sizes.set(path, await put(path, await smallest(file)));
  }
  const outputs = new Map(
    Object.entries(bundled.metafile.outputs).map(([path, output]) => [
      relative(folder, resolve(SOURCE, path)),
      output,
    ]),
  );
  const entry = (name) =>
    [...outputs].find(([, { entryPoint }]) => entryPoint && basename(entryPoint) === name)[0];
  const main = entry("main.tsx");
  const scripts = loadedWith(main, outputs, folder);
  const style = relative(folder, resolve(SOURCE, outputs.get(main).cssBundle));
  const theme = entry("theme.ts");
  const page = await fill({ main, style, theme, further: scripts.filter((path) => path !== main) });
  sizes.set("index.html", await put("index.html", page));
  sizes.set("share.html", await put("share.html", shared(page)));
  sizes.set("icon.svg", await put("icon.svg", await readFile(`${SOURCE}/icon.svg`)));
  return { sizes, first: ["index.html", "icon.svg", theme, style, ...scripts] };
}

/** The page of a share link: the same without the account. */
function shared(page) {
  return page.replace(/^<link rel="preload" href="\/api\/user".*\n/m, "");
}

/** A script minified further by terser, which is slow. */
async function smallest({ path, contents, text }) {
  if (!path.endsWith(".js")) return contents;
  // No function is asked for its length, or called by `new` if it does not use `this`.
  const compress = { passes: 2, keep_fargs: false, unsafe_arrows: true };
  return (await minify(text, { ecma: 2020, module: true, compress })).code;
}

/** A script's static imports, transitively. */
function loadedWith(path, outputs, folder, found = []) {
  if (found.includes(path)) return found;
  found.push(path);
  for (const { path: imported, kind } of outputs.get(path).imports) {
    if (kind === "import-statement") {
      loadedWith(relative(folder, resolve(SOURCE, imported)), outputs, folder, found);
    }
  }
  return found;
}

async function fill({ main, style, theme, further }) {
  const preloads = further.map((path) => `<link rel="modulepreload" href="/dashboard/${path}">\n`);
  const page = await readFile(`${SOURCE}/index.html`, "utf-8");
  return page
    .replace("%STYLE%", `/dashboard/${style}`)
    .replace("%THEME%", `/dashboard/${theme}`)
    .replace("%MAIN%", `/dashboard/${main}`)
    .replace("<!-- preloads -->\n", preloads.join(""));
}
