// Loading and refreshing data.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { waitFor } from "@testing-library/dom";
import type { VNode } from "preact";
import { isAway } from "../dashboard/api/client.ts";
import { LISTINGS } from "../dashboard/panels/lists.ts";
import { Rows } from "../dashboard/panels/rows.tsx";
import { keepFresh, refresh } from "../dashboard/state/data.ts";
import { Controls } from "../dashboard/view/controls.tsx";
import { Overview } from "../dashboard/view/overview.tsx";
import { SitePage } from "../dashboard/view/page.tsx";
// Loaded already when it is shown.
import "../dashboard/view/live-dialog.tsx";
import "./support/canvas.ts";
import { bucket, visited } from "./support/figures.ts";
import { type Answers, type Asked, refusal, showOnPage } from "./support/page.tsx";

const NOW = new Date("2025-03-12T15:20:30+01:00");

/** Requests that wait until they are let go. */
class Held {
  private waiting: (() => void)[] | undefined = [];

  async take<T>(answer: T): Promise<T> {
    await new Promise<void>((go) => (this.waiting ? this.waiting.push(go) : go()));
    return answer;
  }

  letGo(): void {
    const { waiting = [] } = this;
    this.waiting = undefined;
    for (const go of waiting) go();
  }
}

function count(selector: string): number {
  return document.querySelectorAll(selector).length;
}

function figures(): string {
  return [...document.querySelectorAll(".tile-figure")].map((tile) => tile.textContent).join(" ");
}

function rows(): string[] {
  return [...document.querySelectorAll(".rows tbody th button")].map(
    (row) => row.textContent ?? "",
  );
}

const WEEK = visited(5, 6, 0.8, 31_000);
const DAY = visited(2, 2, 1, 16_000);

/** Show figures and rows of the page; requests can be held. */
function page() {
  mock.timers.enable({ apis: ["Date"], now: NOW });
  const daemon: { held?: Held } = {};
  const shown = showOnPage(
    <>
      <Controls />
      <Overview />
      <Rows listing={LISTINGS.pages} />
    </>,
    "?period=7d&compare=none",
    {
      summary: ({ query }) => {
        const isWeek = query.get("start") === "2025-03-05T23:00:00.000Z";
        const current = isWeek ? WEEK : DAY;
        const answer = { current, interval: [bucket(query.get("start") ?? "", current)] };
        return daemon.held ? daemon.held.take(answer) : answer;
      },
      pages: ({ query }) => {
        const isWeek = query.get("start") === "2025-03-05T23:00:00.000Z";
        const answer = [{ path: isWeek ? "/week" : "/day", visitors: 1, visitors_percentage: 1 }];
        return daemon.held ? daemon.held.take(answer) : answer;
      },
    },
  );
  return { ...shown, daemon };
}

async function loaded(): Promise<void> {
  await waitFor(() => {
    assert.equal(count(".tile-figure"), 6);
    assert.equal(count("[aria-busy=true]"), 0);
    assert.equal(count(".rows"), 1);
  });
}

test("skeletons stand in for what is loading", async () => {
  const { daemon } = page();
  daemon.held = new Held();
  await waitFor(() => assert.equal(count(".tile .skeleton"), 6));
  assert.equal(count(".chart-body .skeleton"), 1);
  assert.equal(count(".rows-waiting .skeleton"), 9);
  assert.equal(document.querySelector(".overview")?.getAttribute("aria-busy"), "true");
  daemon.held.letGo();
  await loaded();
  assert.equal(count(".skeleton"), 0);
});

test("old data stays while it is refreshed", async () => {
  const { daemon } = page();
  await loaded();
  daemon.held = new Held();
  refresh();
  await waitFor(() => assert.equal(count(".overview[aria-busy=true]"), 1));
  assert.equal(figures(), "5 5 6 1.2 80% 31s");
  assert.deepEqual(rows(), ["/week"]);
  assert.equal(count(".stale, .skeleton"), 0);
  daemon.held.letGo();
  await loaded();
});

test("the data of another period is shown as what it is: old", async () => {
  const { person, daemon } = page();
  await loaded();
  daemon.held = new Held();
  await person.keyboard("y");
  await waitFor(() => assert.equal(count(".tiles.stale"), 1));
  assert.equal(count(".chart-body.stale"), 1);
  assert.equal(count(".rows.stale"), 1);
  assert.equal(count(".chart[aria-label^='Chart: Visitors, By day']"), 1);
  assert.equal(figures(), "5 5 6 1.2 80% 31s");
  assert.deepEqual(rows(), ["/week"]);
  assert.equal(count(".skeleton"), 0);
  daemon.held.letGo();
  await loaded();
  assert.equal(count(".stale"), 0);
  assert.equal(count(".chart[aria-label^='Chart: Visitors, By hour']"), 1);
  assert.equal(figures(), "2 2 2 1 100% 16s");
  assert.deepEqual(rows(), ["/day"]);
});

