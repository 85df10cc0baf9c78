// Notes about days of which not all is known.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@testing-library/dom";
import { LISTINGS } from "../dashboard/panels/lists.ts";
import { Rows } from "../dashboard/panels/rows.tsx";
import { Controls } from "../dashboard/view/controls.tsx";
import { PartialNote } from "../dashboard/view/partial-note.tsx";
import { showOnPage } from "./support/page.tsx";

const TOTALS =
  "For some days from Feb 9, 2025 to Mar 8, 2025, only daily totals remain, so some statistics " +
  "leave them out. Whole days without filters are the most complete.";
const DAMAGED =
  "Some data from Jan 5, 2025 to Jan 6, 2025 is damaged and left out of all figures. The server’s " +
  "log says what to do.";
const VISITS =
  "For some days from Mar 1, 2025 to Mar 2, 2025, it isn’t known which views belong to one visit, " +
  "so figures of visits leave them out.";
const EXCLUSIONS =
  "For some days from Feb 9, 2025 to Mar 2, 2025, only daily totals remain, to which some " +
  "exclusions do not apply.";
const LEFT_OUT = "What exclusions match is left out of these figures.";

/** Show rows of pages whose responses have a header before March 10, and the notes. */
function rows(header: string | undefined, other?: string) {
  const answer = (partial: string | undefined) => () =>
    Response.json([{ path: "/", visitors: 1, visitors_percentage: 1 }], {
      headers: partial ? { "X-Medamad-Partial": partial } : {},
    });
  return showOnPage(
    <>
      <Controls />
      <PartialNote />
      <Rows listing={LISTINGS.pages} />
      <Rows listing={LISTINGS.browsers} />
    </>,
    "?from=2025-03-10&to=2025-03-12&compare=none",
    {
      pages: ({ query }) =>
        answer((query.get("start") ?? "") < "2025-03-09" ? undefined : header)(),
      browsers: answer(other),
    },
  );
}

function notes(): [string | null, string | null][] {
  return [...document.querySelectorAll(".partial-note")].map((note) => [
    note.getAttribute("role"),
    note.textContent,
  ]);
}

for (const [header, shown] of [
  [undefined, []],
  ['figures="2025-02-09/2025-03-08"', [["note", TOTALS]]],
  ['durations="2025-02-09/2025-02-10", figures="2025-03-01/2025-03-08"', [["note", TOTALS]]],
  ['damaged="2025-01-05/2025-01-06"', [["alert", DAMAGED]]],
  ['visits="2025-03-01/2025-03-02"', [["note", VISITS]]],
  [
    'exclusions="2025-02-09/2025-03-02", left-out=2',
    [
      ["note", EXCLUSIONS],
      ["note", LEFT_OUT],
    ],
  ],
  [
    'figures="2025-03-01/2025-03-08", durations="2025-02-09/2025-02-10", ' +
      'visits="2025-03-01/2025-03-02", damaged="2025-01-05/2025-01-06"',
    [
      ["alert", DAMAGED],
      ["note", TOTALS],
      ["note", VISITS],
    ],
  ],
] as const) {
  test(`days that are missing are named: ${header}`, async () => {
    const { findAllByRole } = rows(header);
    await findAllByRole("table");
    await waitFor(() => assert.deepEqual(notes(), shown));
  });
}

test("the days of all responses are named together, and only while they are shown", async () => {
  const { person, findByText, getByRole } = rows(
    'figures="2025-03-01/2025-03-08"',
    'durations="2025-02-09/2025-02-10"',
  );
  await findByText(TOTALS);
  await person.click(getByRole("button", { name: "Earlier" }));
  await findByText(/^For some days from Feb 9, 2025 to Feb 10, 2025/);
});

test("nothing is said of days that are not shown any more", async () => {
  const { person, findByText, getByRole } = rows(
    'figures="2025-02-09/2025-03-08", damaged="2025-01-05/2025-01-06"',
  );
  await findByText(TOTALS);
  await person.click(getByRole("button", { name: "Earlier" }));
  await waitFor(() => assert.deepEqual(notes(), []));
});
