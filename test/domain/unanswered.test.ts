// When that which a breaker holds is given up, rule by rule.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, type Postponed, type Settlement, sooner } from "#domain/attempt.ts";
import { createIds, madeAtMs } from "#domain/ids.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { dependsOnDoubts, settlementFor } from "#domain/retry.ts";
import { CHANNEL_RETRY, policyOf, type RetryPolicy, retryPolicies, stretchMs } from "#domain/retry-policy.ts";
import { heldForMs, isOver, LEAST_MS, mayBeOver } from "#domain/unanswered.ts";

const HOUR = 3_600_000;
const MADE_AT = 1_700_000_000_000;
const id = createIds(() => MADE_AT)();
const own = (retryPolicy: NotificationRequest["retryPolicy"]): RetryPolicy =>
  policyOf({ request: { channel: "webhook", ...(retryPolicy && { retryPolicy }) } }, retryPolicies());
const held = (more: Partial<Postponed> = {}): Postponed => ({ kind: "postponed", waitMs: 60_000, reason: "", ...more });

test("an id tells when it was made", () => {
  assert.equal(madeAtMs(id), MADE_AT);
});

test("it is held for as long as its attempts would last at the longest, and never for less than an hour", () => {
  assert.equal(LEAST_MS, HOUR);
  const table: [policy: RetryPolicy, forMs: number][] = [
    [CHANNEL_RETRY.webhook, stretchMs(CHANNEL_RETRY.webhook, 1)],
    [CHANNEL_RETRY.inbox, HOUR],
    [own({ maxAttempts: 5 }), HOUR],
    [own({ maxAttempts: 1 }), HOUR],
    [own({ maxAttempts: 100 }), stretchMs(own({ maxAttempts: 100 }), 1)],
  ];
  for (const [policy, forMs] of table) {
    assert.equal(heldForMs(policy), forMs);
    assert.ok(!isOver(MADE_AT, policy, MADE_AT + forMs - 1));
    assert.ok(isOver(MADE_AT, policy, MADE_AT + forMs));
  }
  assert.ok(heldForMs(CHANNEL_RETRY.email) > 48 * HOUR, "a day's outage is outlived");
});

const LONG = 10 * 24 * HOUR;
const table: [name: string, postponed: Postponed, ageMs: number, policy: RetryPolicy, expected: boolean][] = [
  ["old, and nobody answers: the record is asked", held({ silentMs: LONG }), LONG, CHANNEL_RETRY.sms, true],
  ["younger than its attempts would last", held({ silentMs: LONG }), 48 * HOUR, CHANNEL_RETRY.sms, false],
  ["old, and it waits for a limit, a lock or a pause", held(), LONG, CHANNEL_RETRY.sms, false],
  ["old, and an outage of minutes", held({ silentMs: HOUR - 1 }), LONG, CHANNEL_RETRY.sms, false],
  ["an own policy of seconds, after minutes", held({ silentMs: HOUR }), HOUR - 1, own({ maxAttempts: 2 }), false],
  ["an own policy of seconds, after an hour", held({ silentMs: HOUR }), HOUR, own({ maxAttempts: 2 }), true],
];
for (const [name, postponed, ageMs, policy, expected] of table) {
  test(name, () => assert.equal(mayBeOver({ id }, postponed, policy, MADE_AT + ageMs), expected));
}

const settled = (number: number, outcome: Outcome, doubts: number): Settlement =>
  settlementFor({ number, request: { channel: "sms", content: {} } }, outcome, CHANNEL_RETRY.sms, 1, doubts);

test("it ends as if its attempts were spent: failed, or in doubt where an earlier attempt may have sent it", () => {
  const unanswered: Outcome = { kind: "unanswered", reason: "the receiver does not answer" };
  assert.deepEqual(settled(1, unanswered, 0), { to: "failed" });
  assert.deepEqual(settled(2, unanswered, 1), { to: "ambiguous" });
  assert.deepEqual(settled(2, { ...unanswered, isPartly: true }, 0), { to: "sent" }, "some devices have it");
  const depends = (number: number) =>
    dependsOnDoubts({ number, request: { channel: "sms", content: {} } }, unanswered, CHANNEL_RETRY.sms);
  assert.deepEqual([depends(1), depends(2)], [false, true]);
});

test("where one of several ways waits for anything else it is no silence, whoever is asked first", () => {
  const silent = held({ waitMs: 10, silentMs: 5 });
  const limited = held({ waitMs: 20, reason: "the limit" });
  for (const both of [sooner(silent, limited), sooner(limited, silent)]) assert.deepEqual(both, held({ waitMs: 10 }));
  const longer = held({ waitMs: 20, silentMs: 7 });
  for (const both of [sooner(silent, longer), sooner(longer, silent)]) assert.deepEqual(both, silent);
});
