// The head of a website's page: the switch to other websites and the open pages.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { waitFor, within } from "@testing-library/dom";
import { Route, Router } from "preact-iso";
import type { Summary } from "../dashboard/api/types.ts";
import { refresh } from "../dashboard/state/data.ts";
import { Overview } from "../dashboard/view/overview.tsx";
import { SitePage } from "../dashboard/view/page.tsx";
import { SiteHead } from "../dashboard/view/site-head.tsx";
import "./support/canvas.ts";
import { bucket, visited } from "./support/figures.ts";
import { type Answers, HOSTNAME, refusal, type Shown, show, showOnPage } from "./support/page.tsx";

/** Show the head at a query, beside other websites. */
async function showHead(query: string, others: readonly string[]): Promise<Shown> {
  const hostnames = [HOSTNAME, ...others].sort();
  const answers: Answers = { websites: hostnames.map((hostname) => ({ hostname })) };
  const shown = showOnPage(
    <SiteHead live={{ visitors: 0 }} showLive={() => undefined} />,
    query,
    answers,
  );
  await waitFor(() => assert.equal(shown.asked.length, 1));
  return shown;
}

function chosen({ getByRole }: Shown): HTMLElement {
  return getByRole("menuitemradio", { checked: true });
}

test("another website is chosen from a menu, and the period is kept", async () => {
  const others = ["blog.example", "docs.example", "shop.example"];
  const shown = await showHead("?period=7d&browser[eq]=Firefox", others);
  const { person, getByRole, getAllByRole, queryByRole } = shown;
  const switcher = await shown.findByRole("button", { name: /^Switch website: / });
  await person.click(switcher);
  await waitFor(() =>
    assert.deepEqual(
      getAllByRole("menuitemradio").map(({ textContent }) => textContent),
      ["blog.example", "docs.example", HOSTNAME, "shop.example"],
    ),
  );
  await person.keyboard("{Escape}");
  assert.ok(!queryByRole("menu"));
  assert.equal(document.activeElement, switcher);
  await person.keyboard("s");
  await waitFor(() => assert.equal(document.activeElement, chosen(shown)));
  assert.equal(chosen(shown).textContent, HOSTNAME);
  await person.keyboard("d");
  assert.equal(document.activeElement, getByRole("menuitemradio", { name: "docs.example" }));
  await person.keyboard("{Enter}");
  assert.equal(location.pathname, "/dashboard/websites/docs.example");
  // The filters need not apply to another website.
  assert.equal(location.search, "?period=7d");
  await waitFor(() => assert.match(switcher.textContent ?? "", /docs\.example/));
});

for (const [name, path] of [
  ["Script and setup", `/dashboard/websites/${HOSTNAME}/setup`],
  ["Websites", "/dashboard/"],
] as const) {
  test(`the menu of websites leads elsewhere: ${name}`, async () => {
    const { person, findByRole } = await showHead("?period=7d", []);
    await person.keyboard("s");
    await person.click(await findByRole("menuitem", { name }));
    assert.equal(location.pathname, path);
  });
}

const MANY = Array.from({ length: 20 }, (_nothing, place) => `number-${place + 10}.example`);

/** Show the head beside many websites, and open the search for one. */
async function showSearch() {
  const shown = await showHead("?period=7d", MANY);
  await waitFor(() => {
    const opener = shown.getByTitle("Switch website");
    assert.equal(opener.getAttribute("aria-haspopup"), "dialog");
  });
  await shown.person.keyboard("s");
  const dialog = within(await shown.findByRole("dialog"));
  return { ...shown, dialog, field: dialog.getByLabelText("Search websites") };
}

test("one of many websites is searched", async () => {
  const { person, dialog, field } = await showSearch();
  assert.equal(dialog.getAllByRole("option").length, MANY.length + 1);
  await person.type(field, "BER-1");
  assert.equal(dialog.getAllByRole("option").length, 10);
  await person.keyboard("{ArrowDown}{ArrowDown}{Enter}");
  assert.equal(location.pathname, "/dashboard/websites/number-11.example");
  assert.equal(location.search, "?period=7d");
});

test("Enter takes the first website that is found", async () => {
  const { person, dialog, field } = await showSearch();
  await person.type(field, "nowhere{Enter}");
  assert.ok(dialog.getByText("No results for “nowhere”."));
  await person.clear(field);
  await person.type(field, "25{Enter}");
  assert.equal(location.pathname, "/dashboard/websites/number-25.example");
});

