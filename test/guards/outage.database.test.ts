// A provider is away for an hour, and a receiver for good, on a clock that goes so much faster: worker, guards and queue as they are, and a real PostgreSQL.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Message, Provider } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import type { Event } from "#domain/event.ts";
import type { Channel } from "#domain/notification.ts";
import { RANKS } from "#domain/priority.ts";
import { OWN_RETRY } from "#domain/retry-policy.ts";
import { heldForMs } from "#domain/unanswered.ts";
import { DEFAULT_BREAKER } from "#guards/breaker.ts";
import { createGates, type GuardFact } from "#guards/gates.ts";
import { NO_LIMITS } from "#guards/limit/limited.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { type RunningWorker, startWorker } from "#roles/worker.ts";
import { Postponements } from "#steps/walk/postpone.ts";
import { createSettlements } from "#steps/walk/settle.ts";
import { originOf } from "#wire/public-only.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { silent, worldWith } from "../support/walk.ts";

const SPEED = 600;
const HOUR = 3_600_000;
/** The queue's leases go by the true time, and the worker's view of them by the fast one. */
const LEASE_MS = HOUR;
const POLL_MS = 10;
/** As many as wait: on the fast clock a worker that took fewer would be at claiming all the time. */
const CONCURRENCY = 60;
const COUNT = 60;
/** While it is open for 1, 2, 4 … 60 s: those of an hour, of one worker, and the one that finds it well. */
const MOST_PROBES = 6 + 60 + 1;

const DOWN = "https://down.example";
const UP = "https://up.example";
const GONE = "https://gone.example";
/** Over in 76 minutes at the longest, if each came to its attempts by itself. */
const retryPolicy = { maxAttempts: 14, backoffMultiplier: 3, maxBackoffMs: 600_000 };
const HELD_MS = heldForMs({ ...OWN_RETRY, ...retryPolicy });
/** By so much the worker's clock and the database's may differ, both of them fast. */
const CLOCKS_MS = 200 * SPEED;
const LOST_ANSWER = "the answer to this one is lost";
const monotonic = () => performance.now() * SPEED;
const calls: { [called: string]: Message[] } = { relay: [], hooks: [], [GONE]: [] };
const facts: GuardFact[] = [];
/** When it is over: nothing else ends it, however slow this machine is. */
let backAt = Number.POSITIVE_INFINITY;
let service: Service;
let workers: RunningWorker[] = [];

const provider = (name: string, channel: Channel, more: Partial<Provider> = {}): Provider => ({
  name,
  channels: [channel],
  capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false },
  send(message): Reply {
    const { recipient, content } = message.request;
    const isGone = recipient?.webhookUrl === GONE;
    const isHealthy = !isGone && (monotonic() >= backAt || recipient?.webhookUrl === UP);
    if (!isHealthy) calls[isGone ? GONE : name]?.push(message);
    if (content.body === LOST_ANSWER && message.attempt === 1) return { kind: "ambiguous", reason: "no answer" };
    return isHealthy ? { kind: "accepted" } : { kind: "unavailable", reason: "connection refused" };
  },
  ...more,
});
const relay = provider("relay", "email");
const hooks = provider("hooks", "webhook", {
  receiver: ({ request }) => originOf(request.recipient?.webhookUrl ?? ""),
});

function work(id: number): { worker: RunningWorker; gates: ReturnType<typeof createGates> } {
  const queue = createPostgresQueue(service.db, monotonic);
  const gates = createGates({
    accountOf: ({ name }) => name,
    limits: NO_LIMITS,
    limit: { take: () => assert.fail("nothing is limited"), delay: async () => undefined },
    leaseMarginMs: 0,
    monotonic,
    random: Math.random,
    sleep: () => assert.fail("nobody sleeps"),
    tell(fact) {
      facts.push(fact);
      if (fact.kind !== "breaker") return;
      const { kind: _, view, reason: __, ...way } = fact;
      for (const other of all) if (other !== gates) other.adopt({ ...way, ...view, pausedMs: 0 });
    },
  });
  const world = worldWith([], {
    db: service.db,
    providers: { route: (channel) => [channel === "email" ? relay : hooks] },
    guard: gates,
    postponements: new Postponements(service.db, queue, id, silent),
    settlements: createSettlements({
      queue,
      abreast: 2,
      patienceMs: 10_000,
      monotonic,
      sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      facts: silent,
    }),
    monotonic,
    random: Math.random,
  });
  const options = {
    sendTimeoutMs: 1_000,
    ranks: RANKS,
    batchSize: 100,
    concurrency: CONCURRENCY,
    wayPart: 0.25,
    leaseMs: LEASE_MS,
    pollMs: () => POLL_MS,
  };
  return { worker: startWorker({ id, queue, world, ...options }), gates };
}
const all: ReturnType<typeof createGates>[] = [];

before(async () => {
  service = await startService();
  const { rows } = await service.db.query("select statement_timestamp()::text as began");
  const began = `timestamptz '${rows[0].began}'`;
  await service.db.query(`create or replace function carillon.now() returns timestamptz language sql stable parallel safe
    as $$ select ${began} + (statement_timestamp() - ${began}) * ${SPEED} $$`);
});
after(async () => {
  await Promise.all(workers.map((worker) => worker.stop(1_000)));
  await service.stop();
});

