// The controls for the period, the time zone and the comparison.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Controls } from "../dashboard/view/controls.tsx";
import { showOnPage } from "./support/page.tsx";

const NOW = new Date("2025-03-12T15:20:30+01:00");

for (const [label, query] of [
  ["Today", "?period=today"],
  ["Last 30 days", ""],
  ["All time", "?period=all"],
] as const) {
  test(`a period is chosen: ${label}`, async () => {
    mock.timers.enable({ apis: ["Date"], now: NOW });
    const { person, getByRole, findByRole } = showOnPage(<Controls />, "?period=7d&interval=hour");
    await person.click(await findByRole("button", { name: /^Period: / }));
    await person.click(getByRole("menuitemradio", { name: new RegExp(`^${label}`) }));
    // The interval of the period before need not fit this one.
    assert.equal(location.search, query);
  });
}
