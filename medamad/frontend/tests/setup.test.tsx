// Setting up a website: its tag, and the wait for its first visit.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import type { Usage } from "../dashboard/api/types.ts";
import { owner, USAGE } from "./support/account.ts";
import { figures } from "./support/figures.ts";
import { type Answers, refusal, showApp } from "./support/page.tsx";

const WAITING = "Waiting for the first visit";
const PUZZLES = { name: "Why nothing has been counted yet" };
const NONE = { current: figures() };
const NOW = new Date("2025-03-12T15:20:30+01:00");
const LAST = NOW.valueOf() / 1000 - 60;

/** Show the setup of example.com. */
function showSetup(answers: Answers = {}, hits: Partial<Usage["hits"]> = {}) {
  mock.timers.enable({ apis: ["Date", "setInterval"], now: NOW });
  return showApp(
    "websites/example.com/setup",
    owner(["example.com"], {
      "user/usage": { ...USAGE, hits: { ...USAGE.hits, ...hits } },
      "website/example.com/summary": NONE,
      "website/example.com/ignored": [],
      "website/www.example.com/summary": NONE,
      "website/www.example.com/ignored": [],
      ...answers,
    }),
  );
}

test("the tags are those of the server", async () => {
  const shown = showSetup();
  assert.equal(
    (await shown.findByRole("figure", { name: "Script tag" })).textContent,
    '<script defer src="http://localhost/script.js"></script>',
  );
  assert.equal(document.title, "Set up example.com · medamad");
  assert.equal(
    shown.getByRole("figure", { name: "Image tag" }).textContent,
    '<noscript><img src="http://localhost/api/event/pixel.gif"' +
      ' referrerpolicy="no-referrer-when-downgrade" alt=""></noscript>',
  );
});

test("the tag is copied", async () => {
  const shown = showSetup();
  const [copy] = await shown.findAllByRole("button", { name: "Copy" });
  await shown.person.click(copy as HTMLElement);
  await shown.findByRole("button", { name: "Copied" });
  const tag = shown.getByRole("figure", { name: "Script tag" }).textContent;
  assert.equal(await navigator.clipboard.readText(), tag);
});

test("the first visit is waited for", async () => {
  let views = 0;
  const summary = () => ({ current: figures({ pageviews: views }) });
  const shown = showSetup({ "website/example.com/summary": summary });
  await shown.findByText(WAITING);
  assert.ok(!shown.queryByRole("region", PUZZLES));
  views = 1;
  await new Promise((done) => setTimeout(done));
  mock.timers.tick(2_000);
  await shown.findByText("First visit received. You’re set up.");
  assert.ok(!shown.queryByText(WAITING));
  const [, link] = shown.getAllByRole("link", { name: "View statistics" });
  assert.equal(link?.getAttribute("href"), "/dashboard/websites/example.com?period=today");
});

test("a website with views is set up", async () => {
  const shown = showSetup({
    "website/example.com/summary": { current: figures({ pageviews: 12 }) },
  });
  await shown.findByText("12 views received. You’re set up.");
});

test("a website that is not registered is not set up", async () => {
  const shown = showSetup({ "website/example.com/summary": refusal(404, "no such website") });
  await shown.findByRole("heading", {
    level: 1,
    name: "The website example.com hasn’t been added here.",
  });
});

test("why nothing arrives is said", async () => {
  const shown = showSetup(
    { "website/example.com/ignored": [{ reason: "bot", hits: 2, last: LAST }] },
    { refused: [{ reason: "malformed", hits: 1, last: LAST }] },
  );
  await shown.findByText(/Crawlers/);
  const puzzles = within(shown.getByRole("region", PUZZLES));
  const [crawlers, invalid] = puzzles.getAllByRole("listitem").map((item) => item.textContent);
  assert.match(
    crawlers ?? "",
    /^ Crawlers, monitoring services and headless browsers aren’t counted\..*2 hits, the latest 1 minute ago$/,
  );
  assert.match(
    invalid ?? "",
    /^Across all your websites: The request wasn’t a valid hit\..*1 hit, 1 minute ago$/,
  );
  assert.ok(shown.getByText(WAITING));
});

const ELSEWHERE = {
  unknown_hostnames: ["x1.example", "x2.example", "x3.example", "www.example.com"].map(
    (hostname) => ({ hostname, hits: 1, last: LAST }),
  ),
};

for (const [action, method, path, kept] of [
  ["Add it too", "POST", "websites", ["example.com", "www.example.com"]],
  ["Rename example.com to this", "PATCH", "websites/example.com", ["www.example.com"]],
] as const) {
  test(`hits arrive for another hostname: ${action}`, async () => {
    const shown = showSetup({}, ELSEWHERE);
    const puzzles = within(await shown.findByRole("region", PUZZLES)).getAllByRole("listitem");
    assert.equal(puzzles.length, 3);
    const [nearest] = puzzles as [HTMLElement];
    assert.match(
      nearest.textContent,
      /^Hits are arriving for www\.example\.com, which hasn’t been added\./,
    );
    await shown.person.click(within(nearest).getByRole("button", { name: action }));
    await shown.findByRole("heading", { level: 1, name: "Set up www.example.com" });
    const [change] = shown.asked.filter((asked) => asked.method !== "GET");
    assert.deepEqual(
      [change?.method, change?.path, change?.body],
      [method, path, { hostname: "www.example.com" }],
    );
    await shown.person.keyboard("gw");
    await waitFor(() =>
      assert.deepEqual(
        shown.getAllByRole("heading", { level: 2 }).map(({ textContent }) => textContent),
        kept,
      ),
    );
  });
}
