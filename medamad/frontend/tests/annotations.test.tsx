// Annotations: on the chart, in its tip and table, and their dialog.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import type { Annotation } from "../dashboard/api/types.ts";
import { byPlace } from "../dashboard/view/annotations.ts";
import { partsOf } from "../dashboard/view/buckets.ts";
import { Overview } from "../dashboard/view/overview.tsx";
import { rects } from "./support/canvas.ts";
import { bucket, visited } from "./support/figures.ts";
import { type Answers, HOSTNAME, refusal, showOnPage } from "./support/page.tsx";
import { plain } from "./support/text.ts";

const PATH = `websites/${HOSTNAME}/annotations`;
const BERLIN = "Europe/Berlin";
const THREE_DAYS = `?from=2025-03-10&to=2025-03-12&zone=${BERLIN}&compare=none`;
const STARTS = ["2025-03-09T23:00:00Z", "2025-03-10T23:00:00Z", "2025-03-11T23:00:00Z"];
const SUMMARY = {
  current: visited(5, 6, 0.8, 31_000),
  interval: STARTS.map((date) => bucket(date, visited(2, 2, 1, 12_000))),
};
const LAUNCH: Annotation = { id: "a", time: "2025-03-11", text: "Launch" };
const DEPLOY: Annotation = {
  id: "b",
  // In Berlin, the day after.
  time: "2025-03-11T23:30:45Z",
  text: "Deploy 1.4",
  link: "https://example.com/changes",
};

function parts() {
  const whole = { start: new Date(STARTS[0] as string), end: new Date("2025-03-12T23:00:00Z") };
  return partsOf(SUMMARY.interval, "day", BERLIN, whole);
}

for (const [time, place] of [
  ["2025-03-09", undefined],
  ["2025-03-10", 0],
  ["2025-03-12", 2],
  ["2025-03-13", undefined],
  ["2025-03-09T22:59:59Z", undefined],
  ["2025-03-09T23:00:00Z", 0],
  ["2025-03-10T22:59:59Z", 0],
  ["2025-03-10T23:00:00Z", 1],
  ["2025-03-12T23:00:00Z", undefined],
] as const) {
  test(`where the chart has an annotation of ${time}`, () => {
    const places = byPlace([{ id: "a", time, text: "" }], parts(), BERLIN);
    assert.deepEqual([...places.keys()], place === undefined ? [] : [place]);
  });
}

/** Show the overview with annotations, and wait for them. */
async function overview(answers: Answers = {}, query = THREE_DAYS) {
  const shown = showOnPage(<Overview />, query, {
    summary: SUMMARY,
    [PATH]: [LAUNCH, DEPLOY],
    "user/usage": { service: { demo: false } },
    ...answers,
  });
  await waitFor(() => assert.equal(document.querySelectorAll("tbody tr").length, 3));
  return {
    ...shown,
    open: async () => {
      await shown.person.click(shown.getByRole("button", { name: "Annotations" }));
      return within(await shown.findByRole("dialog"));
    },
    sent: () =>
      shown.asked.flatMap(({ method, path, body }) =>
        method === "GET" ? [] : [[method, path, body]],
      ),
  };
}

function cells(): string[] {
  return [...document.querySelectorAll("tbody .notes")].map((one) => plain(one.textContent));
}

test("those of the period are requested, in the page's zone", async () => {
  const { asked } = await overview();
  const { query } = asked.find(({ path }) => path === PATH) ?? {};
  assert.deepEqual(Object.fromEntries(query ?? []), {
    timezone: BERLIN,
    start: "2025-03-09T23:00:00.000Z",
    end: "2025-03-12T22:59:59.999Z",
  });
});

test("the table has a column with them, if there are any", async () => {
  await overview();
  await waitFor(() => assert.deepEqual(cells(), ["", "Launch", "Deploy 1.4 12:30 AM"]));
  const link = document.querySelector<HTMLAnchorElement>(".notes a");
  assert.deepEqual([link?.href, link?.rel], [DEPLOY.link, "noopener noreferrer"]);
  const heads = [...document.querySelectorAll("thead th")].map((head) => head.textContent);
  assert.equal(heads[1], "Annotations");
});

test("in longer intervals, the table has their days", async () => {
  await overview({}, `${THREE_DAYS.replace("12", "31")}&interval=week`);
  await waitFor(() =>
    assert.deepEqual(cells(), ["", "Launch Mar 11, 2025", "Deploy 1.4 Mar 12, 2025, 12:30 AM"]),
  );
});

test("without any, the table has no column and the chart no mark", async () => {
  await overview({ [PATH]: [] });
  assert.deepEqual(cells(), []);
  assert.deepEqual(rects(), []);
});

