// Composes the tracker: one script for every set of features that an account may choose.

import { build } from "esbuild";
import { minify } from "terser";
import { put } from "./files.mjs";

/** The features beside the default, in the order in which a script's name lists them. */
export const FEATURES = [
  "click-events",
  "page-events",
  "outbound-links",
  "file-downloads",
  "not-found",
  "hash-routing",
];

/**
 * Write NAME.js for every set of features, NAME being their names joined by dots, or "default".
 * Gives the sizes of each by name.
 */
export async function buildTracker(folder) {
  const sets = Array.from({ length: 2 ** FEATURES.length }, (_, bits) =>
    FEATURES.filter((_feature, place) => bits & (1 << place)),
  );
  const sizes = new Map();
  for (const features of sets) {
    const name = features.join(".") || "default";
    sizes.set(name, await put(`${folder}/${name}.js`, await compose(features)));
  }
  return sizes;
}

async function compose(features) {
  const chosen = FEATURES.map((feature) => [
    feature.toUpperCase().replaceAll("-", "_"),
    String(features.includes(feature)),
  ]);
  const bundled = await build({
    entryPoints: [`${import.meta.dirname}/../tracker/tracker.ts`],
    bundle: true,
    write: false,
    format: "iife",
    target: "es2020",
    treeShaking: true,
    define: Object.fromEntries(chosen),
    minifySyntax: true,
  });
  const { code } = await minify(bundled.outputFiles[0].text, {
    ecma: 2020,
    toplevel: true,
    compress: { passes: 3, unsafe_arrows: true, unsafe_methods: true, booleans_as_integers: false },
    mangle: true,
    format: { quote_style: 1 },
  });
  return code.replace(/^'use strict';/, "");
}
