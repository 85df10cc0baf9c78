// Gives the dashboard the names that the interface uses (made by hatch_build.py).

import { resolve } from "node:path";

const FILE = resolve(import.meta.dirname, "../../_build/names.json");

/** An esbuild plugin that gives the module "names". */
export const names = {
  name: "names",
  setup(build) {
    build.onResolve({ filter: /^names$/ }, () => ({ path: FILE }));
  },
};
