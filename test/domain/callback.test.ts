// Callbacks as they are made, and how they are tried again.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outcome } from "#domain/attempt.ts";
import { acceptedRow, CALLBACK_RETRY, webhookIdOf } from "#domain/callback.ts";
import { callbackAbout, isTold, type Told } from "#domain/calls.ts";
import { type CallbackPolicy, REQUESTS } from "#domain/endpoint.ts";
import type { Fact } from "#domain/fact.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { dependsOnDoubts, settlementFor } from "#domain/retry.ts";
import { backoffMs, policyOf, retryPolicies } from "#domain/retry-policy.ts";

const fact: Fact = {
  position: { epoch: 1, key: 1, seq: 1, ordinal: 0 },
  type: "sent",
  at: new Date("2026-01-02T00:00:00Z"),
  tenant: 7,
  notificationId: "n",
  number: 12,
};
const told: Told = { endpoint: "ep_a", events: null, policy: "best_effort", fifo: null, since: new Date(0) };
const about = { at: fact.at, acceptedAt: new Date("2026-01-01T00:00:00Z"), userId: "ada", data: {}, context: {} };
const make = (to: Partial<Told>, of: Partial<Fact> = {}) =>
  callbackAbout({ ...fact, ...of }, about, { ...told, ...to }, "c", 90 * 86_400_000);
const requestOf = (policy: CallbackPolicy): NotificationRequest => JSON.parse(acceptedRow(make({ policy }))).r;
const policies = retryPolicies(3);
const seconds = (policy: CallbackPolicy, random: number) => {
  const held = policyOf({ request: requestOf(policy) }, policies);
  return Array.from({ length: Math.min(15, held.maxAttempts - 1) }, (_, n) => backoffMs(n + 1, held, random) / 1000);
};

test("the waits of the three policies are as promised, whatever number of attempts is set for notifications", () => {
  assert.deepEqual(seconds("best_effort", 1), [30, 60, 120]);
  assert.deepEqual(seconds("best_effort", 0), [15, 30, 60]);
  assert.deepEqual(seconds("aggressive", 1), [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]);
  assert.deepEqual(seconds("persistent", 1).slice(0, 4), [60, 120, 240, 480]);
  assert.equal(seconds("persistent", 1).at(-1), 7 * 86_400);
});

const table: [name: string, number: number, outcome: Outcome, to: string, waitMs?: number][] = [
  ["taken", 1, { kind: "accepted" }, "sent"],
  ["refused", 1, { kind: "rejected", reason: "" }, "failed"],
  ["too many waits as any other", 1, { kind: "limited", reason: "" }, "pending", 30_000],
  ["as long as the receiver asks", 1, { kind: "limited", reason: "", retryAfterMs: 600_000 }, "pending", 600_000],
  ["a lost answer is like none", 1, { kind: "ambiguous", reason: "" }, "pending", 30_000],
  ["however often", 3, { kind: "ambiguous", reason: "" }, "pending", 120_000],
  ["and its end is a failure", 4, { kind: "ambiguous", reason: "" }, "failed"],
  ["as after the last that was away", 4, { kind: "unavailable", reason: "" }, "failed"],
];
for (const [name, number, outcome, to, waitMs] of table) {
  test(`a callback: ${name}`, () => {
    const attempt = { number, request: requestOf("best_effort") };
    const settlement = settlementFor(attempt, outcome, CALLBACK_RETRY.best_effort, 1, 0);
    assert.equal(settlement.to, to);
    assert.equal("waitMs" in settlement ? settlement.waitMs : undefined, waitMs);
    assert.equal(dependsOnDoubts(attempt, outcome, CALLBACK_RETRY.best_effort), false);
  });
}

test("a persistent one is given up when its notification is no longer kept", () => {
  assert.equal(make({ policy: "persistent" }).callback.until, "2026-04-01T00:00:00.000Z");
  assert.equal(make({ policy: "aggressive" }).callback.until, undefined);
});

test("the id is the same for the same fact and endpoint, and for no others", () => {
  const id = (to: Partial<Told>, of: Partial<Fact> = {}) => make(to, of).callback.webhookId;
  assert.equal(id({}), id({ policy: "persistent" }));
  assert.equal(
    new Set([id({}), id({ endpoint: "ep_b" }), id({}, { number: 13 }), id({}, { notificationId: "m" })]).size,
    4,
  );
  assert.match(webhookIdOf("a"), /^msg_[\w-]{27}$/);
});

test("an endpoint is told what it asked for, from when it was made", () => {
  assert.equal(isTold(fact, told), true);
  assert.equal(isTold(fact, { ...told, events: ["failed"] }), false);
  assert.equal(isTold(fact, { ...told, since: new Date("2026-01-03T00:00:00Z") }), false);
});

test("callbacks stand in line by endpoint, by user or by notification; those of requests by notification", () => {
  const line = (to: Partial<Told>) => make(to).callback.line;
  assert.equal(line({}), undefined);
  assert.equal(line({ fifo: "endpoint" }), "7 ep_a");
  assert.match(line({ fifo: "user" }) ?? "", /^7 ep_a user [\w-]{27}$/, "and name nobody");
  assert.equal(line({ fifo: "notification" }), "7 ep_a n");
  assert.equal(line({ fifo: "endpoint", endpoint: REQUESTS }), `7 ${REQUESTS} n`);
});

test("it is named after what happened", () => {
  assert.equal(make({}).callback.type, "notification.sent");
  assert.equal(make({}, { type: "reminder.due" }).callback.type, "reminder.due");
});
