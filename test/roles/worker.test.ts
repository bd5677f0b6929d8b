// The worker by itself: when it begins what it has claimed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Provider } from "#channels/channel.ts";
import { type Claimed, type Ended, type Lease, latenessOf, leaseMarginMs, type Reply } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { RANKS } from "#domain/priority.ts";
import { NO_GUARD } from "#guards/guard.ts";
import { startWorker, type WorkerOptions } from "#roles/worker.ts";
import type { World } from "#steps/walk/world.ts";
import { until } from "../support/until.ts";
import { answering, claimedWith, worldWith } from "../support/walk.ts";

const CLAIMED = 60;
const CONCURRENCY = 25;
const PLAIN: NotificationRequest = { channel: "console", content: { body: "b" } };
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function leaseFromNow(meanBytes: number): Lease {
  const claimedAt = performance.now();
  const endsAt = claimedAt + 30_000;
  return { handle: 1, meanBytes, endsAt, claimedAtMs: Date.now(), claimedAt, answeredAt: claimedAt };
}

function claims(size: number, request: NotificationRequest, meanBytes: number): Claimed[] {
  const lease = leaseFromNow(meanBytes);
  return Array.from({ length: size }, (_, n) => claimedWith({ seq: n, handle: n, id: `n${n}`, lease, request }));
}

type Settings = {
  total?: number;
  perClaim?: number;
  request?: NotificationRequest;
  /** Of each request. */
  bytes?: number;
  concurrency?: number;
  leaseMs?: number;
  extended?: () => void;
} & Partial<World>;

function workerWith(send: Provider["send"], settings: Settings = {}) {
  const { total = CLAIMED, concurrency = CONCURRENCY, leaseMs = 30_000, extended, ...more } = settings;
  const { perClaim = total, bytes = 100, request = PLAIN, ...given } = more;
  const waiting = claims(total, request, bytes);
  const ended: Ended[] = [];
  const asked: number[] = [];
  const queue: WorkerOptions["queue"] = {
    claim: async (_worker, count) => {
      asked.push(count);
      return waiting.splice(0, Math.min(count, perClaim));
    },
    extend: async (_worker, leases) => {
      extended?.();
      return [...leases];
    },
  };
  const provider: Provider = {
    name: "p",
    channels: [request.channel],
    capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
    send,
  };
  const worker = startWorker({
    id: 1,
    queue,
    world: worldWith(ended, {
      providers: { route: () => [provider] },
      leaseMarginMs: leaseMarginMs(leaseMs),
      ...given,
    }),
    sendTimeoutMs: 10_000,
    ranks: RANKS,
    batchSize: 1000,
    concurrency,
    wayPart: 0.25,
    leaseMs,
    pollMs: () => 1000,
  });
  return { worker, asked, settled: () => ended.map(({ attempt, settlement }) => `${attempt.id} ${settlement.to}`) };
}

test("sends that wait for their answers begin a few in each turn, up to the concurrency, however they are answered", async () => {
  const begun: ((reply: Reply) => void)[] = [];
  const { worker, settled } = workerWith(() => new Promise((resolve) => begun.push(resolve)));
  const perTurn: number[] = [];
  const watch = async (turns: number) => {
    for (let n = 0; n < turns; n++) {
      const before = begun.length;
      await turn();
      perTurn.push(begun.length - before);
    }
  };
  await watch(40);
  assert.equal(begun.length, CONCURRENCY);
  // All answers at once: what follows does not leave all at once.
  for (const answer of begun.slice()) answer({ kind: "accepted" });
  await watch(40);
  assert.equal(begun.length, 2 * CONCURRENCY);
  for (const answer of begun.slice(CONCURRENCY)) answer({ kind: "accepted" });
  await watch(40);
  assert.equal(begun.length, CLAIMED);
  // Two turns may fall between two looks of ours.
  assert.ok(Math.max(...perTurn) <= 8, `begun in each turn: ${perTurn.filter(Boolean).join(" ")}`);
  for (const answer of begun) answer({ kind: "accepted" });
  await worker.stop(1_000);
  assert.equal(settled().filter((line) => line.endsWith(" sent")).length, CLAIMED);
});

