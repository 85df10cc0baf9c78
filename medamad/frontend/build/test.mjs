// Runs the unit and component tests: bundles them as the dashboard is, and hands them to Node's
// test runner with a document in memory. `node build/test.mjs [NAME …]` runs those of the names.

import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { build } from "esbuild";
import { icons } from "./icons.mjs";
import { worldMap } from "./map.mjs";
import { names } from "./names.mjs";

const ROOT = resolve(import.meta.dirname, "..");
// Inside node_modules, so that what is not bundled is found.
const TARGET = `${ROOT}/node_modules/.cache/tests`;

/** Style sheets are empty here: the document in memory has no layout. */
const noStyle = {
  name: "no style",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, () => ({ contents: "", loader: "js" }));
  },
};

/**
 * Offsets of time zones are looked up once for every quarter of an hour, within which none changes:
 * the lookups of the tests of periods would take a quarter of the time of all tests.
 */
const offsetsOnce = {
  name: "offsets once",
  setup(build) {
    build.onLoad({ filter: /\/@date-fns\/tz\/tzOffset\/index\.js$/ }, async ({ path }) => ({
      contents: `${(await readFile(path, "utf-8")).replace("function tzOffset", "function lookUp")}
        const known = {};
        export const tzOffset = (zone, date) =>
          (known[zone + Math.floor(date / 900_000)] ??= lookUp(zone, date));`,
    }));
  },
};

const wanted = process.argv.slice(2);
const tests = globSync(`${ROOT}/tests/**/*.test.{ts,tsx}`)
  .filter((file) => !wanted.length || wanted.some((name) => basename(file).includes(name)))
  .sort();
await rm(TARGET, { recursive: true, force: true });
await build({
  entryPoints: [`${ROOT}/tests/support/document.ts`, ...tests],
  bundle: true,
  outdir: TARGET,
  outbase: `${ROOT}/tests`,
  entryNames: "[name]",
  format: "esm",
  platform: "node",
  // One instance of each module for all tests.
  splitting: true,
  // The dashboard's own packages are bundled: those of many modules take long to load.
  external: ["@happy-dom/*", "@testing-library/*"],
  sourcemap: "linked",
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { "import.meta.url": '"http://localhost/dashboard/assets/main.js"' },
  assetNames: "[name]",
  plugins: [icons, names, noStyle, offsetsOnce, worldMap],
});
const files = tests.map((file) => `${TARGET}/${basename(file).replace(/\.tsx?$/, ".js")}`);
const { status } = spawnSync(
  process.execPath,
  [
    "--enable-source-maps",
    `--import=${TARGET}/document.js`,
    "--test",
    "--test-isolation=none",
    ...files,
  ],
  { stdio: "inherit", env: { ...process.env, TZ: "Europe/Berlin" } },
);
process.exit(status ?? 1);
