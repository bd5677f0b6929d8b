// How loops sleep.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createNap } from "#timing/nap.ts";

test("a sleeper rises when its time is up, also while others sleep on", async () => {
  const nap = createNap();
  const risen: string[] = [];
  const long = nap.sleep(10_000).then(() => risen.push("long"));
  const short = nap.sleep(5).then(() => risen.push("short"));
  const middle = nap.sleep(15).then(() => risen.push("middle"));
  await Promise.all([short, middle]);
  assert.deepEqual(risen, ["short", "middle"]);
  nap.wake();
  await long;
});

test("everybody is woken, and a call while awake is not slept through", async () => {
  const nap = createNap();
  const sleepers = Promise.all([nap.sleep(10_000), nap.sleep(10_000)]);
  nap.wake();
  await sleepers;
  await nap.sleep(10_000);
  assert.equal(nap.wasWoken(), true);
  assert.equal(nap.wasWoken(), false);
});
