// An unreachable or failing server.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import { refresh } from "../dashboard/state/data.ts";
import { later } from "../dashboard/ui/lazy.tsx";
import { Away } from "../dashboard/ui/trouble.tsx";
import { Controls } from "../dashboard/view/controls.tsx";
import { Overview } from "../dashboard/view/overview.tsx";
import { ADA, owner, USAGE } from "./support/account.ts";
import { figures } from "./support/figures.ts";
import {
  type Answers,
  HOSTNAME,
  refusal,
  type Shown,
  show,
  showApp,
  showOnPage,
} from "./support/page.tsx";

const FAULT = refusal(500, "an internal fault");
const NOW = new Date("2025-03-12T15:20:30+01:00");

function away(): never {
  throw new Error("unreachable");
}

function tiles(): string[] {
  return [...document.querySelectorAll(".tile-figure")].map(({ textContent }) => textContent);
}

/** Show the figures of yesterday; `state` says how the server responds from then on. */
async function yesterday(state: { answers: () => Response | object }): Promise<Shown> {
  mock.timers.enable({ apis: ["Date"], now: NOW });
  const fine = { current: figures({ visitors: 7, pageviews: 9 }), interval: [] };
  let isRead = false;
  const whileUnreachable = () => (isRead && state.answers === away ? away() : []);
  const answers: Answers = {
    summary: () => (isRead ? state.answers() : fine),
    live: { visitors: 0 },
    [`websites/${HOSTNAME}/annotations`]: whileUnreachable,
  };
  const shown = showOnPage(
    <>
      <Away />
      <Controls />
      <Overview />
    </>,
    "?period=yesterday&compare=none",
    answers,
  );
  await waitFor(() => assert.equal(tiles()[0], "7"));
  isRead = true;
  return shown;
}

test("a server that is unreachable from the start may come back", async () => {
  let isThere = false;
  const user = () => (isThere ? ADA : away());
  const shown = showApp("settings/about", owner([], { user }));
  await waitFor(() =>
    assert.equal(shown.getByRole("alert").textContent, "The server isn’t responding"),
  );
  isThere = true;
  refresh();
  await shown.findByText("1.2.3");
  assert.ok(!shown.queryByRole("alert"));
});

test("an unreachable server is announced above what is known", async () => {
  let isThere = true;
  const usage = () => (isThere ? USAGE : away());
  const shown = showApp("settings/about", owner([], { "user/usage": usage }));
  await shown.findByText("1.2.3");
  isThere = false;
  refresh();
  const banner = await shown.findByRole("alert");
  assert.match(banner.textContent, /^The server isn’t responding/);
  assert.match(banner.textContent, /Figures in grey are the last ones received\./);
  assert.ok(shown.getByText("1.2.3"));
  isThere = true;
  await shown.person.click(within(banner).getByRole("button", { name: "Try again" }));
  await waitFor(() => assert.ok(!shown.queryByRole("alert")));
});

for (const status of [502, 503, 504]) {
  test(`a proxy's ${status} means an unreachable server`, async () => {
    const shown = showApp("settings/about", owner([], { "user/usage": refusal(status, "") }));
    await shown.findByText(/^Figures in grey are the last ones received\./);
  });
}

test("an error is shown in place of figures, and retried", async () => {
  let isFaulty = true;
  const summary = { current: figures({ visitors: 7 }), interval: [] };
  const shown = showOnPage(<Overview />, "?period=yesterday&compare=none", {
    summary: () => (isFaulty ? FAULT : summary),
  });
  const trouble = within(await shown.findByRole("alert"));
  assert.ok(trouble.getByText("Something went wrong"));
  isFaulty = false;
  await shown.person.click(trouble.getByRole("button", { name: "Try again" }));
  await waitFor(() => assert.equal(tiles()[0], "7"));
  assert.ok(!shown.queryByRole("alert"));
});

test("figures of another period do not stay where a query fails", async () => {
  const { person, findByText, queryByText } = await yesterday({ answers: () => FAULT });
  await person.keyboard("t");
  await findByText("Something went wrong");
  assert.deepEqual(tiles(), []);
  assert.equal(document.querySelectorAll(".overview tbody tr").length, 0);
  // Those of the period that was read are still there.
  await person.keyboard("y");
  await waitFor(() => assert.equal(tiles()[0], "7"));
  await person.keyboard("a");
  await waitFor(() => assert.ok(queryByText("Something went wrong")));
  assert.deepEqual(tiles(), []);
});

test("a daemon that cannot answer for now says why", async () => {
  let reason = "";
  const usage = () => (reason ? refusal(503, reason) : USAGE);
  const shown = showApp("settings/about", owner([], { "user/usage": usage }));
  await shown.findByText("1.2.3");
  reason = "the cluster does not answer at the moment";
  refresh();
  const banner = await shown.findByRole("alert");
  await waitFor(() => assert.match(banner.textContent, new RegExp(`responding \\(${reason}\\)`)));
  reason = "";
  refresh();
  await waitFor(() => assert.ok(!shown.queryByRole("alert")));
});

test("figures stay, with their days, while the server is unreachable", async () => {
  const state = { answers: away as () => Response | object };
  const { person, findByText, queryByText, queryAllByRole } = await yesterday(state);
  const days = () => document.querySelector(".chart-head p")?.textContent ?? "";
  const [day, shown] = [days(), tiles()];
  assert.match(day, /Mar 11, 2025/);
  await person.keyboard("w");
  await findByText("The server isn’t responding");
  assert.equal(queryAllByRole("alert").length, 1);
  assert.deepEqual(tiles(), shown);
  assert.equal(days(), day);
  state.answers = () => ({ current: figures({ visitors: 8 }), interval: [] });
  refresh();
  await waitFor(() => assert.equal(tiles()[0], "8"));
  assert.ok(!queryByText("The server isn’t responding"));
  assert.notEqual(days(), day);
});

test("a script that cannot be loaded is loaded again with the page", async () => {
  const reload = mock.method(location, "reload", () => undefined);
  const Lost = later(() => Promise.reject(new Error("unreachable")));
  const shown = show(<Lost />);
  const trouble = within(await shown.findByRole("alert"));
  assert.ok(trouble.getByText("The server isn’t responding"));
  await shown.person.click(trouble.getByRole("button", { name: "Try again" }));
  assert.equal(reload.mock.callCount(), 1);
});
