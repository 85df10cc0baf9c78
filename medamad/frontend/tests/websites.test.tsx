// The list of websites, adding one, and the head of its page.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { waitFor } from "@testing-library/dom";
import type { Website } from "../dashboard/api/types.ts";
import { SiteHead } from "../dashboard/view/site-head.tsx";
import { DEMO, owner } from "./support/account.ts";
import { bucket, figures } from "./support/figures.ts";
import { HOSTNAME, type Shown, showApp, showOnPage } from "./support/page.tsx";
import { plain } from "./support/text.ts";

const THREE: Website[] = [
  { hostname: "a.example", summary: { visitors: 1 } },
  { hostname: "b.example", summary: { visitors: 1_234 }, quietSince: 1_750_000_000 },
  { hostname: "c.example", summary: { visitors: 30 } },
];

function names({ getAllByRole }: Shown): string[] {
  return getAllByRole("heading", { level: 2 }).map(({ textContent }) => textContent);
}

/** Let the elements of these places, in the order of the page, come into sight. */
function see(...places: number[]) {
  let place = 0;
  class Observer {
    readonly isSeen = places.includes(place++);

    constructor(readonly call: (entries: { isIntersecting: boolean }[]) => void) {}

    observe() {
      this.call([{ isIntersecting: this.isSeen }]);
    }

    disconnect() {}
  }
  mock.property(globalThis, "IntersectionObserver", Observer as never);
}

test("each website has a card, that with most visitors first", async () => {
  const shown = showApp("", owner([], { websites: THREE }));
  await waitFor(() => assert.deepEqual(names(shown), ["b.example", "c.example", "a.example"]));
  assert.equal(document.title, "Websites · medamad");
  assert.deepEqual(
    shown.getAllByRole("listitem").map(({ textContent }: HTMLElement) => plain(textContent)),
    [
      "b.example1,234 visitors in the last 24 hoursNo views since Jun 15, 2025, 5:06 PM",
      "c.example30 visitors in the last 24 hours",
      "a.example1 visitor in the last 24 hours",
    ],
  );
  assert.deepEqual(
    shown
      .getAllByRole("link")
      .map((link: HTMLElement) => link.getAttribute("href"))
      .filter((href) => href?.includes("example")),
    ["b", "c", "a"].map((name) => `/dashboard/websites/${name}.example`),
  );
});

test("websites in sight have their change, and a curve of the last 30 days", async () => {
  see(0, 2);
  mock.timers.enable({ apis: ["Date"], now: new Date("2025-03-12T14:20:30Z") });
  const interval = [3, 9, 2].map((visitors, day) =>
    bucket(`2025-03-1${day}T00:00:00+01:00`, figures({ visitors })),
  );
  const summary = (before: number) => ({
    current: figures({ visitors: 30 }),
    previous: figures({ visitors: before }),
    interval,
  });
  const answers = {
    "website/b.example/summary": summary(20),
    // There is nothing to compare with.
    "website/a.example/summary": summary(0),
  };
  const shown = showApp("", owner([], { websites: THREE, ...answers }));
  const label = "Visitors per day in the last 30 days: at most 9, 2 so far today";
  await waitFor(() => assert.equal(shown.getAllByRole("img", { name: label }).length, 2));
  const requests = shown.asked.filter(({ path }) => path.endsWith("/summary"));
  const queries = (name: string) =>
    requests
      .filter(({ path }) => path === `website/${name}.example/summary`)
      .map(({ query }) => Object.fromEntries(query));
  const end = "2025-03-12T14:20:30.000Z";
  for (const name of ["a", "b"]) {
    const [days, day] = queries(name).toSorted((one) => (one.interval ? -1 : 1));
    assert.deepEqual(day, { previous: "true", start: "2025-03-11T14:20:30.000Z", end });
    assert.deepEqual(days, {
      interval: "day",
      timezone: "Europe/Berlin",
      start: "2025-02-10T23:00:00.000Z",
      end: "2025-03-12T14:20:29.999Z",
    });
  }
  assert.deepEqual(queries("c"), []);
  assert.ok(shown.getByText("50% more than in the comparison period"));
  assert.equal(shown.root.querySelectorAll(".change").length, 1);
});

test("cards have the visits where visitors are not counted", async () => {
  see(0);
  const websites = [
    { hostname: "a.example", summary: { visitors: 0, visits: 1 } },
    { hostname: "b.example", summary: { visitors: 0, visits: 20 } },
  ];
  const interval = [3, 9].map((visits, hour) =>
    bucket(`2025-03-12T1${hour}:00:00Z`, figures({ visits })),
  );
  const answers = { "website/b.example/summary": { current: figures(), interval } };
  const shown = showApp("", owner([], { websites, ...answers }));
  await waitFor(() => assert.deepEqual(names(shown), ["b.example", "a.example"]));
  assert.ok(shown.getByText("visits in the last 24 hours"));
  assert.ok(shown.getByText("visit in the last 24 hours"));
  assert.ok(shown.getByRole("button", { name: /Most visits first/ }));
  await shown.findByRole("img", {
    name: "Visits per day in the last 30 days: at most 9, 9 so far today",
  });
});

