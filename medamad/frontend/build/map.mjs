// Draws the world map at build time.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { geoNaturalEarth1, geoPath } from "d3-geo";
import { feature } from "topojson-client";
import { readNames } from "./names.mjs";

/** Finer than any screen, so that whole numbers suffice. */
const WIDTH = 2_000;
const HEIGHT = 1_000;
const ANTARCTICA = "010";
/** Countries missing from the coarse outlines become dots. */
const DOT_RADIUS = 6;

/** An esbuild plugin that provides the module "world-map": { width, height, countries }. */
export const worldMap = {
  name: "world-map",
  setup(build) {
    build.onResolve({ filter: /^world-map$/ }, ({ path }) => ({ path, namespace: "world-map" }));
    build.onLoad({ filter: /.*/, namespace: "world-map" }, async () => ({
      contents: JSON.stringify(await draw()),
      loader: "json",
    }));
  },
};

/** Return each country's outline as an SVG path, by its ISO 3166 code; a dot for small ones. */
async function draw() {
  const { numeric } = await readNames();
  const codeOf = ({ id }) => numeric[id] ?? "";
  const [coarse, fine] = await Promise.all([read("110m"), read("50m")]);
  const projection = geoNaturalEarth1().fitSize([WIDTH, HEIGHT], {
    type: "FeatureCollection",
    features: coarse,
  });
  const path = geoPath(projection).digits(0);
  const outlines = coarse.map((country) => ({
    code: codeOf(country),
    path: shortened(path(country)),
  }));
  const drawn = new Set(outlines.map(({ code }) => code));
  const dots = fine
    .filter((country) => !drawn.has(codeOf(country)))
    .map((country) => ({ code: codeOf(country), path: dot(path.centroid(country)), isDot: true }));
  return { width: WIDTH, height: HEIGHT, countries: [...outlines, ...dots] };
}

async function read(detail) {
  const file = createRequire(import.meta.url).resolve(`world-atlas/countries-${detail}.json`);
  const topology = JSON.parse(await readFile(file, "utf-8"));
  const { features } = feature(topology, topology.objects.countries);
  return features.filter(({ id }) => id !== ANTARCTICA);
}

/** The same path with relative coordinates, which are half as long. */
function shortened(path) {
  return path
    .split("Z")
    .filter(Boolean)
    .map((ring) => {
      const points = ring
        .slice(1)
        .split("L")
        .map((point) => point.split(",").map(Number));
      const steps = points
        .slice(1)
        .map(([x, y], place) => [x - points[place][0], y - points[place][1]])
        .filter(([x, y]) => x !== 0 || y !== 0)
        .map(([x, y]) => `${x}${y < 0 ? "" : " "}${y}`);
      const line = steps.join(" ").replaceAll(" -", "-");
      return line && `M${points[0].join(" ")}l${line}z`;
    })
    .join("");
}

function dot([x, y]) {
  const half = (width) => `a${DOT_RADIUS} ${DOT_RADIUS} 0 1 0 ${width} 0`;
  const left = `M${Math.round(x) - DOT_RADIUS} ${Math.round(y)}`;
  return `${left}${half(2 * DOT_RADIUS)}${half(-2 * DOT_RADIUS)}z`;
}
