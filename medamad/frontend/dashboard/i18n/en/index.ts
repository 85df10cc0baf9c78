// The English catalogue, by the part of the dashboard that says it. The others follow its keys.

import { common } from "./common.ts";
import { panels } from "./panels.ts";
import { settings } from "./settings.ts";
import { view } from "./view.ts";
import { websites } from "./websites.ts";

export const en = { ...common, ...view, ...panels, ...websites, ...settings };