test("the order is remembered", async () => {
  const shown = showApp("", owner([], { websites: THREE }));
  await shown.person.click(await shown.findByRole("button", { name: /^Sort/ }));
  await shown.person.click(shown.getByRole("menuitemradio", { name: "By name" }));
  const byName = ["a.example", "b.example", "c.example"];
  assert.deepEqual(names(shown), byName);
  const again = showApp("", owner([], { websites: THREE }));
  await waitFor(() => assert.deepEqual(names(again), byName));
});

test("many websites are searched", async () => {
  const hostnames = Array.from({ length: 60 }, (_, number) => `site-${100 + number}.example`);
  const shown = showApp("", owner(hostnames));
  const search = await shown.findByLabelText("Search websites");
  await shown.person.type(search, "-15");
  assert.equal(shown.getAllByRole("listitem").length, 10);
  assert.equal(shown.getByRole("status").textContent, "10 websites");
  await shown.person.clear(search);
  await shown.person.type(search, "nowhere");
  assert.ok(shown.getByText("No results for “nowhere”."));
});

test("a few websites are not searched", async () => {
  const shown = showApp("", owner([], { websites: THREE }));
  await waitFor(() => assert.equal(names(shown).length, 3));
  assert.ok(!shown.queryByRole("searchbox"));
});

test("a demo does not offer to add websites", async () => {
  const shown = showApp("", owner([], { websites: THREE, "user/usage": DEMO }));
  await shown.findByText("This is a demo, so nothing can be changed.");
  assert.ok(!shown.queryByRole("link", { name: "Add website" }));
  await shown.person.keyboard("n");
  assert.equal(location.pathname, "/dashboard/");
});

test("the first website is added", async () => {
  const summary = { current: figures() };
  const shown = showApp(
    "",
    owner([], {
      "website/example.com/summary": summary,
      "website/example.com/ignored": [],
    }),
  );
  await shown.findByRole("heading", { level: 2, name: "Add your first website" });
  await waitFor(() => assert.ok(shown.getByRole("link", { name: "Add website" })));
  await shown.person.keyboard("n");
  const field = await shown.findByLabelText("Hostname");
  await waitFor(() => assert.ok(document.activeElement === field));
  await shown.person.keyboard("https://Example.com/blog?page=2");
  assert.ok(shown.getByText("We’ll use the hostname: example.com"));
  await shown.person.keyboard("{Enter}");
  await shown.findByRole("heading", { level: 1, name: "Set up example.com" });
  const changes = shown.asked.filter(({ method }) => method === "POST");
  assert.deepEqual(
    changes.map(({ path, body }) => [path, body]),
    [["websites", { hostname: "example.com" }]],
  );
});

for (const [typed, reason] of [
  ["not a name", "This isn’t a valid hostname. "],
  ["taken.example", "taken.example has already been added"],
] as const) {
  test(`a hostname is refused: ${typed}`, async () => {
    const shown = showApp("add", owner(["taken.example"]));
    const field = await shown.findByLabelText("Hostname");
    await shown.person.type(field, typed);
    await shown.person.click(shown.getByRole("button", { name: "Add" }));
    await waitFor(() => assert.ok(shown.getByRole("alert").textContent.startsWith(reason)));
    await shown.person.clear(field);
    await shown.person.type(field, "other.example");
    assert.equal(shown.getByRole("alert").textContent, "");
  });
}

/** Show the head of HOSTNAME's page, beside another website. */
function showHead(website: Partial<Website>, other: Partial<Website> = {}) {
  return showOnPage(<SiteHead live={{ visitors: 2 }} showLive={() => undefined} />, "", {
    websites: [
      { hostname: HOSTNAME, ...website },
      { hostname: "other.example", ...other },
    ],
  });
}

const SILENT = { quietSince: 1_750_000_000 };
const LIMITED = { limitsReached: ["utm_campaign"] };

test("what is unusual about a website is said on its page", async () => {
  const shown = showHead({ ...SILENT, ...LIMITED });
  assert.ok(await shown.findByText(/^No views since Jun 15, 2025, 5:06/));
  const note = await shown.findByRole("note");
  assert.match(note.textContent, /^A daily limit on new values was reached.*\(other\)/);
});

test("what is unusual about another website is not", async () => {
  const shown = showHead({}, { ...SILENT, ...LIMITED });
  await shown.findByText("2 pages open now");
  await waitFor(() => assert.ok(shown.asked.some(({ path }) => path === "websites")));
  await shown.person.click(shown.getByRole("button", { name: /^Switch website/ }));
  assert.ok(shown.getByRole("menuitemradio", { name: "other.example" }));
  assert.ok(!document.querySelector(".unvisited"));
});

test("the page of a website leads to its setup", async () => {
  const shown = showHead({});
  await shown.person.click(await shown.findByRole("button", { name: /^Switch website/ }));
  await shown.person.click(shown.getByRole("menuitem", { name: "Script and setup" }));
  assert.equal(location.pathname, `/dashboard/websites/${HOSTNAME}/setup`);
});
