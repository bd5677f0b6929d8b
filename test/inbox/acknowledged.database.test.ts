// An item that its reader acknowledges while somebody sends its notification again: one of the two has it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { deliverAcked, storeItems } from "#store/inbox.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
let other: pg.Client;
before(async () => {
  service = await startService();
  other = new pg.Client(service.databaseUrl);
  await other.connect();
});
after(async () => {
  await other.end();
  await service.stop();
});

const WORDS = { title: "Hello", body: null, category: null, data: null, link: null };

/** Stored and acknowledged, though its worker was lost before it could say so. */
async function makeDoubtful(): Promise<string> {
  const request = { channel: "inbox", recipient: { userId: "ada" }, content: { title: "Hello" }, onAmbiguous: "hold" };
  const { body } = await service.ask("POST", "/v1/notifications", request);
  const id: string = body.notificationId;
  const queue = createPostgresQueue(service.db, () => performance.now());
  const [attempt = assert.fail("nothing was ready")] = await queue.claim(1, 1, 30_000);
  const item = { id, tenant: attempt.tenant, userId: "ada", ...WORDS };
  await storeItems(service.db, [item]);
  await queue.settle([{ attempt, settlement: { to: "ambiguous" }, line: { outcome: "lost" } }]);
  // By hand, so that nothing moves it by itself.
  await service.db.query("update carillon.inbox_items set acked_at = carillon.now() where notification_id = $1", [id]);
  return id;
}
const storyOf = async (id: string): Promise<string[]> =>
  (await ask(service, `/v1/notifications/${id}`)).events.map(({ to }: { to: string }) => to);
const retry = (db: pg.Pool | pg.Client, id: string) => db.query("select carillon.retry(1, $1) as id", [[id]]);

test("what is being sent again is not delivered meanwhile, but once it is sent", async () => {
  const id = await makeDoubtful();
  await other.query("begin");
  assert.equal((await retry(other, id)).rowCount, 1);
  assert.deepEqual(await deliverAcked(service.db, [id]), { moved: 0, waiting: 1 });
  await other.query("commit");
  assert.deepEqual(await deliverAcked(service.db, [id]), { moved: 0, waiting: 1 });
  assert.deepEqual(await storyOf(id), ["queued", "ambiguous", "queued"]);
  const queue = createPostgresQueue(service.db, () => performance.now());
  const [attempt = assert.fail("nothing was ready")] = await queue.claim(1, 1, 30_000);
  await queue.settle([{ attempt, settlement: { to: "sent" }, line: { outcome: "accepted" } }]);
  assert.deepEqual(await deliverAcked(service.db, [id]), { moved: 1, waiting: 0 });
  assert.deepEqual(await storyOf(id), ["queued", "ambiguous", "queued", "sent", "delivered"]);
});

test("what is being delivered is not sent again", async () => {
  const id = await makeDoubtful();
  await other.query("begin");
  assert.deepEqual(await deliverAcked(other, [id]), { moved: 1, waiting: 0 });
  const retrying = retry(service.db, id);
  await until(async () => {
    const { rows } = await service.db.query(
      "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    return rows.length > 0 ? true : undefined;
  });
  await other.query("commit");
  assert.equal((await retrying).rowCount, 0);
  assert.deepEqual(await storyOf(id), ["queued", "ambiguous", "delivered"]);
  assert.equal((await ask(service, "/v1/ledger")).balanced, true);
});