test("sends that are answered at once need no turns", async () => {
  const { worker, settled } = workerWith(() => ({ kind: "accepted" }));
  for (let n = 0; n < 5; n++) await turn();
  assert.equal(settled().length, CLAIMED);
  await worker.stop(1_000);
});

test("of a burst the first claim is small, so that sending begins at once, and the next are whole batches", async () => {
  const { worker, settled, asked } = workerWith(() => ({ kind: "accepted" }), { total: 3_050, concurrency: 4_000 });
  for (let n = 0; n < 200 && settled().length < 3_050; n++) await turn();
  assert.equal(settled().length, 3_050);
  assert.deepEqual(asked.slice(0, 4), [100, 1000, 1000, 1000]);
  await worker.stop(1_000);
});

test("what rings while a large claim is under way is looked for beside it, if it is urgent or high", async (t) => {
  const urgent = claims(1, PLAIN, 100).map((one) => ({ ...one, id: "urgent", rank: 0 }));
  const many = claims(100, PLAIN, 100);
  const ended: Ended[] = [];
  const asked: (readonly number[])[] = [];
  let answerLarge: ((claimed: Claimed[]) => void) | undefined;
  const provider: Provider = {
    name: "p",
    channels: ["console"],
    capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
    send: () => ({ kind: "accepted" }),
  };
  const worker = startWorker({
    id: 1,
    queue: {
      async claim(_worker, count, _leaseMs, { ranks } = { ranks: RANKS }) {
        asked.push(ranks);
        if (count === 1000)
          return new Promise((resolve) => {
            answerLarge = resolve;
          });
        return answerLarge ? urgent.splice(0) : many.splice(0, count);
      },
      extend: async (_worker, leases) => [...leases],
    },
    world: worldWith(ended, { providers: { route: () => [provider] }, leaseMarginMs: leaseMarginMs(30_000) }),
    sendTimeoutMs: 10_000,
    ranks: RANKS,
    batchSize: 1000,
    concurrency: 4_000,
    wayPart: 0.25,
    leaseMs: 30_000,
    pollMs: () => 1000,
  });
  t.after(async () => {
    answerLarge?.([]);
    await worker.stop(1_000);
  });
  await until(async () => (answerLarge ? true : undefined));
  worker.wake();
  await until(async () => (ended.some(({ attempt }) => attempt.id === "urgent") ? true : undefined));
  assert.deepEqual(asked.slice(0, 3), [RANKS, RANKS, [0, 1]]);
});

test("in a backlog urgent and high ones that rang are claimed before the next large claim; what rings of lower lanes waits for that", async (t) => {
  type Asked = { count: number; ranks: readonly number[]; answer: (size: number) => void };
  const asked: Asked[] = [];
  const ended: Ended[] = [];
  const worker = startWorker({
    id: 1,
    queue: {
      claim: (_worker, count, _leaseMs, { ranks } = { ranks: RANKS }) =>
        new Promise((resolve) => {
          asked.push({ count, ranks, answer: (size) => resolve(claims(size, PLAIN, 100)) });
        }),
      extend: async (_worker, leases) => [...leases],
    },
    world: worldWith(ended, {
      providers: {
        route: () => [
          {
            name: "p",
            channels: ["console"],
            capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
            send: () => ({ kind: "accepted" }),
          },
        ],
      },
      leaseMarginMs: leaseMarginMs(30_000),
    }),
    sendTimeoutMs: 10_000,
    ranks: RANKS,
    batchSize: 1000,
    concurrency: 4_000,
    wayPart: 0.25,
    leaseMs: 30_000,
    pollMs: () => 60_000,
  });
  t.after(async () => {
    const stopped = worker.stop(1_000);
    for (const { answer } of asked) answer(0);
    await stopped;
  });
  const next = (n: number) => until(async () => asked[n]);
  (await next(0)).answer(100);
  const large = await next(1);
  worker.wake();
  (await next(2)).answer(0);
  worker.wake("lower");
  // Longer than anything rests that looks for urgent ones.
  await pause(60);
  worker.wake();
  const overtaking = await next(3);
  large.answer(1000);
  for (let n = 0; n < 20; n++) await turn();
  assert.equal(asked.length, 4, "the next large claim waits for the one of the urgent");
  overtaking.answer(0);
  await next(4);
  assert.deepEqual(
    asked.slice(0, 5).map(({ count, ranks }) => [count, ranks]),
    [
      [100, RANKS],
      [1000, RANKS],
      [100, [0, 1]],
      [100, [0, 1]],
      [1000, RANKS],
    ],
  );
});