test("the search leads elsewhere, too", async () => {
  const { dialog } = await showSearch();
  const links = dialog.getAllByRole<HTMLAnchorElement>("link");
  assert.deepEqual(
    links.map(({ pathname }) => pathname),
    [`/dashboard/websites/${HOSTNAME}/setup`, "/dashboard/"],
  );
});

test("open pages are counted with one request, whatever the filters", async () => {
  let visitors = 0;
  const unknown = refusal(503, "busy");
  const shown = showOnPage(
    <SitePage />,
    "?browser[eq]=Firefox",
    new Proxy<Answers>(
      {},
      { get: (_, path) => (String(path).endsWith("/live") ? () => ({ visitors }) : unknown) },
    ),
  );
  const live = await shown.findByTitle(/filters don’t apply/);
  const texts = [
    [0, "0 pages open now"],
    [1, "1 page open now"],
    [2_000, "2,000 pages open now"],
  ] as const;
  for (const [count, text] of texts) {
    visitors = count;
    refresh();
    await waitFor(() => assert.equal(live.textContent, text));
  }
  const requests = shown.asked.filter(({ path }) => path.endsWith("/live"));
  assert.equal(requests.length, 1 + texts.length);
  assert.ok(requests.every(({ query }) => query.size === 0));
});

test("a website that is not there has no page", async () => {
  const none = refusal(404, "no such website");
  const shown = show(
    <Router>
      <Route path="/dashboard/websites/:hostname" component={SitePage} />
      <Route default component={() => <h1>elsewhere</h1>} />
    </Router>,
    "websites/nowhere.example",
    new Proxy<Answers>({}, { get: () => none }),
  );
  await shown.findByRole("heading", {
    name: "The website nowhere.example hasn’t been added here.",
  });
  await shown.person.click(shown.getByRole("link", { name: "Back to websites" }));
  assert.equal(location.pathname, "/dashboard/");
});

const ONCE = visited(1, 1, 1, 20_000);
const NEVER = visited(0, 0, 0, 0);
const DAYS = ["2025-03-06", "2025-03-07", "2025-03-08", "2025-03-09", "2025-03-10", "2025-03-11"];

for (const [day, isNew] of [
  ["2025-03-12", true],
  ["2025-03-11", true],
  ["2025-03-10", false],
] as const) {
  test(`the first two days are shown by hours: the first is ${day}`, async () => {
    mock.timers.enable({ apis: ["Date"], now: new Date("2025-03-12T15:20:30Z") });
    const summary = ({ query }: { query: URLSearchParams }): Summary => {
      if ((query.get("end") ?? "") < "2025-03-06") return { current: NEVER, interval: [] };
      const isOfHours = query.get("interval") === "hour";
      const parts = isOfHours ? [`${day}T09`] : [...DAYS, "2025-03-12"].map((one) => `${one}T00`);
      const interval = parts.map((hour) =>
        bucket(`${hour}:00:00Z`, isOfHours || hour >= day ? ONCE : NEVER),
      );
      return { current: ONCE, interval };
    };
    const { asked, findByRole, queryByText } = showOnPage(<Overview />, "?period=7d&zone=UTC", {
      summary,
    });
    const unit = isNew ? "By hour" : "By day";
    await findByRole("group", { name: new RegExp(`^Chart: Visitors, ${unit}`) });
    await waitFor(() => assert.equal(!!queryByText(/From the third day on/), isNew));
    const hours = asked.filter(({ query }) => query.get("interval") === "hour");
    // None before the day of the first view.
    assert.deepEqual(
      hours.map(({ query }) => query.get("start")?.slice(0, 10)),
      isNew ? [day] : [],
    );
  });
}

test("the days of a new website are shown once they are chosen", async () => {
  mock.timers.enable({ apis: ["Date"], now: new Date("2025-03-12T15:20:30Z") });
  const interval = [...DAYS, "2025-03-12"].map((day, place) =>
    bucket(`${day}T00:00:00Z`, place === 6 ? ONCE : NEVER),
  );
  const { findByRole, queryByText } = showOnPage(<Overview />, "?period=7d&zone=UTC&interval=day", {
    summary: ({ query }) => ({
      current: (query.get("end") ?? "") < "2025-03-06" ? NEVER : ONCE,
      interval,
    }),
  });
  await findByRole("group", { name: /^Chart: Visitors, By day/ });
  assert.ok(!queryByText(/From the third day on/));
});
