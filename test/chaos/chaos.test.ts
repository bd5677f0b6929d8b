// The whole system under a short storm: real processes, real PostgreSQL, faults from a seed, and the checker.
//
// Set CARILLON_TEST_SEED to repeat the choices of an earlier run; `npm run chaos` takes longer ones. When exactly a fault
// strikes, the machine decides: a run in which some path was not met at all proves less than it should, and the next
// seed has to meet it. A promise that was broken is never tried again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runChaos } from "../../chaos/chaos.ts";
import { check } from "../../chaos/checker.ts";
import { summarize } from "../../chaos/summary.ts";

const SEEDS = process.env.CARILLON_TEST_SEED ? [Number(process.env.CARILLON_TEST_SEED)] : [7, 8, 9];

test("every guarantee holds through 20 s of kills, freezes, cuts and crashes", { timeout: 900_000 }, async (t) => {
  let summary = "";
  for (const seed of SEEDS) {
    t.diagnostic(`seed ${seed}`);
    const { history, evidence, remove } = await runChaos({ seed, seconds: 20, workers: 3 });
    const violations = check(history);
    summary = `${summarize(history, violations)}\nevidence in ${evidence}`;
    for (const line of summary.split("\n")) t.diagnostic(line);
    assert.deepEqual(
      violations.filter(({ guarantee }) => guarantee !== "visits"),
      [],
      summary,
    );
    await remove();
    if (violations.length === 0) return;
  }
  assert.fail(summary);
});
