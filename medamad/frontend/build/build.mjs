// Builds the tracker and the dashboard into the given folder, and checks their sizes.

import { mkdir, rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { buildDashboard } from "./dashboard.mjs";
import { report } from "./sizes.mjs";
import { buildTracker } from "./tracker.mjs";

async function main() {
  const target = resolve(process.argv[2] ?? `${import.meta.dirname}/../../_build/frontend`);
  const made = `${target}.new`;
  await rm(made, { recursive: true, force: true });
  await mkdir(made, { recursive: true });
  // Each takes as long as the other, and uses only one processor.
  const [tracker, dashboard] = await Promise.all([
    inThread("tracker", `${made}/scripts`),
    inThread("dashboard", `${made}/dashboard`),
  ]);
  await report(made, tracker, dashboard);
  await rm(target, { recursive: true, force: true });
  await rename(made, target);
}

/** Build a part in a thread of its own. Returns what its function returns. */
function inThread(part, folder) {
  return new Promise((resolved, failed) => {
    new Worker(import.meta.filename, { workerData: { part, folder } })
      .on("message", resolved)
      .on("error", failed);
  });
}

if (isMainThread) {
  await main();
} else {
  const { part, folder } = workerData;
  parentPort.postMessage(await { tracker: buildTracker, dashboard: buildDashboard }[part](folder));
}
