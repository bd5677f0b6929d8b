// Whatever a provider or a receiver says, what goes on from there can be waited for and written down.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Reply } from "#domain/attempt.ts";
import { boundedReply, oneLine, waitMsOf } from "#domain/said.ts";

const DAY_MS = 86_400_000;

test("a wait is a time to come, and at most a day", () => {
  for (const none of [undefined, Number.NaN, 0, -1, -1e300, Number.NEGATIVE_INFINITY])
    assert.equal(waitMsOf(none), undefined, String(none));
  assert.equal(waitMsOf(1_500.4), 1_500);
  for (const far of [DAY_MS, 1e18, 1e300, Number.POSITIVE_INFINITY]) assert.equal(waitMsOf(far), DAY_MS);
});

test("words are one line, not too long, and no half of a character remains", () => {
  assert.equal(oneLine("  a\r\nb\0c\t "), "a b c");
  const cut = oneLine("🔔".repeat(400));
  assert.ok(cut.isWellFormed() && cut.length <= 301, cut.slice(-3));
  assert.ok(oneLine("x\ud83d").isWellFormed());
});

test("whatever a provider answers, its reply can be settled", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.constantFrom("\0", "a\nb", "\ud83d", "🔔x".repeat(1_000)),
  );
  const number = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(Number.NaN, Infinity, -Infinity, 1e300));
  const reply = fc.oneof(
    fc.record({ kind: fc.constant("accepted"), receipt: text, cost: number }, { requiredKeys: ["kind"] }),
    fc.record(
      { kind: fc.constantFrom("unavailable", "limited"), reason: text, code: text, retryAfterMs: number },
      { requiredKeys: ["kind", "reason"] },
    ),
    fc.record(
      { kind: fc.constantFrom("rejected", "ambiguous"), reason: text, code: text },
      { requiredKeys: ["kind", "reason"] },
    ),
  );
  fc.assert(
    fc.property(reply, (said) => {
      const { kind, ...rest } = boundedReply(said as Reply);
      assert.equal(kind, said.kind);
      for (const [name, value] of Object.entries(rest)) {
        if (typeof value === "string")
          assert.ok(value.isWellFormed() && value.length <= 1_000 && !/[\0\n]/.test(value), name);
        else assert.ok(Number(value) >= 0 && Number(value) <= DAY_MS, `${name} ${value}`);
      }
    }),
  );
});

test("a reply that says nothing out of the way stays as it is", () => {
  for (const reply of [
    { kind: "accepted" },
    { kind: "accepted", receipt: "<1@example.com>", cost: 0.0083 },
    { kind: "limited", reason: "429", code: "429", category: "throttled", retryAfterMs: 700, isPartly: true },
    { kind: "ambiguous", reason: "no answer in time", category: "timeout" },
  ] satisfies Reply[])
    assert.deepEqual(boundedReply(reply), reply);
});
