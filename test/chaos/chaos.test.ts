// The whole system under a short storm: real processes, real PostgreSQL, faults from a seed, and the checker.
//
// Set CARILLON_TEST_SEED to repeat the choices of an earlier run; `npm run chaos` takes longer ones.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runChaos } from "../../chaos/chaos.ts";
import { check } from "../../chaos/checker.ts";
import { summarize } from "../../chaos/summary.ts";

test("every guarantee holds through 20 s of kills, freezes, cuts and crashes", { timeout: 180_000 }, async (t) => {
  const seed = Number(process.env.CARILLON_TEST_SEED ?? Math.floor(Math.random() * 1e6));
  t.diagnostic(`seed ${seed}`);
  const { history, evidence, remove } = await runChaos({ seed, seconds: 20, workers: 3 });
  const violations = check(history);
  const summary = summarize(history, violations);
  for (const line of summary.split("\n")) t.diagnostic(line);
  assert.equal(violations.length, 0, `${summary}\nevidence in ${evidence}`);
  await remove();
});