test("where a claim of the higher lanes fails, those below are not claimed before it was made again", async (t) => {
  let hasFailed = false;
  let seq = 0;
  const after: (readonly number[])[] = [];
  const worker = startWorker({
    id: 1,
    queue: {
      async claim(_worker, count, _leaseMs, { ranks } = { ranks: RANKS }) {
        if (hasFailed) after.push(ranks);
        if (ranks.includes(3))
          return Array.from({ length: count }, () =>
            claimedWith({ seq: ++seq, handle: seq, id: `n${seq}`, rank: 3, lease: leaseFromNow(1) }),
          );
        // The hand is full of what is low.
        if (!hasFailed) {
          hasFailed = true;
          throw new Error("the connection was closed");
        }
        return [];
      },
      extend: async (_worker, leases) => [...leases],
    },
    world: worldWith([], {
      providers: {
        route: () => [
          {
            name: "p",
            channels: ["console"],
            capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
            send: () => new Promise(() => undefined),
          },
        ],
      },
    }),
    sendTimeoutMs: 10_000,
    ranks: RANKS,
    batchSize: 1000,
    concurrency: CONCURRENCY,
    wayPart: 0.25,
    leaseMs: 30_000,
    pollMs: () => 60_000,
  });
  t.after(() => worker.stop(0));
  await until(async () => (after.length > 0 ? true : undefined));
  assert.deepEqual(after[0]?.slice(0, 3), [0, 1, 2]);
});

test("what could not be looked at is never sent, though its lease is extended and a slot comes free", async (t) => {
  const sent: string[] = [];
  let unseen = 0;
  let hanging: ((reply: Reply) => void) | undefined;
  let extensions = 0;
  const stillAt = performance.now();
  const { worker, settled } = workerWith(
    ({ notificationId }) => {
      sent.push(notificationId);
      // By then it is known to be fast, and claims more than it has slots.
      if (hanging || sent.length < 50) return { kind: "accepted" };
      return new Promise((resolve) => {
        hanging = resolve;
      });
    },
    {
      total: 52,
      perClaim: 1,
      concurrency: 1,
      leaseMs: 60,
      monotonic: () => stillAt,
      request: { channel: "push", recipient: { deviceTokens: ["d"] }, content: { body: "b" } },
      extended: () => unseen > 0 && extensions++,
      db: answering(async () => {
        if (!hanging) return [];
        unseen++;
        throw new Error("the database is away");
      }),
    },
  );
  t.after(() => {
    hanging?.({ kind: "accepted" });
    return worker.stop(0);
  });
  await until(async () => (extensions > 1 ? true : undefined));
  hanging?.({ kind: "accepted" });
  await until(async () => (settled().length === 52 ? true : undefined));
  const back = settled().filter((line) => line.endsWith(" queued"));
  assert.ok(unseen > 0);
  assert.equal(back.length, unseen);
  assert.deepEqual(
    back.filter((line) => sent.some((id) => line.startsWith(`${id} `))),
    [],
  );
});

test("what still waits for its turn when the time of a stop is over is handed back, not sent, though leases are extended", async () => {
  const turns: (() => void)[] = [];
  let extensions = 0;
  const { worker, settled } = workerWith(() => assert.fail("sent by a worker that has stopped"), {
    total: 2,
    leaseMs: 90,
    extended: () => extensions++,
    guard: {
      ...NO_GUARD,
      async admit(_provider, _message, attempt) {
        await new Promise<void>((resolve) => turns.push(resolve));
        return latenessOf(attempt, performance.now(), 0) ?? 0;
      },
    },
  });
  await until(async () => (turns.length === 2 ? true : undefined));
  const stopped = worker.stop(0);
  const before = extensions;
  await until(async () => (extensions > before + 1 ? true : undefined));
  for (const take of turns) take();
  await stopped;
  assert.deepEqual(settled(), ["n0 queued", "n1 queued"]);
});

