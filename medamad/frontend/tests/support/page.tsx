// Shows parts of the dashboard, with responses in place of the daemon's.

import { afterEach, mock } from "node:test";
import { type BoundFunctions, configure, type queries, within } from "@testing-library/dom";
import userEvent from "@testing-library/user-event";
import { options, render, type VNode } from "preact";
import { act } from "preact/test-utils";
import { LocationProvider, Route, Router, useRoute } from "preact-iso";
import { isAway } from "../../dashboard/api/client.ts";
import { App } from "../../dashboard/app.tsx";
import { speak } from "../../dashboard/i18n/index.ts";
import { forgetAnswers } from "../../dashboard/state/data.ts";
import { recognise, user } from "../../dashboard/state/session.ts";
import { theme } from "../../dashboard/state/theme.ts";
import { NoSuchPage } from "../../dashboard/ui/no-such-page.tsx";
import { useAddressedView, ViewingContext } from "../../dashboard/view/page-state.ts";
import { countsVisitors, keepsVisits } from "../../dashboard/view/visits.ts";

// Nothing is hidden by a style sheet here, and looking takes long, as all does on a busy machine.
configure({ defaultHidden: true, asyncUtilTimeout: 10_000 });
// Effects do not wait for timers, which a test may have replaced.
options.requestAnimationFrame = (flush) => void setImmediate(flush);
await speak("en");

/** The website of the page. */
export const HOSTNAME = "past.example";

/** A request of the dashboard; `path` is without /api. */
export interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  body: unknown;
}

type Answer = Response | object | null;

/**
 * What the daemon answers, by the path below /api, or below that of the website: an object is sent
 * as JSON with status 200, null as status 204.
 */
export type Answers = Record<string, Answer | ((asked: Asked) => Answer | Promise<Answer>)>;

/** A refusal as the daemon sends it. */
export function refusal(code: number, message: string, headers: Record<string, string> = {}) {
  return Response.json({ error: { code, message } }, { status: code, headers });
}

/** An answer that waits until it is let go. */
export function held<T extends object>(answer: T): { wait: () => Promise<T>; letGo: () => void } {
  let letGo = () => {};
  const gone = new Promise<void>((go) => {
    letGo = go;
  });
  return { wait: () => gone.then(() => answer), letGo };
}

/** What is shown, and what it has requested, oldest first. */
export interface Shown extends BoundFunctions<typeof queries> {
  person: ReturnType<typeof userEvent.setup>;
  asked: Asked[];
  root: HTMLElement;
}

let root: HTMLElement | undefined;

/** Show something at an address below /dashboard/, in place of what was shown before. */
export function show(shown: VNode, address = "", answers: Answers = {}): Shown {
  const page = begin(address, answers);
  render(<LocationProvider scope="/dashboard">{shown}</LocationProvider>, page.root);
  return page;
}

/** Show the dashboard at an address below /dashboard/. */
export function showApp(address = "", answers: Answers = {}): Shown {
  const page = begin(address, answers);
  render(<App recognised={recognise()} />, page.root);
  return page;
}

/** Prepare an empty page. */
function begin(address: string, answers: Answers): Shown {
  takeAway();
  history.replaceState(null, "", `/dashboard/${address}`);
  const asked: Asked[] = [];
  mock.method(globalThis, "fetch", (url: string, options: RequestInit = {}) =>
    answer(answers, asked, url, options),
  );
  root = document.createElement("div");
  document.body.append(root);
  // There is no style sheet that keeps pointers from anything.
  const person = userEvent.setup({ pointerEventsCheck: 0 });
  return { ...within(document.body), person, asked, root };
}

/** Show parts of the page of HOSTNAME at a query such as "?period=today". */
export function showOnPage(parts: VNode, query = "", answers: Answers = {}): Shown {
  const Page = () => <OnPage>{parts}</OnPage>;
  return show(
    <Router>
      <Route path="/dashboard/websites/:hostname" component={Page} />
      <Route default component={NoSuchPage} />
    </Router>,
    `websites/${HOSTNAME}${query}`,
    answers,
  );
}

function OnPage({ children }: { children: VNode }) {
  const { params } = useRoute();
  const viewing = useAddressedView(params.hostname ?? "");
  return <ViewingContext.Provider value={viewing}>{children}</ViewingContext.Provider>;
}

async function answer(
  answers: Answers,
  asked: Asked[],
  url: string,
  { method = "GET", body }: RequestInit,
): Promise<Response> {
  const { pathname, searchParams: query } = new URL(url, location.origin);
  const path = pathname.replace(/^\/api\//, "");
  const request = { method, path, query, body: body ? JSON.parse(String(body)) : undefined };
  const known = answers[path] ?? answers[path.replace(`website/${HOSTNAME}/`, "")];
  // Most tests are about a website without any, and about other requests.
  if (!known && path.endsWith("/annotations")) return Response.json([]);
  asked.push(request);
  if (known === undefined) throw new Error(`no answer to ${method} ${path}`);
  const given = typeof known === "function" ? await known(request) : known;
  if (given instanceof Response) return given.clone();
  return given === null ? new Response(null, { status: 204 }) : Response.json(given);
}

function takeAway(): void {
  const left = root;
  // Effects are cleaned up at once: in the next test, other timers may be in place.
  if (left) act(() => render(null, left));
  root?.remove();
  root = undefined;
}

afterEach(async () => {
  mock.timers.reset();
  takeAway();
  mock.restoreAll();
  localStorage.clear();
  sessionStorage.clear();
  forgetAnswers();
  user.value = undefined;
  isAway.value = false;
  theme.value = "system";
  keepsVisits.value = true;
  countsVisitors.value = true;
  await speak("en");
});