async function send(request: object, count = COUNT): Promise<string[]> {
  const notifications = Array(count).fill({ content: { subject: "s", textBody: "t", body: "b" }, ...request });
  const { body } = await service.ask("POST", "/v1/notifications/batch", { notifications });
  return body.results.map(({ notificationId }: { notificationId: string }) => notificationId);
}
const records = (ids: string[]) => Promise.all(ids.map((id) => ask(service, `/v1/notifications/${id}`)));
/** So many lines of their record say so. */
const are = (status: string, ids: string[], count = ids.length) =>
  until(async () => {
    const { rows } = await service.db.query(
      "select count(*)::int as n from carillon.events where notification_id = any ($1) and to_status = $2",
      [ids, status],
    );
    return rows[0].n >= count ? true : undefined;
  }, 120_000);
const probesOf = (account: string): number =>
  facts.filter((fact) => fact.kind === "breaker" && fact.account.includes(account) && fact.view.state === "half-open")
    .length;

test("an hour's outage costs the attempts that opened the breaker and the probes, no others, and nothing is dead", async () => {
  backAt = monotonic() + HOUR;
  const mails = await send({ channel: "email", recipient: { email: "ada@example.com" } });
  const hooked = await send({ channel: "webhook", recipient: { webhookUrl: DOWN } });
  const healthy = await send({ channel: "webhook", recipient: { webhookUrl: UP } });
  const both = [work(1), work(2)];
  all.push(...both.map(({ gates }) => gates));
  workers = both.map(({ worker }) => worker);
  await are("sent", [...mails, ...hooked, ...healthy]);
  const numbersOf = async (ids: string[]) => (await records(ids)).map(({ attempts }) => attempts.length);
  assert.deepEqual(
    new Set(await numbersOf(healthy)),
    new Set([1]),
    "another receiver of the same tenant is not concerned",
  );

  for (const [name, ids] of [
    ["relay", mails],
    ["hooks", hooked],
  ] as const) {
    const probes = probesOf(name);
    const spent = calls[name]?.length ?? 0;
    const most = workers.length * (DEFAULT_BREAKER.failuresInRow + CONCURRENCY) + probes;
    assert.ok(spent <= most, `${name}: ${spent} attempts, ${probes} probes`);
    assert.ok(probes <= workers.length * MOST_PROBES, `${name}: ${probes} probes`);
    const numbers = await numbersOf(ids);
    assert.ok(Math.max(...numbers) <= 12, `${name}: ${numbers}`);
  }
  assert.equal((await ask(service, "/v1/ledger")).failed, 0);
});

/** All but the few who were last and so were the probes, until their attempts were spent. */
async function endedAfter(beginning: Event["type"], ids: string[]): Promise<void> {
  let unanswered = 0;
  for (const { events } of (await records(ids)) as { events: Event[] }[]) {
    const [begun, last] = [events.find(({ type }) => type === beginning), events.at(-1)];
    assert.ok(begun && last?.type === "attempt" && last.to === "failed" && last.provider === "hooks");
    if (last.attempt === retryPolicy.maxAttempts && last.outcome === "unavailable") continue;
    assert.deepEqual([last.outcome, last.error], ["unanswered", "the receiver does not answer"]);
    const afterMs = Date.parse(last.at) - Date.parse(begun.at);
    assert.ok(afterMs >= HELD_MS - CLOCKS_MS, `after ${afterMs} ms`);
    unanswered++;
  }
  assert.ok(unanswered > ids.length / 2, `${unanswered} of ${ids.length}`);
}

test("what is for a host that is gone for good ends as dead letters, after as long as it would have been tried", async () => {
  const gone = { channel: "webhook", recipient: { webhookUrl: GONE }, retryPolicy };
  const [doubtful = ""] = await send({ ...gone, content: { body: LOST_ANSWER } }, 1);
  await are("pending", [doubtful], 1);
  const ids = await send(gone, 100);
  await are("failed", ids);
  await are("ambiguous", [doubtful]);

  const spent = calls[GONE]?.length ?? 0;
  const probes = probesOf(GONE);
  const most = workers.length * DEFAULT_BREAKER.failuresInRow + probes;
  assert.ok(spent <= most, `${spent} calls, ${probes} probes`);
  await endedAfter("accepted", ids);
  const { balanced, failed, ambiguous } = await ask(service, "/v1/ledger");
  assert.deepEqual([balanced, failed, ambiguous], [true, ids.length, 1]);
  const letters: { notificationId: string }[] = (await ask(service, "/v1/dead-letters?provider=hooks")).data;
  assert.ok(letters.length > 0 && letters.every(({ notificationId }) => ids.includes(notificationId)));
});

test("a retry by hand begins that anew", async () => {
  const letters: { notificationId: string }[] = (await ask(service, "/v1/dead-letters")).data;
  const ids = letters.map(({ notificationId }) => notificationId);
  const retry = async (id: string) => (await service.ask("POST", `/v1/notifications/${id}/retry`)).status;
  assert.deepEqual(new Set(await Promise.all(ids.map(retry))), new Set([200]));
  await are("failed", ids, 2 * ids.length);
  await endedAfter("retried", ids);
});
