// Logging in and out, and addresses without a page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@testing-library/dom";
import { refresh } from "../dashboard/state/data.ts";
import { ADA, owner } from "./support/account.ts";
import { type Answers, refusal, type Shown, showApp } from "./support/page.tsx";

const PASSWORD = "open sesame";

/** A server that nobody is logged in at. */
function closed(further: Answers = {}): Answers {
  let isOpen = false;
  return owner([], {
    user: () => (isOpen ? ADA : refusal(401, "log in first")),
    "auth/login": ({ body }) => {
      const { username, password } = body as { username: string; password: string };
      isOpen = username === ADA.username && password === PASSWORD;
      return isOpen ? null : refusal(401, "wrong");
    },
    ...further,
  });
}

async function logIn(shown: Shown, password = PASSWORD) {
  const { person, findByLabelText, getByLabelText, getByRole } = shown;
  await person.clear(await findByLabelText("Username"));
  await person.type(getByLabelText("Username"), ADA.username);
  await person.clear(getByLabelText("Password"));
  await person.type(getByLabelText("Password"), password);
  await person.click(getByRole("button", { name: "Log in" }));
}

function alerted({ getByRole }: Shown): string {
  return getByRole("alert").textContent;
}

test("after logging in, the requested page is shown", async () => {
  const shown = showApp("settings/about?from=here", closed());
  await shown.findByRole("heading", { level: 1, name: "Log in" });
  await waitFor(() => assert.equal(document.title, "Log in · medamad"));
  assert.ok(document.activeElement === shown.getByLabelText("Username"));
  assert.ok(shown.getByText("first-login.txt"));
  await logIn(shown, "not the password");
  await waitFor(() => assert.equal(alerted(shown), "Incorrect username or password."));
  await logIn(shown);
  await shown.findByRole("heading", { level: 1, name: "Settings" });
  assert.equal(location.pathname + location.search, "/dashboard/settings/about?from=here");
});

test("the password can be shown", async () => {
  const shown = showApp("", closed());
  const password = await shown.findByLabelText<HTMLInputElement>("Password");
  await shown.person.type(password, "secret");
  assert.equal(password.type, "password");
  await shown.person.click(shown.getByRole("button", { name: "Show password" }));
  assert.equal(password.type, "text");
  assert.equal(password.value, "secret");
  await shown.person.click(shown.getByRole("button", { name: "Hide password" }));
  assert.equal(password.type, "password");
});

test("after too many failures there is a wait", async () => {
  const throttled = refusal(429, "too many", { "Retry-After": "1" });
  const shown = showApp("", closed({ "auth/login": throttled }));
  await logIn(shown);
  await waitFor(() => assert.equal(alerted(shown), "Too many failed attempts from your network."));
  const button = shown.getByRole<HTMLButtonElement>("button", { name: "Log in" });
  assert.ok(shown.getByText("Try again in 1 second."));
  assert.ok(button.disabled);
  await waitFor(() => assert.ok(!button.disabled), { timeout: 5_000 });
  await waitFor(() => assert.equal(alerted(shown), ""));
  assert.ok(!shown.queryByText(/^Try again/));
});

for (const away of ["auth/login", "user"]) {
  test(`a server that is unreachable at the login may come back: ${away}`, async () => {
    let isThere = true;
    let isOpen = false;
    const unreachableAt = (path: string) => {
      if (!isThere && path === away) throw new Error("unreachable");
    };
    const shown = showApp(
      "",
      owner([], {
        user: ({ path }) => {
          unreachableAt(path);
          return isOpen ? ADA : refusal(401, "log in first");
        },
        "auth/login": ({ path }) => {
          unreachableAt(path);
          isOpen = true;
          return null;
        },
      }),
    );
    await shown.findByLabelText("Username");
    isThere = false;
    await logIn(shown);
    await waitFor(() => assert.equal(alerted(shown), "The server isn’t responding"));
    isThere = true;
    await logIn(shown);
    await shown.findByRole("heading", { level: 1, name: "Websites" });
  });
}

test("who logs out is asked to log in", async () => {
  const shown = showApp("settings/about", owner());
  await shown.person.click(await shown.findByRole("button", { name: /^Menu/ }));
  await shown.person.click(shown.getByRole("menuitem", { name: /^Log out/ }));
  await shown.findByRole("heading", { level: 1, name: "Log in" });
  assert.ok(shown.asked.some(({ method, path }) => method === "POST" && path === "auth/logout"));
});

test("a session that has expired ends at the login", async () => {
  let isOver = false;
  const over = refusal(401, "log in first");
  const { "user/usage": usage } = owner();
  const shown = showApp(
    "settings/about?from=here",
    owner([], { "user/usage": () => (isOver ? over : (usage as object)) }),
  );
  await shown.findByText("1.2.3");
  isOver = true;
  refresh();
  await shown.findByRole("heading", { level: 1, name: "Log in" });
  assert.equal(location.pathname + location.search, "/dashboard/settings/about?from=here");
});

for (const path of ["nowhere/at/all", "settings/nope"]) {
  test(`there is no page ${path}`, async () => {
    const shown = showApp(path, owner());
    await shown.findByRole("heading", { level: 1, name: "This page doesn’t exist." });
    await shown.person.click(shown.getByRole("link", { name: "Back to websites" }));
    await shown.findByRole("heading", { level: 1, name: "Websites" });
  });
}
