// Gives the tests a document, as if the dashboard had been opened.

import assert from "node:assert/strict";
import { GlobalRegistrator } from "@happy-dom/global-registrator";

GlobalRegistrator.register({ url: "http://localhost/dashboard/", width: 1280, height: 800 });

// Preact looks for these to find the names of events, and elements of SVG lack them here.
for (const name of ["onpointermove", "onpointerleave"]) {
  Object.defineProperty(SVGElement.prototype, name, { value: null, writable: true });
}

// The attribute is not reflected.
Object.defineProperty(Element.prototype, "ariaChecked", {
  get(this: Element) {
    return this.getAttribute("aria-checked");
  },
});

// The message of a failed comparison would describe the whole document, for minutes.
const equal: typeof assert.equal = assert.equal;
Object.assign(assert, {
  equal: (actual: unknown, expected: unknown, ...message: []) => {
    const areElements = actual instanceof Element || expected instanceof Element;
    if (!areElements) equal(actual, expected, ...message);
    else if (actual !== expected) assert.fail(`${nameOf(actual)} instead of ${nameOf(expected)}`);
  },
});

function nameOf(value: unknown): string {
  return value instanceof Element ? value.outerHTML : String(value);
}
