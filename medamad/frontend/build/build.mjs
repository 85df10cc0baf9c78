// Builds the tracker and the dashboard into the given folder, and checks their sizes.

import { mkdir, rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { buildDashboard } from "./dashboard.mjs";
import { report } from "./sizes.mjs";
import { buildTracker } from "./tracker.mjs";

const target = resolve(process.argv[2] ?? `${import.meta.dirname}/../../_build/frontend`);
const made = `${target}.new`;

await rm(made, { recursive: true, force: true });
await mkdir(made, { recursive: true });
const tracker = await buildTracker(`${made}/scripts`);
const dashboard = await buildDashboard(`${made}/dashboard`);
await report(made, tracker, dashboard);
await rm(target, { recursive: true, force: true });
await rename(made, target);
