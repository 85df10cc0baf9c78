// Draws the map of the world while the dashboard is built, so that no browser has to.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { geoNaturalEarth1, geoPath } from "d3-geo";
import { feature } from "topojson-client";

const WIDTH = 800;
const HEIGHT = 400;
const ANTARCTICA = "010";

/** An esbuild plugin that gives the module "world-map": { width, height, countries }. */
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

/** Give each country's outline as an SVG path, by its ISO 3166 numeric code. */
async function draw() {
  const file = createRequire(import.meta.url).resolve("world-atlas/countries-110m.json");
  const topology = JSON.parse(await readFile(file, "utf-8"));
  const all = feature(topology, topology.objects.countries);
  const shown = { ...all, features: all.features.filter(({ id }) => id !== ANTARCTICA) };
  const path = geoPath(geoNaturalEarth1().fitSize([WIDTH, HEIGHT], shown)).digits(1);
  const countries = shown.features.map((country) => ({
    id: country.id ?? "",
    name: country.properties.name,
    path: path(country),
  }));
  return { width: WIDTH, height: HEIGHT, countries };
}
