// The walk of a notification. Read it from top to bottom, beside docs/walk.md: each step is called by its name, with what the step
// before it gave. Nothing is a stand-in here but the provider at the end.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Message } from "#channels/channel.ts";
import { readConfig } from "#config/read.ts";
import type { Claimed, Ended } from "#domain/attempt.ts";
import { findHistory } from "#record/events.ts";
import { findRecord } from "#record/notifications.ts";
import { type Acceptances, accept } from "#steps/walk/accept.ts";
import { deliver } from "#steps/walk/deliver.ts";
import { end } from "#steps/walk/end.ts";
import { guard } from "#steps/walk/guard.ts";
import { type Prepared, prepare } from "#steps/walk/prepare.ts";
import { type Result, send } from "#steps/walk/send.ts";
import { type Settled, settle } from "#steps/walk/settle.ts";
import { sweep } from "#steps/walk/sweep.ts";
import { tell } from "#steps/walk/tell.ts";
import type { Slot, World } from "#steps/walk/world.ts";
import { createLog } from "#telemetry/log.ts";
import { openAcceptances } from "#wiring/accept.ts";
import { type Base, openBase } from "#wiring/base.ts";
import { openChannels } from "#wiring/channels.ts";
import { openGround } from "#wiring/ground.ts";
import { joinMembers, type Member } from "#wiring/member.ts";
import { type Stop, unwind } from "#wiring/undo.ts";
import { openWorld } from "#wiring/worker.ts";
import { freshDatabase } from "./support/postgres.ts";
import { until } from "./support/until.ts";

const TENANT = 1;
const LEASE_MS = 30_000;
const LETTER = {
  channel: "email",
  recipient: { email: "ada@example.com" },
  content: { subject: "Your code", textBody: "It is 1815." },
};

const undo: Stop[] = [];
let base: Base;
let world: World;
let member: Member;
let acceptances: Acceptances;

/** What reached the provider, and what it says to the next. */
const reached: Message[] = [];
let answer: "accepted" | "away" = "accepted";

before(async () => {
  const { url, drop } = await freshDatabase();
  undo.push(drop);
  const config = await readConfig({ env: { DATABASE_URL: url, PORT: "0" }, cwd: import.meta.dirname });
  const postman = { type: "test" as const, onSend: (message: Message) => reached.push(message), decide: () => answer };
  const routed = {
    ...config,
    providers: { ...config.providers, postman },
    routes: { ...config.routes, email: "postman" },
  };
  const log = createLog("silent");
  const ground = await openGround(routed, log, () => undefined, undo);
  base = await openBase({ config: routed, log, ground, siblings: undefined }, undo);
  member = await joinMembers(base, undo);
  const channels = await openChannels(base, () => undefined);
  undo.push(channels.close);
  world = await openWorld(base, channels, member, undo);
  acceptances = openAcceptances(base, { wake: () => undefined, plan: () => undefined }).acceptances;
  undo.push(() => acceptances.close());
});
after(() => unwind(undo));

const statusOf = async (id: string) => (await findRecord(base.database.own, TENANT, id))?.status;
const storyOf = async (id: string) =>
  (await findHistory(base.database.own, TENANT, id)).events.map(({ type, to }) => `${type} → ${to}`);
const send1 = async (request: object): Promise<string> => {
  const [outcome] = await accept(TENANT, [request], acceptances);
  return outcome && "notificationId" in outcome ? outcome.notificationId : assert.fail(String(outcome));
};
const claim1 = async (): Promise<Claimed> =>
  (await base.queue.claim(member.id, 1, LEASE_MS))[0] ?? assert.fail("nothing was ready");
const prepare1 = async (claimed: Claimed): Promise<Prepared> =>
  (await prepare([claimed], world))[0] ?? assert.fail("it was not prepared");
