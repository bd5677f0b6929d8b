// What a breaker holds, on its way to being given up: by what the record says, and only by that.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Provider } from "#channels/channel.ts";
import type { Ended } from "#domain/attempt.ts";
import { createIds } from "#domain/ids.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { CHANNEL_RETRY } from "#domain/retry-policy.ts";
import { heldForMs } from "#domain/unanswered.ts";
import { type Halt, NO_GUARD } from "#guards/guard.ts";
import { deliver } from "#steps/walk/deliver.ts";
import { prepare } from "#steps/walk/prepare.ts";
import { answering, claimedWith, worldWith } from "../support/walk.ts";

const NOW_MS = 1_700_000_000_000;
const HELD_MS = heldForMs(CHANNEL_RETRY.push);
const id = createIds(() => NOW_MS - 10 * HELD_MS)();
const halt = { kind: "postponed", waitMs: 60_000, isPassedOver: true } as const;
const silent: Halt = { ...halt, reason: "it does not answer", silentMs: 10 * HELD_MS };
const paused: Halt = { ...halt, reason: "it is paused", waitsFor: ["b"] };
const provider = (name: string): Provider => ({
  name,
  channels: ["push", "sms"],
  capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
  send: () => assert.fail("nobody is asked"),
});

type Record = { since: () => Promise<unknown[]>; devices?: object[]; halts?: Halt[]; number?: number };

/** Old, and held by all its providers: where it goes, and its line of the record. */
async function held(request: NotificationRequest, { since, devices = [], halts = [silent], number = 1 }: Record) {
  const settled: Ended[] = [];
  const providers = halts.map((_, n) => provider(`p${n}`));
  const world = worldWith(settled, {
    db: answering(async (text) => {
      if (text.includes("'silentMs'")) return since();
      return text.includes("'devices'") ? [{ devices }] : [];
    }),
    providers: { route: () => providers },
    guard: { ...NO_GUARD, admit: (by) => halts[providers.indexOf(by)] ?? assert.fail("nobody else is asked") },
    monotonic: () => 0,
  });
  const lease = { handle: 1, meanBytes: 100, endsAt: 30_000, claimedAtMs: NOW_MS, claimedAt: 0, answeredAt: 0 };
  const [prepared] = await prepare([claimedWith({ id, lease, request, number })], world);
  const { signal } = new AbortController();
  const slot = { idempotencyKey: id, timeoutMs: 100, signal, startedAt: 0, free: () => undefined };
  await deliver(prepared ?? assert.fail("nothing was prepared"), slot, world);
  const [{ settlement, line } = assert.fail("nothing was settled")] = settled;
  return [settlement.to, line?.outcome, line?.error, line?.provider];
}

const sms: NotificationRequest = { channel: "sms", recipient: { phone: "+33612345678" }, content: { body: "b" } };
const push: NotificationRequest = { channel: "push", recipient: { deviceTokens: ["a", "b"] }, content: { body: "b" } };
const heldFor = (ms: number) => async () => [{ id, since: NOW_MS - ms }];
const WAITS = ["pending", undefined, undefined, undefined];
const FAILED = ["failed", "unanswered", silent.reason, "p0"];

test("it has failed once it was held for as long as it is tried, and not a moment before", async () => {
  assert.deepEqual(await held(sms, { since: heldFor(HELD_MS) }), FAILED);
  assert.deepEqual(await held(sms, { since: heldFor(HELD_MS - 1) }), WAITS);
});

test("what was never held before goes on waiting, however old it is", async () => {
  assert.deepEqual(await held(sms, { since: async () => [] }), WAITS);
});

test("where the record cannot be read it goes on waiting", async () => {
  assert.deepEqual(await held(sms, { since: () => Promise.reject(new Error("the record is away")) }), WAITS);
});

test("all providers of its route must be silent: one that a person has paused will be back", async () => {
  const since = heldFor(HELD_MS);
  assert.deepEqual(await held(sms, { since, halts: [silent, silent] }), FAILED);
  assert.deepEqual(await held(sms, { since, halts: [silent, paused] }), WAITS);
  assert.deepEqual(await held(sms, { since, halts: [paused, silent] }), WAITS);
});

test("what some devices have was sent, even if nobody answers for the others", async () => {
  const since = heldFor(HELD_MS);
  assert.deepEqual(await held(push, { since, number: 2 }), FAILED);
  const devices = [{ token: "a", outcome: "accepted" }];
  assert.deepEqual((await held(push, { since, devices, number: 2 })).slice(0, 2), ["sent", "unanswered"]);
});
