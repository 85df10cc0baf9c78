// TEMPORARY until all English texts stand.
import { en } from "./en/index.ts";
export const de = en;
