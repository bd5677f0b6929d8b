// The retry policy, rule by rule.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outcome, Settlement } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { backoffMs, DEFAULT_RETRY, policyOf, settlementFor } from "#domain/retry.ts";

const request = (more: Partial<NotificationRequest> = {}): NotificationRequest => ({
  channel: "console",
  content: {},
  ...more,
});
const policy = { ...DEFAULT_RETRY, maxAttempts: 3 };
const waits = (waitMs: number): Settlement => ({ to: "pending", waitMs, spendsAttempt: true });

const table: [
  name: string,
  number: number,
  outcome: Outcome,
  expected: Settlement,
  more?: Partial<NotificationRequest>,
][] = [
  ["accepted is sent", 1, { kind: "accepted" }, { to: "sent" }],
  ["rejected has failed, whatever is left of the budget", 1, { kind: "rejected", reason: "" }, { to: "failed" }],
  ["a dead recipient has failed", 1, { kind: "dead-recipient", reason: "" }, { to: "failed" }],
  ["unavailable waits out its backoff", 1, { kind: "unavailable", reason: "" }, waits(1_000)],
  ["the second time twice as long", 2, { kind: "unavailable", reason: "" }, waits(2_000)],
  ["the last time it has failed", 3, { kind: "unavailable", reason: "" }, { to: "failed" }],
  ["a provider may slow us down", 1, { kind: "unavailable", reason: "", retryAfterMs: 60_000 }, waits(60_000)],
  ["but never hurry us", 2, { kind: "unavailable", reason: "", retryAfterMs: 10 }, waits(2_000)],
  ["limited waits longer", 1, { kind: "limited", reason: "" }, waits(5_000)],
  ["limited respects Retry-After", 1, { kind: "limited", reason: "", retryAfterMs: 30_000 }, waits(30_000)],
  ["ambiguous is sent again by default", 1, { kind: "ambiguous", reason: "" }, waits(1_000)],
  [
    "ambiguous is held when the sender says so",
    1,
    { kind: "ambiguous", reason: "" },
    { to: "ambiguous" },
    { onAmbiguous: "hold" },
  ],
  [
    "ambiguous is held when nobody could tell",
    1,
    { kind: "ambiguous", reason: "" },
    { to: "ambiguous" },
    { onAmbiguous: "reconcile" },
  ],
  ["ambiguous to the end has failed", 3, { kind: "ambiguous", reason: "" }, { to: "failed" }],
  ["expired has expired", 1, { kind: "expired" }, { to: "expired" }],
  ["released goes back as it was", 1, { kind: "released" }, { to: "queued" }],
  [
    "postponed waits without spending its attempt, even the last",
    3,
    { kind: "postponed", waitMs: 700, reason: "" },
    { to: "pending", waitMs: 700, spendsAttempt: false },
  ],
];
for (const [name, number, outcome, expected, more] of table) {
  test(name, () => {
    assert.deepEqual(settlementFor({ number, request: request(more) }, outcome, policy, 1), expected);
  });
}

test("a request's own policy wins over the defaults", () => {
  const own = policyOf({ request: request({ retryPolicy: { maxAttempts: 9, maxBackoffMs: 500 } }) }, DEFAULT_RETRY);
  assert.deepEqual([own.maxAttempts, own.maxBackoffMs, own.backoffMultiplier], [9, 500, 2]);
  assert.deepEqual(
    settlementFor({ number: 8, request: request() }, { kind: "limited", reason: "" }, own, 1),
    waits(500),
  );
});

test("jitter stays between half and all of the backoff, and the cap holds", () => {
  for (let attempt = 1; attempt < 30; attempt++) {
    const full = Math.min(DEFAULT_RETRY.maxBackoffMs, 1_000 * 2 ** (attempt - 1));
    assert.equal(backoffMs(attempt, DEFAULT_RETRY, 0), full / 2);
    assert.equal(backoffMs(attempt, DEFAULT_RETRY, 1), full);
  }
});
