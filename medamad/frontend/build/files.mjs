// Writes static files with their compressed forms.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import { gzipAsync } from "@gfx/zopfli";

const brotli = promisify(brotliCompress);
const ITERATIONS = 15;
const QUALITY = 11;
const { version } = createRequire(import.meta.url)("@gfx/zopfli/package.json");

/** A shorter file is one block, as compressing finds too, in three times the time. */
const DIVIDED_BYTES = 2_500;

/** What decides how a content is compressed. */
export const COMPRESSION =
  `zopfli ${version}, ${ITERATIONS} iterations, blocks from ${DIVIDED_BYTES} bytes; ` +
  `brotli ${process.versions.brotli}, quality ${QUALITY}`;

/** The folder of the build before if what it compressed can be taken, otherwise undefined. */
export async function toTakeFrom(folder) {
  try {
    const { compression } = JSON.parse(await readFile(`${folder}/sizes.json`, "utf-8"));
    return compression === COMPRESSION ? folder : undefined;
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    return undefined;
  }
}

/** Return a function that writes files of a folder as `put` does, given their paths there. */
export function putIn(folder, before) {
  return (path, content) =>
    put(`${folder}/${path}`, content, before === undefined ? undefined : `${before}/${path}`);
}

/**
 * Write a file, and FILE.gz and FILE.br if they are smaller. To compress takes most of the time of a
 * build, so the compressed forms of a file of the build before are taken if its content is the same.
 * Returns the bytes of each: { plain, gzip, brotli }.
 */
async function put(file, content, before) {
  const plain = Buffer.from(content);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, plain);
  const [zipped, brotlied] =
    (before !== undefined && (await compressedBefore(before, plain))) || (await compress(plain));
  if (zipped.length < plain.length) await writeFile(`${file}.gz`, zipped);
  if (brotlied.length < plain.length) await writeFile(`${file}.br`, brotlied);
  return { plain: plain.length, gzip: zipped.length, brotli: brotlied.length };
}

/** The compressed forms of a file, if it has this content and both forms are there. */
async function compressedBefore(file, content) {
  try {
    const [plain, ...compressed] = await Promise.all(
      ["", ".gz", ".br"].map((suffix) => readFile(`${file}${suffix}`)),
    );
    return plain.equals(content) && compressed;
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    return undefined;
  }
}

async function compress(content) {
  const parameters = {
    [constants.BROTLI_PARAM_QUALITY]: QUALITY,
    [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
  };
  return [
    await gzipAsync(content, {
      numiterations: ITERATIONS,
      blocksplitting: content.length >= DIVIDED_BYTES,
    }),
    await brotli(content, { params: parameters }),
  ];
}
