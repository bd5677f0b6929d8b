// The planner of reminders, against the plainest model of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { planOf, resolveOffsets } from "#domain/reminder.ts";

test("offsets: the reminder's own, else the nearest scope that has some, else the tenant's", () => {
  const defaults = new Map([
    ["channel:5", []],
    ["guild:1", ["P1D"]],
    ["tenant", ["PT1H"]],
  ]);
  assert.deepEqual(resolveOffsets(["PT5M"], ["guild:1"], defaults), { before: ["PT5M"], from: "reminder" });
  assert.deepEqual(resolveOffsets([], ["guild:1"], defaults), { before: [], from: "reminder" });
  assert.deepEqual(resolveOffsets(null, ["channel:5", "guild:1"], defaults), { before: ["P1D"], from: "guild:1" });
  assert.deepEqual(resolveOffsets(null, ["guild:2"], defaults), { before: ["PT1H"], from: "tenant" });
  assert.deepEqual(resolveOffsets(null, [], new Map()), { before: [], from: "none" });
});

test("the plan is what a naive model says, for any event, offsets and moment", () => {
  const MS = { M: 60_000, H: 3_600_000 } as const;
  const offset = fc.tuple(fc.integer({ min: 0, max: 2_000 }), fc.constantFrom("M" as const, "H" as const));
  const instant = fc.date({ min: new Date("2026-01-01"), max: new Date("2028-01-01"), noInvalidDate: true });
  fc.assert(
    fc.property(instant, instant, fc.array(offset, { maxLength: 8 }), (at, now, offsets) => {
      const plan = planOf(
        at,
        offsets.map(([n, unit]) => `PT${n}${unit}`),
        "UTC",
        now,
      );
      const expected = [...new Set(offsets.map(([n, unit]) => at.getTime() - n * MS[unit]))]
        .filter((due) => due > now.getTime())
        .sort((a, b) => a - b);
      assert.deepEqual(
        plan.map(({ dueAt }) => dueAt.getTime()),
        expected,
      );
    }),
  );
});