const slotFor = ({ id }: Claimed): Slot => ({
  startedAt: base.monotonic(),
  free: () => undefined,
  idempotencyKey: id,
  timeoutMs: 10_000,
  signal: new AbortController().signal,
});

let id: string;
let claimed: Claimed;
let prepared: Prepared;
let result: Result;
let ended: Ended;
let settled: Settled;

test("It is accepted: once the answer is there it is kept, and waits in its lane", async () => {
  id = await send1(LETTER);
  assert.equal(await statusOf(id), "queued");
});

test("It is claimed: one worker has it, under a lease that was written down before anything is done with it", async () => {
  claimed = await claim1();
  assert.equal(claimed.id, id);
  assert.equal(await statusOf(id), "processing");
  assert.deepEqual(await base.queue.claim(member.id, 1, LEASE_MS), []);
});

test("It is prepared: the recipient may be sent to", async () => {
  prepared = await prepare1(claimed);
  assert.equal(prepared.suppression, undefined);
});

test("It is guarded: it is neither too late for it nor for its lease", () => {
  assert.equal(guard(prepared, base.monotonic(), world), undefined);
});

test("It is sent: the provider of its route has the letter, and says so", async () => {
  result = await send(prepared, slotFor(prepared), world);
  assert.deepEqual(result.outcome, { kind: "accepted" });
  assert.deepEqual(
    reached.map(({ notificationId, request }) => [notificationId, request.content.textBody]),
    [[id, "It is 1815."]],
  );
});

test("It has ended: the outcome says where it goes from here", async () => {
  ended = await end(prepared, result, 1.5, world);
  assert.deepEqual(ended.settlement, { to: "sent" });
});

test("It is settled: the record says so, and the queue has let go of it", async () => {
  settled = (await settle(ended, world.settlements)) ?? assert.fail("the lease was lost");
  assert.equal(await statusOf(id), "sent");
  assert.equal(await settle(ended, world.settlements), undefined, "nobody settles it a second time");
});

test("It is told: those who count have counted it", async () => {
  tell(settled, world);
  assert.match(await base.metrics.registry.metrics(), /^notifications_sent_total\{.*channel="email".*\} 1$/m);
});

test("The record has the whole of it", async () => {
  assert.deepEqual(await storyOf(id), ["accepted → queued", "attempt → sent"]);
});

test("A provider that is away costs an attempt and a wait; then the same walk is walked again", async () => {
  const late = await send1(LETTER);
  answer = "away";
  const first = await prepare1(await claim1());
  await deliver(first, slotFor(first), world);
  assert.deepEqual(await storyOf(late), ["accepted → queued", "attempt → pending"]);
  answer = "accepted";
  await until(async () => (await statusOf(late)) === "queued" || undefined);
  const second = await prepare1(await claim1());
  assert.deepEqual([second.id, second.number], [late, 2]);
  await deliver(second, slotFor(second), world);
  assert.deepEqual(await storyOf(late), ["accepted → queued", "attempt → pending", "attempt → sent"]);
});

test("A worker that dies with it in hand is swept up after, and settles nothing any more", async () => {
  const orphan = await send1(LETTER);
  const [held = assert.fail("nothing was ready")] = await base.queue.claim(member.id, 1, 1);
  const dying = await prepare1(held);
  const { queue, retry, facts } = base;
  const db = base.database.own;
  const sweeping = { db, queue, worker: member.id, count: 10, leaseMs: LEASE_MS, retry, random: () => 0, facts };
  await until(async () => (await sweep(sweeping)) === 1 || undefined);
  // Whether it was sent nobody knows: it is tried again.
  assert.deepEqual(await storyOf(orphan), ["accepted → queued", "attempt → pending"]);
  const tooLate = await end(dying, { outcome: { kind: "accepted" } }, 1, world);
  assert.equal(await settle(tooLate, world.settlements), undefined);
  assert.deepEqual(await storyOf(orphan), ["accepted → queued", "attempt → pending"]);
});