test("nothing is left of a send that has ended, not even the timer that would have aborted it", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const signals: AbortSignal[] = [];
  const { worker, settled } = workerWith(
    async (_message, { signal }) => {
      signals.push(signal);
      return { kind: "accepted" };
    },
    { total: 1 },
  );
  t.after(() => worker.stop(1_000));
  while (settled().length === 0) await turn();
  t.mock.timers.tick(600_000);
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false],
  );
});

test("of large requests it holds so many at once, and comes to all of them", async () => {
  const MEGABYTE = 1024 * 1024;
  let most = 0;
  const { worker, settled } = workerWith(
    async () => {
      // Nothing is answered before a second claim has come.
      do {
        most = Math.max(most, worker.stats().held);
        await turn();
      } while (most <= 10);
      return { kind: "accepted" };
    },
    { total: 300, perClaim: 10, bytes: MEGABYTE, concurrency: 200 },
  );
  await until(async () => (settled().length === 300 ? true : undefined));
  await worker.stop(1_000);
  assert.ok(most > 10 && most <= 41, `${most} at once`);
});

test("what waited in hand for half a lease goes back, unspent, for whoever has room", async (t) => {
  const sent: string[] = [];
  const { worker, settled } = workerWith(
    ({ notificationId }) => {
      sent.push(notificationId);
      return new Promise(() => undefined);
    },
    { total: 3, concurrency: 2, leaseMs: 90 },
  );
  t.after(() => worker.stop(0));
  await until(async () => (settled().length > 0 ? true : undefined));
  assert.deepEqual(settled(), ["n2 queued"]);
  assert.deepEqual(sent, ["n0", "n1"]);
});

test("one of which nobody can say where it goes fails alone", async (t) => {
  const { worker, settled } = workerWith(async () => ({ kind: "accepted" }), {
    total: 3,
    perClaim: 1,
    guard: {
      ...NO_GUARD,
      passage: (_provider, to) => {
        if ((to as Claimed).id === "n0") throw new Error("a bug");
        return undefined;
      },
    },
  });
  t.after(() => worker.stop(0));
  await until(async () => (settled().length === 3 ? true : undefined));
});

test("who gets no answers keeps nobody else's from being claimed, poll or no poll", async (t) => {
  const STUCK = 1;
  const left = new Map([
    [STUCK, 10_000],
    [2, 400],
  ]);
  let seq = 0;
  const queue: WorkerOptions["queue"] = {
    claim: async (_worker, count, _leaseMs, takes) => {
      const lease = leaseFromNow(1);
      const claimed: Claimed[] = [];
      for (let n = 0; takes?.ranks.includes(2) && claimed.length < count && n < count; n++) {
        for (const [tenant, waiting] of left) {
          if (waiting === 0 || claimed.length === count || takes.notTenants?.includes(tenant)) continue;
          left.set(tenant, waiting - 1);
          claimed.push(claimedWith({ seq: ++seq, handle: seq, id: `n${seq}`, tenant, lease }));
        }
      }
      return claimed;
    },
    extend: async (_worker, leases) => [...leases],
  };
  const provider: Provider = {
    name: "p",
    channels: ["console"],
    capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
    send: ({ tenant }) =>
      new Promise((resolve) => {
        if (tenant !== STUCK) setTimeout(() => resolve({ kind: "accepted" }), 10);
      }),
  };
  const ended: Ended[] = [];
  const worker = startWorker({
    id: 1,
    queue,
    world: worldWith(ended, { providers: { route: () => [provider] } }),
    sendTimeoutMs: 10_000,
    ranks: RANKS,
    batchSize: 100,
    concurrency: 8,
    wayPart: 0.25,
    leaseMs: 30_000,
    pollMs: () => 60_000,
  });
  t.after(() => worker.stop(0));
  await until(async () => (ended.filter(({ attempt }) => attempt.tenant !== STUCK).length === 400 ? true : undefined));
});
