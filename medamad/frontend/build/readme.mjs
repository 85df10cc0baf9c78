// Updates the table of sizes in the README from the last build.

import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../../..");
const README = `${ROOT}/README.md`;
const PLACE = /(?<=<!-- sizes -->\n).*(?=<!-- \/sizes -->)/s;

const table = await readFile(`${ROOT}/medamad/_build/frontend/sizes.md`, "utf-8");
const readme = await readFile(README, "utf-8");
if (!PLACE.test(readme)) throw new Error(`no place for the table in ${README}`);
await writeFile(
  README,
  readme.replace(PLACE, () => table),
);