test("what was read before is there at once", async () => {
  const { person, daemon } = page();
  await loaded();
  await person.keyboard("y");
  await waitFor(() => assert.equal(figures(), "2 2 2 1 100% 16s"));
  daemon.held = new Held();
  await person.keyboard("w");
  assert.equal(figures(), "5 5 6 1.2 80% 31s");
  assert.deepEqual(rows(), ["/week"]);
  assert.equal(count(".stale"), 0);
  daemon.held.letGo();
});

// At which times.

/** Let all that is under way end. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
}

let isHidden = false;

/** Hide the page, or show it. */
function hide(wanted: boolean): void {
  isHidden = wanted;
  document.dispatchEvent(new Event("visibilitychange"));
}

/** Show the figures of the page, and keep them fresh on a clock that the test advances. */
function fresh() {
  let visitors = 0;
  return kept(<Overview />, {
    summary: () => {
      visitors += 1;
      return { current: visited(visitors, visitors, 1, 1_000), interval: [] };
    },
  });
}

/** Show parts of the page, and keep them fresh on a clock that the test advances. */
async function kept(parts: VNode, answers: Answers) {
  mock.timers.enable({ apis: ["Date", "setTimeout"], now: NOW });
  const shown = showOnPage(parts, "?period=7d&compare=none", answers);
  const { asked } = shown;
  await settle();
  isHidden = false;
  mock.getter(document, "hidden", () => isHidden);
  const listening = mock.method(document, "addEventListener");
  const subscribing = mock.method(isAway, "subscribe");
  keepFresh();
  const [listened, subscribed] = [listening.mock.calls[0], subscribing.mock.calls[0]];
  return {
    ...shown,
    after: async (ms: number) => {
      mock.timers.tick(ms);
      await settle();
      return asked.length;
    },
    stop: () => {
      // Nothing is scheduled for a hidden page.
      hide(true);
      const [type, listener] = listened?.arguments ?? [];
      document.removeEventListener(type as string, listener as () => void);
      subscribed?.result?.();
    },
  };
}

test("data is refreshed every half minute while the page is visible", async () => {
  const { after, stop } = await fresh();
  try {
    assert.equal(await after(29_999), 1);
    assert.equal(await after(1), 2);
    assert.equal(figures().split(" ")[0], "2");
    assert.equal(await after(29_999), 2);
    assert.equal(await after(1), 3);
    hide(true);
    assert.equal(await after(300_000), 3);
    hide(false);
    assert.equal(await after(0), 4);
    assert.equal(figures().split(" ")[0], "4");
    assert.equal(await after(29_999), 4);
    assert.equal(await after(1), 5);
  } finally {
    stop();
  }
});

test("it is tried again more often while the daemon is unreachable", async () => {
  const { after, stop } = await fresh();
  try {
    isAway.value = true;
    assert.equal(document.documentElement.hasAttribute("data-away"), true);
    assert.equal(await after(4_999), 1);

    assert.equal(await after(1), 2);
    // It responded.
    assert.equal(document.documentElement.hasAttribute("data-away"), false);
    assert.equal(await after(29_999), 2);
    assert.equal(await after(1), 3);
  } finally {
    stop();
  }
});

test("what goes on now is asked every ten seconds while it is shown and visible", async () => {
  const lists = { pages: [], sources: [], countries: [], events: [] };
  const unknown = refusal(400, "busy");
  const { asked, after, findByRole, getByRole, queryByRole, stop } = await kept(
    <SitePage />,
    new Proxy<Answers>(
      {},
      {
        get: (_, path) =>
          String(path).endsWith("/live")
            ? ({ query }: Asked) => ({ visitors: 3, ...(query.has("lists") && lists) })
            : unknown,
      },
    ),
  );
  const afterwards = async (ms: number) => {
    const before = asked.length;
    await after(ms);
    const requests = asked.slice(before).filter(({ path }) => path.endsWith("/live"));
    return requests.map(({ query }) => query.toString());
  };
  try {
    assert.deepEqual(await afterwards(10_000), []);
    getByRole("button", { name: "3 pages open now" }).click();
    assert.deepEqual(await afterwards(0), ["lists=true"]);
    await findByRole("dialog", { name: "Live: last 30 minutes" });
    assert.deepEqual(await afterwards(9_999), []);
    assert.deepEqual(await afterwards(1), ["lists=true"]);
    // All of the page is refreshed, too.
    assert.deepEqual(await afterwards(10_000), ["lists=true"]);
    hide(true);
    assert.deepEqual(await afterwards(300_000), []);
    hide(false);
    assert.deepEqual(await afterwards(0), ["lists=true"]);
    assert.deepEqual(await afterwards(10_000), ["lists=true"]);
    getByRole("button", { name: "Close" }).click();
    assert.deepEqual(await afterwards(0), [""]);
    assert.equal(queryByRole("dialog"), null);
    assert.deepEqual(await afterwards(19_999), []);
    assert.deepEqual(await afterwards(1), [""]);
  } finally {
    stop();
  }
});
