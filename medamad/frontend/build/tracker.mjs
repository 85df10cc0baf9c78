// Builds the tracker: one script for every set of features.

import { build } from "esbuild";
import { minify } from "terser";
import { putIn } from "./files.mjs";

/** The optional features, in the order of a script's name. */
export const FEATURES = [
  "click-events",
  "page-events",
  "outbound-links",
  "file-downloads",
  "not-found",
  "hash-routing",
  "page-control",
];

/**
 * Write NAME.js for every set of features, NAME being their names joined by dots, or "default", and
 * named/NAME.js, which is the same for an address from which the interface is a step farther. In
 * returning/ are those that also report when the visitor was here last, in uncounted/ those that
 * have browsers remember nothing, where visitors are not counted. And write opt-out.js. `before` is
 * the folder of the build before, if there was one.
 * Returns the sizes of the first by name, and of the last.
 */
export async function buildTracker(folder, before) {
  const put = putIn(folder, before);
  const sets = Array.from({ length: 2 ** FEATURES.length }, (_, bits) =>
    FEATURES.filter((_feature, place) => bits & (1 << place)),
  );
  const sizes = new Map();
  for (const features of sets) {
    const name = features.join(".") || "default";
    sizes.set(name, await putScript(put, "", name, await compose(features, {})));
    await putScript(put, "returning/", name, await compose(features, { isReturning: true }));
    await putScript(put, "uncounted/", name, await compose(features, { isUncounted: true }));
  }
  const optOut = await build({
    entryPoints: [`${import.meta.dirname}/../tracker/opt-out.ts`],
    bundle: true,
    write: false,
    format: "iife",
    target: "es2021",
    charset: "utf8",
    minify: true,
  });
  sizes.set("opt-out", await put("opt-out.js", optOut.outputFiles[0].text));
  return sizes;
}

async function putScript(put, folder, name, script) {
  await put(`${folder}named/${name}.js`, script.replace("'api'", "'../api'"));
  return await put(`${folder}${name}.js`, script);
}

async function compose(features, { isReturning = false, isUncounted = false }) {
  const chosen = FEATURES.map((feature) => [
    feature.toUpperCase().replaceAll("-", "_"),
    String(features.includes(feature)),
  ]);
  const bundled = await build({
    entryPoints: [`${import.meta.dirname}/../tracker/tracker.ts`],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2021",
    treeShaking: true,
    define: {
      ...Object.fromEntries(chosen),
      RETURNING: String(isReturning),
      UNCOUNTED: String(isUncounted),
    },
    minifySyntax: true,
  });
  // Use one keyword for all variables and one operator for all comparisons, which compresses better.
  const plain = bundled.outputFiles[0].text
    .replaceAll(/\b(const|var) /g, "let ")
    .replaceAll(/([!=]=)=/g, "$1");
  const { code } = await minify(plain, {
    ecma: 2020,
    toplevel: true,
    compress: { inline: 1, passes: 3, unsafe: true, unsafe_arrows: true, unsafe_methods: true },
    mangle: true,
    format: { quote_style: 1 },
  });
  // A block keeps the variables from the page, in a module as in any other script.
  return `{${code.replace(/;$/, "")}}`;
}
