// The download of a website's data.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { waitFor } from "@testing-library/dom";
import type { ExportFormat } from "../dashboard/api/types.ts";
import { Download } from "../dashboard/settings/download.tsx";
import { USAGE } from "./support/account.ts";
import { type Answers, held, refusal, show } from "./support/page.tsx";

const EXPORT = "website/docs.example/export";

interface Options {
  formats?: ExportFormat[];
  timezone?: string;
  answers?: Answers;
}

/** Show the dialog on 12 March 2025, and wait for the formats. */
async function showDialog({ formats, timezone, answers }: Options = {}) {
  mock.timers.enable({ apis: ["Date"], now: new Date("2025-03-12T22:30:00Z") });
  const service = {
    ...USAGE.service,
    export_formats: formats ?? ["csv", "ndjson", "parquet"],
    timezone: timezone ?? "UTC",
  };
  const shown = show(<Download hostname="docs.example" onClose={() => {}} />, "", {
    "user/usage": { ...USAGE, service },
    [EXPORT]: null,
    ...answers,
  });
  const options = () => [...shown.getByLabelText<HTMLSelectElement>("Format").options];
  await waitFor(() => assert.equal(options().length, service.export_formats.length));
  return {
    ...shown,
    options,
    choose: (label: string, choice: string) =>
      shown.person.selectOptions(shown.getByLabelText(label), choice),
    types: async (label: string, day: string) => {
      const field = shown.getByLabelText(label);
      await shown.person.clear(field);
      if (day) await shown.person.type(field, day);
    },
    link: () => shown.getByRole<HTMLAnchorElement>("link", { name: "Download" }),
    query: () => {
      const { pathname, searchParams } = new URL(
        shown.getByRole<HTMLAnchorElement>("link", { name: "Download" }).href,
      );
      assert.equal(pathname, `/api/${EXPORT}`);
      return Object.fromEntries(searchParams);
    },
    note: () => shown.queryByRole("note")?.textContent,
  };
}

for (const [data, what] of [
  ["Views", "views"],
  ["Events and properties", "events"],
  ["Statistics", "statistics"],
] as const) {
  for (const [name, format] of [
    ["CSV", "csv"],
    ["NDJSON", "ndjson"],
    ["Parquet", "parquet"],
  ] as const) {
    test(`a kind of data is downloaded: ${data} as ${name}`, async () => {
      const { choose, query, link } = await showDialog();
      await choose("Data", data);
      await choose("Format", name);
      // All that is stored, as no period is chosen.
      assert.deepEqual(query(), { what, format });
      assert.equal(link().download, `docs.example-${what}.${format}`);
    });
  }
}

test("a format that cannot be written is not offered", async () => {
  const { options } = await showDialog({ formats: ["csv", "ndjson"] });
  assert.deepEqual(
    options().map(({ text }) => text),
    ["CSV", "NDJSON"],
  );
});

for (const [timezone, start, end] of [
  ["UTC", "2025-02-11T00:00:00.000Z", "2025-03-12T23:59:59.999Z"],
  // There it is the 13th already.
  ["Asia/Tokyo", "2025-02-11T15:00:00.000Z", "2025-03-13T14:59:59.999Z"],
] as const) {
  test(`a period has days of the server: ${timezone}`, async () => {
    const { choose, query, getByText } = await showDialog({ timezone });
    await choose("Period", "Last 30 days");
    assert.deepEqual(query(), { what: "views", format: "csv", start, end });
    assert.ok(getByText(new RegExp(`\\(${timezone}\\)`)));
  });
}

test("days are typed, in their order", async () => {
  const { choose, types, query, getByRole, getByText, queryByRole } = await showDialog();
  await choose("Period", "Custom range");
  await types("Start date", "2025-03-12");
  await types("End date", "2025-03-10");
  assert.equal(getByRole("alert").textContent, "The end date is before the start date.");
  assert.ok(!queryByRole("link"));
  assert.ok(getByRole<HTMLButtonElement>("button", { name: "Download" }).disabled);
  await types("End date", "");
  assert.ok(!queryByRole("link"));
  assert.equal(getByRole("alert").textContent, "");
  await types("Start date", "2025-03-10");
  await types("End date", "2025-03-12");
  assert.ok(getByText(/Mar.*2025.*\(UTC\)/));
  const { start, end } = query();
  assert.deepEqual([start, end], ["2025-03-10T00:00:00.000Z", "2025-03-12T23:59:59.999Z"]);
});

/** A response that names the days it does not cover. */
function summed(days: string): Response {
  return new Response(null, { headers: { "X-Medamad-Partial": `figures="${days}"` } });
}

test("days that are kept as totals are named", async () => {
  const statistics = held(summed("2025-03-02/2025-03-02"));
  const { choose, types, note, asked } = await showDialog({
    answers: {
      [EXPORT]: ({ query }) => {
        if (query.get("what") === "statistics") return statistics.wait();
        const first = query.get("start")?.slice(0, 10) ?? "2025-03-01";
        return first > "2025-03-02" ? null : summed(`${first}/2025-03-02`);
      },
    },
  });
  const said = (text: string | undefined) => waitFor(() => assert.equal(note(), text));
  await said(
    "For some days from Mar 1, 2025 to Mar 2, 2025, only daily totals remain." +
      " They aren’t in this file, but the statistics include them.",
  );
  assert.equal(asked.at(-1)?.method, "HEAD");
  await choose("Period", "Custom range");
  await types("Start date", "2025-03-02");
  await said(
    "For some days from Mar 2, 2025 to Mar 2, 2025, only daily totals remain." +
      " They aren’t in this file, but the statistics include them.",
  );
  await types("Start date", "2025-03-03");
  await said(undefined);
  await choose("Data", "Statistics");
  await waitFor(() => assert.equal(asked.at(-1)?.query.get("what"), "statistics"));
  assert.equal(note(), undefined);
  statistics.letGo();
  await said(
    "For some days from Mar 2, 2025 to Mar 2, 2025, only daily totals remain." +
      " Some statistics leave them out.",
  );
});

test("what a file would not cover is not known if the server refuses to say", async () => {
  const { asked, note, link } = await showDialog({ answers: { [EXPORT]: refusal(500, "fault") } });
  await waitFor(() => assert.equal(asked.at(-1)?.method, "HEAD"));
  assert.equal(note(), undefined);
  assert.ok(link());
});
