// The English catalogue, by part of the dashboard. The other languages have the same keys.

import { common } from "./common.ts";
import { panels } from "./panels.ts";
import { settings } from "./settings.ts";
import { view } from "./view.ts";
import { websites } from "./websites.ts";

export const en = { ...common, ...view, ...panels, ...websites, ...settings };
