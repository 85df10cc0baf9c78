// Lets charts draw, and remembers what: the document in memory has neither canvas nor layout.

import { afterEach } from "node:test";

const WIDTH_PX = 1_000;
const HEIGHT_PX = 300;

type Point = readonly [x: number, y: number];

class Path {
  readonly points: Point[] = [];

  moveTo(x: number, y: number) {
    this.points.push([x, y]);
  }

  lineTo(x: number, y: number) {
    this.points.push([x, y]);
  }

  arc(x: number, y: number) {
    this.points.push([x, y]);
  }

  rect() {}
}

/** The texts that charts have written, as on their axes. */
export const written: string[] = [];

/** The points of each line that charts have drawn; of dots, their centres. */
export const drawn: Point[][] = [];

/** Forget what charts have drawn and written. */
export function wipe(): void {
  written.length = 0;
  drawn.length = 0;
}

const CONTEXT = new Proxy<Record<string, unknown>>(
  {
    fillText: (text: string) => written.push(text),
    stroke: (path?: Path) => path?.points.length && drawn.push(path.points),
  },
  { get: (known, name: string) => known[name] ?? (() => undefined) },
);

Object.assign(globalThis, { Path2D: Path });
Object.assign(HTMLCanvasElement.prototype, { getContext: () => CONTEXT });
Object.defineProperties(HTMLElement.prototype, {
  clientWidth: { get: () => WIDTH_PX },
  clientHeight: { get: () => HEIGHT_PX },
});
// Nothing is drawn without a colour.
for (const name of ["--accent", "--before", "--line", "--soft"]) {
  document.documentElement.style.setProperty(name, "rgb(1, 2, 3)");
}

afterEach(wipe);
