// The tiles above the chart.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Tiles } from "../dashboard/view/tiles.tsx";
import { keepsVisits } from "../dashboard/view/visits.ts";
import { showOnPage } from "./support/page.tsx";

const FIGURES = { visitors: 4, pageviews: 9, bounce_percentage: 0.25, duration: 12_000 };

test("without visits, the figures of views stand in for those of visits", async () => {
  keepsVisits.value = false;
  showOnPage(
    <Tiles
      current={FIGURES}
      before={{ ...FIGURES, bounce_percentage: 0.5 }}
      isCompared
      isStale={false}
      hasFailed={false}
    />,
    "?measure=visits",
  );
  const tiles = [...document.querySelectorAll(".tile")];
  assert.deepEqual(
    tiles.map((tile) => [
      tile.querySelector(".tile-name")?.textContent,
      tile.querySelector(".tile-figure")?.textContent,
      tile.querySelector("[aria-pressed]")?.getAttribute("aria-pressed"),
    ]),
    [
      ["Visitors", "4", "true"],
      ["Views", "9", "false"],
      ["Left within 5 s", "25%", "false"],
      ["Median time", "12s", "false"],
    ],
  );
  assert.match(tiles[2]?.querySelector(".change")?.className ?? "", /good/);
});
