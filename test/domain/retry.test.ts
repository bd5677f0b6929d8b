// The retry policy, rule by rule.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outcome, Settlement } from "#domain/attempt.ts";
import { CHANNELS, type NotificationRequest } from "#domain/notification.ts";
import { dependsOnDoubts, RESENDS, settlementFor } from "#domain/retry.ts";
import {
  backoffMs,
  CHANNEL_RETRY,
  OWN_RETRY,
  policyOf,
  type RetryPolicy,
  retryPolicies,
  stretchMs,
} from "#domain/retry-policy.ts";

const request = (more: Partial<NotificationRequest> = {}): NotificationRequest => ({
  channel: "console",
  content: {},
  ...more,
});
const policy = { ...OWN_RETRY, maxAttempts: 3 };
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
  [
    "ambiguous to the end stays in doubt, and has not failed",
    3,
    { kind: "ambiguous", reason: "" },
    { to: "ambiguous" },
  ],
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
    assert.deepEqual(settlementFor({ number, request: request(more) }, outcome, policy, 1, 0), expected);
  });
}

const lostAnswer: Outcome = { kind: "ambiguous", reason: "" };
const away: Outcome = { kind: "unavailable", reason: "" };
const settled = (number: number, outcome: Outcome, by: RetryPolicy, doubts: number) =>
  settlementFor({ number, request: request() }, outcome, by, 1, doubts);

test("what may have been sent is sent again twice, whatever is left of its attempts, and then it is ambiguous", () => {
  const { sms } = CHANNEL_RETRY;
  assert.equal(RESENDS, 2);
  for (const number of [1, 5, 40]) {
    assert.deepEqual(settled(number, lostAnswer, sms, 0), waits(backoffMs(number, sms, 1)));
    assert.deepEqual(settled(number, lostAnswer, sms, 1), waits(sms.maxBackoffMs), "the last one outlives the trouble");
    for (const doubts of [2, 3]) assert.deepEqual(settled(number, lostAnswer, sms, doubts), { to: "ambiguous" });
  }
});

test("the last resend waits as long as the sender's own policy ever does", () => {
  const own = policyOf({ request: request({ retryPolicy: { maxAttempts: 5 } }) }, retryPolicies());
  assert.deepEqual(settled(2, lostAnswer, own, 1), waits(8_000));
});

test("what is away to the end has failed, unless an earlier attempt may have sent it, or some devices have it", () => {
  assert.deepEqual(settled(3, away, policy, 0), { to: "failed" });
  assert.deepEqual(settled(3, away, policy, 1), { to: "ambiguous" });
  assert.deepEqual(settled(3, { ...away, isPartly: true }, policy, 1), { to: "sent" });
  assert.deepEqual(settled(2, away, policy, 2), waits(2_000), "what was not sent spends nothing of the resends");
});

test("earlier attempts are asked about only where they decide: never at the first, never where it went well", () => {
  const depends = (number: number, outcome: Outcome, more: Partial<NotificationRequest> = {}) =>
    dependsOnDoubts({ number, request: request(more) }, outcome, policy);
  assert.deepEqual(
    [1, 2, 3].map((number) => depends(number, lostAnswer)),
    [false, true, false],
  );
  assert.deepEqual(
    [1, 2, 3].map((number) => depends(number, away)),
    [false, false, true],
  );
  assert.ok(!depends(3, { kind: "accepted" }) && !depends(3, { kind: "rejected", reason: "" }));
  assert.ok(!depends(2, lostAnswer, { onAmbiguous: "hold" }) && !depends(3, away, { onAmbiguous: "hold" }));
});

const HOUR = 3_600_000;

test("over other people's servers the default is a day and more, in many attempts: first quick ones, then capped ones", () => {
  for (const channel of ["email", "webhook", "push", "sms", "slack"] as const) {
    const by = CHANNEL_RETRY[channel];
    const hours = [stretchMs(by, 0), stretchMs(by, 1)].map((ms) => Math.round((ms / HOUR) * 10) / 10);
    assert.deepEqual([by.maxAttempts, ...hours], [57, 24.5, 48.9], channel);
    assert.ok(stretchMs(by, 0) >= 24 * HOUR && by.maxAttempts >= 10);
    const all = Array.from({ length: by.maxAttempts - 1 }, (_, n) => backoffMs(n + 1, by, 1));
    assert.deepEqual(all.slice(0, 5), [1_000, 3_000, 9_000, 27_000, 81_000], "a stumble costs seconds");
    assert.ok(all.every((ms, n) => ms >= (all[n - 1] ?? 0)) && Math.max(...all) === HOUR);
  }
});

test("what is our own is given up sooner, and every channel has its line", () => {
  assert.deepEqual(Object.keys(CHANNEL_RETRY).sort(), [...CHANNELS].sort());
  for (const channel of ["inbox", "console", "file"] as const) {
    const minutes = [0, 1].map((random) => Math.round(stretchMs(CHANNEL_RETRY[channel], random) / 60_000));
    assert.deepEqual([CHANNEL_RETRY[channel].maxAttempts, ...minutes], [20, 29, 59], channel);
  }
});

test("a request's own policy stands in place of the channel's as a whole, and leaves out what it always did", () => {
  const of = (retryPolicy: NotificationRequest["retryPolicy"], maxAttempts?: number) =>
    policyOf(
      { request: request({ channel: "email", ...(retryPolicy && { retryPolicy }) }) },
      retryPolicies(maxAttempts),
    );
  assert.equal(of(undefined), CHANNEL_RETRY.email);
  const before = { maxAttempts: 5, backoffMultiplier: 2, firstBackoffMs: 1_000, maxBackoffMs: 300_000 };
  assert.deepEqual(of({}), before);
  assert.deepEqual(of({ maxAttempts: 3 }), { ...before, maxAttempts: 3 });
  const own = of({ maxAttempts: 9, maxBackoffMs: 500 });
  assert.deepEqual(own, { ...before, maxAttempts: 9, maxBackoffMs: 500 });
  assert.deepEqual(settled(8, { kind: "limited", reason: "" }, own, 0), waits(500));
});

test("a number of the operator's holds for all channels, and where a request's own policy names none", () => {
  const by = retryPolicies(7);
  for (const channel of CHANNELS)
    assert.deepEqual(by.byChannel[channel], { ...CHANNEL_RETRY[channel], maxAttempts: 7 });
  const of = (retryPolicy: object) => policyOf({ request: request({ retryPolicy }) }, by).maxAttempts;
  assert.deepEqual([of({ maxBackoffMs: 500 }), of({ maxAttempts: 3 })], [7, 3]);
});

test("jitter stays between half and all of the backoff, and the cap holds", () => {
  for (let attempt = 1; attempt < 30; attempt++) {
    const full = Math.min(OWN_RETRY.maxBackoffMs, 1_000 * 2 ** (attempt - 1));
    assert.equal(backoffMs(attempt, OWN_RETRY, 0), full / 2);
    assert.equal(backoffMs(attempt, OWN_RETRY, 1), full);
  }
});
