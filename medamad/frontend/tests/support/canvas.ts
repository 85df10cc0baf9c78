// Lets charts draw, and remembers what: the document in memory has neither canvas nor layout.

import { afterEach } from "node:test";

const WIDTH_PX = 1_000;
const HEIGHT_PX = 300;

type Point = readonly [x: number, y: number];
type Rect = readonly [x: number, y: number, width: number, height: number];

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

/** The rectangles that charts have filled since they were last cleared. */
const filled: Rect[] = [];

export function rects(): readonly Rect[] {
  return filled;
}

/** Forget what charts have drawn and written. */
export function wipe(): void {
  written.length = 0;
  drawn.length = 0;
  filled.length = 0;
}

const CONTEXT = new Proxy<Record<string, unknown>>(
  {
    fillRect: (...rect: Rect) => filled.push(rect),
    clearRect: () => {
      filled.length = 0;
    },
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