test("the chart marks them, and its tip has their texts", async () => {
  const { person, getByRole } = await overview({
    [PATH]: [
      LAUNCH,
      ...[1, 2, 3, 4, 5, 6].map((count) => ({ ...DEPLOY, id: `${count}`, text: `No. ${count}` })),
    ],
  });
  await waitFor(() => assert.equal(cells().length, 3));
  const notes = () => [...document.querySelectorAll(".tip-note")].map((one) => one.textContent);
  getByRole("group", { name: /^Chart: / }).focus();
  await person.keyboard("{End}");
  await waitFor(() => assert.deepEqual(notes(), ["No. 1", "No. 2", "No. 3", "No. 4", "No. 5"]));
  assert.ok(document.querySelector(".tip")?.textContent.includes("+1"));
  await person.keyboard("{ArrowLeft}");
  await waitFor(() => assert.deepEqual(notes(), ["Launch"]));
  assert.ok(!document.querySelector(".tip")?.textContent.includes("+"));
  await person.keyboard("{Home}");
  await waitFor(() => assert.deepEqual(notes(), []));
  // A line and a pennant at each of the two days.
  const places = new Set(rects().map(([x]) => x));
  assert.equal(places.size, 2);
});

test("one is added on a day", async () => {
  mock.timers.enable({ apis: ["Date"], now: new Date("2025-03-12T23:30:00Z") });
  const { open, person, sent } = await overview({ [PATH]: [] });
  const dialog = await open();
  assert.ok(dialog.getByText("No annotations in this period"));
  await person.click(dialog.getByRole("button", { name: "New annotation" }));
  const save = dialog.getByRole<HTMLButtonElement>("button", { name: "Save" });
  assert.ok(save.disabled);
  await person.type(dialog.getByLabelText("What happened"), "New prices");
  // Today, by the page's zone.
  assert.equal(dialog.getByLabelText<HTMLInputElement>("Date").value, "2025-03-13");
  await person.click(save);
  await dialog.findByRole("button", { name: "New annotation" });
  assert.deepEqual(sent(), [
    ["POST", PATH, { text: "New prices", link: null, time: "2025-03-13" }],
  ]);
});

test("one is changed: its time only where that was changed, by the zone's clock", async () => {
  const { open, person, sent } = await overview({ [`${PATH}/b`]: {} });
  const dialog = await open();
  const edit = async () => {
    await person.click(await dialog.findByRole("button", { name: "Edit: Deploy 1.4" }));
    assert.equal(dialog.getByRole("heading").textContent, "Edit: Deploy 1.4");
  };
  await edit();
  const time = () => dialog.getByLabelText<HTMLInputElement>(/^Time/);
  assert.equal(dialog.getByLabelText<HTMLInputElement>("Date").value, "2025-03-12");
  assert.equal(time().value, "00:30");
  await person.clear(dialog.getByLabelText(/^Link/));
  await person.click(dialog.getByRole("button", { name: "Save" }));
  await edit();
  await person.clear(time());
  await person.type(time(), "18:05");
  await person.click(dialog.getByRole("button", { name: "Save" }));
  await edit();
  await person.clear(time());
  await person.click(dialog.getByRole("button", { name: "Save" }));
  await dialog.findByRole("button", { name: "New annotation" });
  const { text, link } = DEPLOY;
  assert.deepEqual(sent(), [
    ["PATCH", `${PATH}/b`, { text, link: null }],
    ["PATCH", `${PATH}/b`, { text, link, time: "2025-03-12T17:05:00.000Z" }],
    ["PATCH", `${PATH}/b`, { text, link, time: "2025-03-12" }],
  ]);
});

test("one is deleted once that is confirmed", async () => {
  const { open, person, sent } = await overview({ [`${PATH}/a`]: null });
  const dialog = await open();
  await person.click(dialog.getByRole("button", { name: "Edit: Launch" }));
  await person.click(dialog.getByRole("button", { name: "Delete" }));
  assert.deepEqual(sent(), []);
  await person.click(dialog.getByRole("button", { name: "Press again to delete" }));
  await dialog.findByRole("button", { name: "New annotation" });
  assert.deepEqual(sent(), [["DELETE", `${PATH}/a`, undefined]]);
});

test("what is refused stays in the form, with the reason", async () => {
  const { open, person } = await overview({
    [PATH]: ({ method }) =>
      method === "GET"
        ? []
        : refusal(400, "annotations: a website can have 1,000, remove one first"),
  });
  const dialog = await open();
  await person.click(dialog.getByRole("button", { name: "New annotation" }));
  await person.type(dialog.getByLabelText("What happened"), "New prices");
  await person.click(dialog.getByRole("button", { name: "Save" }));
  await dialog.findByText("A website can have 1,000 annotations. Delete one first.");
  assert.equal(dialog.getByLabelText<HTMLInputElement>("What happened").value, "New prices");
});
