// Keeps the first view in one script, even where later parts share its modules.

import { basename, dirname, relative, resolve } from "node:path";

/**
 * An esbuild plugin for parts that are imported while the page runs. esbuild makes a script of its
 * own for each set of modules that several entries share. Here each such part imports the first
 * view too, whose modules are then shared by all and form one set: one script compresses better
 * than fifteen.
 *
 * Paths are relative: esbuild's order of modules follows from them, and the same files shall be
 * built in every folder.
 */
export function laterThan(firstView) {
  const folder = dirname(firstView);
  return {
    name: "later",
    setup(build) {
      build.onResolve({ filter: /^\./ }, ({ kind, path, resolveDir }) =>
        kind === "dynamic-import"
          ? { path: relative(folder, resolve(resolveDir, path)), namespace: "later" }
          : null,
      );
      build.onLoad({ filter: /.*/, namespace: "later" }, ({ path }) => ({
        contents: `import "./${basename(firstView)}"; export * from "./${path}";`,
        resolveDir: folder,
      }));
    },
  };
}
