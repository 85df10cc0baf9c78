// Writes static files with their compressed forms.

import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import { gzipAsync } from "@gfx/zopfli";

const brotli = promisify(brotliCompress);

/**
 * Write a file, and FILE.gz and FILE.br if they are smaller.
 * Returns the bytes of each: { plain, gzip, brotli }.
 */
export async function put(file, content) {
  const plain = Buffer.from(content);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, plain);
  const zipped = await gzipAsync(plain, { numiterations: 15 });
  const brotlied = await brotli(plain, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_SIZE_HINT]: plain.length,
    },
  });
  if (zipped.length < plain.length) await writeFile(`${file}.gz`, zipped);
  if (brotlied.length < plain.length) await writeFile(`${file}.br`, brotlied);
  return { plain: plain.length, gzip: zipped.length, brotli: brotlied.length };
}
