// Where a callback goes is looked up when it has had its turn; and that it still may go is looked at after that.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { callbackProvider } from "#channels/callback/callback.ts";
import { Endpoints } from "#channels/callback/endpoints.ts";
import type { Claimed, Ended } from "#domain/attempt.ts";
import { newSecrets, sealSecrets } from "#domain/endpoint.ts";
import { CALLBACK_RANK } from "#domain/priority.ts";
import { endpointGuard } from "#guards/endpoint-guard.ts";
import { type Admitted, type Guard, NO_GUARD } from "#guards/guard.ts";
import { deliver } from "#steps/walk/deliver.ts";
import { prepare } from "#steps/walk/prepare.ts";
import type { World } from "#steps/walk/world.ts";
import type { PublicHttp } from "#wire/public-only.ts";
import { hmacKeyOf, signWebhook } from "#wire/standard-webhooks.ts";
import { answering, claimedWith, worldWith } from "../support/walk.ts";

const KEYS = [Buffer.alloc(32, 3)];
const ID = "ep_000000000000000000000001";
const LEASE_MS = 30_000;
const FRESH_MS = 500;

let now = 0;
let posted: { url: string; signature: string; at: number; body: string }[] = [];
let settled: Ended[] = [];
let secrets = newSecrets();
let row: { [name: string]: unknown } | undefined;
let answer: () => Promise<void> = async () => {};

beforeEach(() => {
  now = 1_000;
  posted = [];
  settled = [];
  secrets = newSecrets();
  row = active(secrets);
  answer = async () => {};
});

const active = (signers: typeof secrets, more: object = {}) => ({
  tenant: 1,
  id: ID,
  url: "https://shop.example.com/hook",
  state: "active",
  policy: "best_effort",
  rate: null,
  sealed: sealSecrets(KEYS, { tenant: 1, id: ID }, signers),
  previousSealed: null,
  previousUntil: null,
  ...more,
});

const endpoints = () =>
  new Endpoints(
    answering(async () => {
      await answer();
      return row ? [row] : [];
    }),
    KEYS,
    () => now,
    () => new Date(now),
  );

const http: PublicHttp = {
  async ask({ url, headers, body }) {
    posted.push({ url: String(url), signature: headers?.["webhook-signature"] ?? "", at: now, body: String(body) });
    return { status: 204, header: () => undefined, text: "" };
  },
  refusalOf: () => undefined,
  close: async () => {},
};

/** A world in which a callback waits for its turn until `wait` ends. */
function worldOf(wait: () => Promise<void>): World {
  const found = endpoints();
  const guard: Guard = { ...NO_GUARD, admit: (): Promise<Admitted> => wait().then(() => 0) };
  const monotonic = () => now;
  const world = worldWith(settled, {
    monotonic,
    providers: { route: () => [callbackProvider({ http, endpoints: found, now: monotonic })] },
    callbacks: { endpoints: found, areFirst: async () => [], nowMs: monotonic, settled: () => undefined },
  });
  return {
    ...world,
    guard: endpointGuard({ ...world, guard, endpoints: found, onFailure: () => undefined }),
  };
}

const callback = { webhookId: "msg_1", endpoint: ID, type: "notification.sent", timestamp: "t", data: {} };

async function deliverIn(world: World, request: Partial<Claimed> = {}): Promise<void> {
  const lease = { handle: 1, meanBytes: 0, endsAt: now + LEASE_MS, claimedAtMs: now, claimedAt: now, answeredAt: now };
  const claimed = claimedWith({
    tenant: -1,
    rank: CALLBACK_RANK,
    lease,
    request: { channel: "callback", content: {}, callback } as unknown as Claimed["request"],
    ...request,
  });
  const [prepared] = await prepare([claimed], world);
  assert.ok(prepared);
  const slot = {
    idempotencyKey: claimed.id,
    timeoutMs: 1_000,
    signal: new AbortController().signal,
    startedAt: now,
    free: () => undefined,
  };
  await deliver(prepared, slot, world);
}

const waiting =
  (ms: number, then: () => void = () => {}) =>
  async () => {
    now += ms;
    then();
  };
const endings = () => settled.map(({ settlement, line }) => [settlement.to, line?.error ?? line?.outcome]);

test("one whose endpoint is looked up until its lease is over is not posted: its next holder does that", async () => {
  const world = worldOf(
    waiting(2 * FRESH_MS, () => {
      answer = async () => {
        now += LEASE_MS;
      };
    }),
  );
  await deliverIn(world);
  assert.deepEqual(posted, []);
  assert.deepEqual(endings(), [["queued", undefined]]);
});

test("one whose endpoint cannot be looked up goes nowhere, and spends no attempt", async () => {
  const world = worldOf(
    waiting(2 * FRESH_MS, () => {
      answer = () => Promise.reject(new Error("the database is away"));
    }),
  );
  await deliverIn(world);
  assert.deepEqual(posted, []);
  assert.deepEqual(endings(), [["pending", undefined]]);
});

const meanwhile: { [title: string]: { change: () => void; ending: unknown[] } } = {
  paused: {
    change: () => {
      row = active(secrets, { state: "paused" });
    },
    ending: ["pending", undefined],
  },
  disabled: {
    change: () => {
      row = active(secrets, { state: "disabled" });
    },
    ending: ["failed", "the endpoint is disabled"],
  },
  deleted: {
    change: () => {
      row = undefined;
    },
    ending: ["failed", "the endpoint was deleted"],
  },
};
for (const [title, { change, ending }] of Object.entries(meanwhile)) {
  test(`one that waited for its turn is not posted where its endpoint was ${title} meanwhile`, async () => {
    await deliverIn(worldOf(waiting(2 * FRESH_MS, change)));
    assert.deepEqual(posted, []);
    assert.deepEqual(endings(), [ending]);
  });
}

test("one that waited for its turn goes where the endpoint leads by then, signed by the secret that it has then", async () => {
  const newer = newSecrets();
  const world = worldOf(
    waiting(2 * FRESH_MS, () => {
      row = active(newer, { url: "https://shop.example.com/moved" });
    }),
  );
  await deliverIn(world);
  const [one] = posted;
  assert.equal(one?.url, "https://shop.example.com/moved");
  const key = hmacKeyOf(newer.secret);
  assert.ok(key);
  const expected = signWebhook({ id: "msg_1", at: one.at, body: one.body }, { hmac: [key], ed25519: [] });
  assert.ok(one.signature.startsWith(`${expected["webhook-signature"]} v1a,`));
  assert.deepEqual(endings(), [["sent", "accepted"]]);
});

test("what has just been claimed is posted without another look", async () => {
  let looks = 0;
  answer = async () => {
    looks++;
  };
  await deliverIn(worldOf(async () => {}));
  assert.equal(posted.length, 1);
  assert.equal(looks, 1);
});
