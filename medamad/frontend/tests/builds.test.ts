// A daemon that is replaced by another build.

import assert from "node:assert/strict";
import { test } from "node:test";
import { buildWatch } from "../dashboard/api/client.ts";

/** A tab of the browser, whose page is loaded as often as it wants to be. */
function tab(kept: Storage | undefined) {
  kept?.clear();
  let loads = 0;
  let note: (commit: string | null) => void = () => {};
  const load = () => {
    loads += 1;
    note = buildWatch(kept, load);
  };
  load();
  return {
    /** Take responses of these builds; return how often the page was loaded. */
    after: (...builds: (string | null)[]) => {
      for (const build of builds) note(build);
      return loads;
    },
  };
}

test("a new build is loaded once", () => {
  const { after } = tab(sessionStorage);
  assert.equal(after("one", "one", null, "one"), 1);
  assert.equal(after("two"), 2);
  assert.equal(after("two", "two"), 2);
  assert.equal(after("three", "three"), 3);
});

test("alternating builds do not cause a loop", () => {
  const { after } = tab(sessionStorage);
  assert.equal(after("one", "two"), 2);
  assert.equal(after("two", "one"), 3);
  for (const builds of [
    ["one", "two"],
    ["two", "one"],
  ]) {
    assert.equal(after(...builds, ...builds, ...builds), 3);
  }
});

test("nothing is loaded again where the browser remembers nothing", () => {
  assert.equal(tab(undefined).after("one", "two"), 1);
});
