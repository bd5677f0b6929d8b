// What may have been sent already is sent again twice in the life of a notification, and no more.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Message } from "#channels/channel.ts";
import type { Mix } from "#channels/dev/test.ts";
import type { Config } from "#config/read.ts";
import { retryPolicies } from "#domain/retry-policy.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { sweep } from "#steps/walk/sweep.ts";
import type { Queryable } from "#store/connection/database.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { answering, silent } from "../support/walk.ts";

const LOST = "acceptThenReset";
const AWAY = "unavailable";
/** What becomes of each attempt; of those beyond, the last. */
let script: (keyof Mix)[] = [LOST];
const calls: Message[] = [];
const mix: Mix = { [LOST]: 0, [AWAY]: 0 };
const onSend = (message: Message) => {
  calls.push(message);
  const fate = script[message.attempt - 1] ?? script.at(-1);
  for (const one of [LOST, AWAY] as const) mix[one] = one === fate ? 1 : 0;
};
const providers: Config["providers"] = { scripted: { type: "test", mix, onSend } };
const routes = { sms: "scripted" } as Config["routes"];
const retryPolicy = { maxAttempts: 10, maxBackoffMs: 100 };
const sms = { channel: "sms", recipient: { phone: "+33612345678" }, content: { body: "your code" }, retryPolicy };

let service: Service;
before(async () => {
  service = await startService({ roles: ["api", "worker", "scheduler", "keeper"], providers, routes });
});
after(() => service.stop());

async function send(to: Service, more: object = {}): Promise<string> {
  const { status, body } = await to.ask("POST", "/v1/notifications", { ...sms, ...more });
  assert.equal(status, 202, JSON.stringify(body));
  return body.notificationId;
}
type Tried = { number: number; outcome: string };
const ends = (id: string, count: number) =>
  until(async () => {
    const { status, attempts } = await ask(service, `/v1/notifications/${id}`);
    const isOver = !["pending", "queued", "processing"].includes(status) && attempts.length >= count;
    return isOver ? { status, outcomes: attempts.map(({ outcome }: Tried) => outcome) } : undefined;
  });
const callsOf = (id: string) => calls.filter(({ notificationId }) => notificationId === id).length;

test("three lost answers are the end of it, whatever is left of its attempts; a retry by hand begins anew", async () => {
  script = [LOST];
  const id = await send(service);
  assert.deepEqual(await ends(id, 3), { status: "ambiguous", outcomes: Array(3).fill("ambiguous") });
  assert.equal((await service.ask("POST", `/v1/notifications/${id}/retry`)).status, 200);
  assert.deepEqual(await ends(id, 6), { status: "ambiguous", outcomes: Array(6).fill("ambiguous") });
  assert.equal(callsOf(id), 6);
  assert.equal((await ask(service, "/v1/ledger")).balanced, true);
});

test("they are counted over its whole life, however many other attempts were between them", async () => {
  script = [AWAY, LOST, AWAY, AWAY, LOST, AWAY, LOST, AWAY];
  const { status, outcomes } = await ends(await send(service), 7);
  const [away, lost] = ["unavailable", "ambiguous"];
  assert.deepEqual([status, outcomes], ["ambiguous", [away, lost, away, away, lost, away, lost]]);
});

test("what may have been sent once and was away ever after is ambiguous in the end, and no dead letter", async () => {
  script = [LOST, AWAY];
  const id = await send(service, { retryPolicy: { maxAttempts: 3, maxBackoffMs: 100 } });
  assert.equal((await ends(id, 3)).status, "ambiguous");
  script = [AWAY];
  const unsent = await send(service, { retryPolicy: { maxAttempts: 2, maxBackoffMs: 100 } });
  assert.equal((await ends(unsent, 2)).status, "failed");
  const letters: { notificationId: string }[] = (await ask(service, "/v1/dead-letters")).data;
  assert.deepEqual(
    letters.map(({ notificationId }) => notificationId),
    [unsent],
  );
});

test("a notification that worker after worker is lost with is given out three times, and not ten", async () => {
  const apiOnly = await startService({ roles: ["api"] });
  const queue = createPostgresQueue(apiOnly.db, () => performance.now());
  const sweepOnce = (db: Queryable = apiOnly.db) =>
    sweep({ db, queue, worker: 99, count: 10, leaseMs: 0, retry: retryPolicies(), random: () => 0, facts: silent });
  const id = await send(apiOnly);
  for (const worker of [1, 2, 3]) {
    await until(async () => ((await queue.claim(worker, 1, 0)).length === 1 ? true : undefined));
    if (worker > 1) {
      // What nobody can look up is not decided: it stays where it is, for the next who sweeps.
      await assert.rejects(sweepOnce(answering(() => Promise.reject(new Error("the record is away")))));
      assert.equal((await ask(apiOnly, `/v1/notifications/${id}`)).status, "processing");
    }
    assert.equal(await sweepOnce(), 1);
  }
  const { status, attempts } = await ask(apiOnly, `/v1/notifications/${id}`);
  assert.deepEqual([status, attempts.map(({ outcome }: Tried) => outcome)], ["ambiguous", ["lost", "lost", "lost"]]);
  await apiOnly.stop();
});
