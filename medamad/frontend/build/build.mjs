// Builds the tracker and the dashboard into the given folder, and checks their sizes.

import { mkdir, rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { buildDashboard } from "./dashboard.mjs";
import { toTakeFrom } from "./files.mjs";
import { report } from "./sizes.mjs";
import { buildTracker } from "./tracker.mjs";

async function main() {
  const target = resolve(process.argv[2] ?? `${import.meta.dirname}/../../_build/frontend`);
  const made = `${target}.new`;
  await rm(made, { recursive: true, force: true });
  await mkdir(made, { recursive: true });
  const before = await toTakeFrom(target);
  // Each takes as long as the other, and uses only one processor.
  const [tracker, dashboard] = await Promise.all(
    ["tracker", "dashboard"].map((part) => inThread(part, made, before)),
  );
  await report(made, tracker, dashboard);
  await rm(target, { recursive: true, force: true });
  await rename(made, target);
}

/** Build a part in a thread of its own. Returns what its function returns. */
function inThread(part, made, before) {
  return new Promise((resolved, failed) => {
    new Worker(import.meta.filename, { workerData: { part, made, before } })
      .on("message", resolved)
      .on("error", failed);
  });
}

if (isMainThread) {
  await main();
} else {
  const { part, made, before } = workerData;
  const [build, name] = {
    tracker: [buildTracker, "scripts"],
    dashboard: [buildDashboard, "dashboard"],
  }[part];
  parentPort.postMessage(await build(`${made}/${name}`, before && `${before}/${name}`));
}
