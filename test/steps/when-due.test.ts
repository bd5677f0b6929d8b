// Looking for what is due while another scheduler has it in hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { whenDue } from "#steps/planned/when-due.ts";

test("what another has in hand is looked for ever more rarely, and soon again once it is gone", async () => {
  let inMs: number | undefined = 0;
  const look = whenDue(
    async () => ({ nowMs: 0, inMs }),
    async () => 0,
    () => assert.fail("nothing was fired"),
  );
  const waits = async (looks: number) => {
    const waited: (number | undefined)[] = [];
    for (let n = 0; n < looks; n++) waited.push((await look()).inMs);
    return waited;
  };
  assert.deepEqual(await waits(4), [5, 10, 20, 40]);
  for (const after of [1_000, undefined]) {
    inMs = after;
    assert.deepEqual(await waits(1), [after]);
    inMs = 0;
    assert.deepEqual(await waits(2), [5, 10]);
  }
});
