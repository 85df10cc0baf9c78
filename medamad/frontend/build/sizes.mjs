// Reports the sizes, and fails if one exceeds its budget.

import { writeFile } from "node:fs/promises";
import { COMPRESSION } from "./files.mjs";
import { FEATURES } from "./tracker.mjs";

/** Bytes, gzipped. */
const BUDGETS = { default: 950, all: 1_400, dashboard: 65_000 };

/** Write sizes.json and sizes.md into a folder; ends the process with 1 when a budget is broken. */
export async function report(folder, tracker, dashboard) {
  const all = FEATURES.join(".");
  const shown = ["default", ...FEATURES, all, "opt-out"];
  const scripts = shown.map((name) => ({
    name: name === all ? "all of them" : name,
    ...tracker.get(name),
  }));
  const first = dashboard.first
    .map((path) => dashboard.sizes.get(path))
    .reduce((sum, size) => ({
      plain: sum.plain + size.plain,
      gzip: sum.gzip + size.gzip,
      brotli: sum.brotli + size.brotli,
    }));
  const rows = [...scripts, { name: "dashboard, first view of a website", ...first }];
  const table = [
    "| | bytes | gzip | brotli |",
    "| --- | ---: | ---: | ---: |",
    ...rows.map(({ name, plain, gzip, brotli }) => `| ${name} | ${plain} | ${gzip} | ${brotli} |`),
  ].join("\n");
  const sizes = {
    compression: COMPRESSION,
    scripts: Object.fromEntries(tracker),
    dashboard: Object.fromEntries(dashboard.sizes),
    first: dashboard.first,
    first_view: first,
  };
  await writeFile(`${folder}/sizes.json`, `${JSON.stringify(sizes, null, 1)}\n`);
  await writeFile(`${folder}/sizes.md`, `${table}\n`);
  console.log(table);
  const broken = [
    ["the tracker without features", tracker.get("default").gzip, BUDGETS.default],
    ["the tracker with all features", tracker.get(all).gzip, BUDGETS.all],
    ["the first view of a website", first.gzip, BUDGETS.dashboard],
  ].filter(([, bytes, budget]) => bytes > budget);
  for (const [what, bytes, budget] of broken) {
    console.error(`too large: ${what} is ${bytes} bytes gzipped, of at most ${budget}`);
  }
  if (broken.length > 0) process.exitCode = 1;
}
