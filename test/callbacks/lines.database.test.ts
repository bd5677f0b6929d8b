// Endpoints that keep an order, or ask for a rate.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { type CallbackReceiver, startReceiver } from "../support/callback-receiver.ts";
import { makeEndpoint, SECRET_KEYS } from "../support/endpoint.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
let receiver: CallbackReceiver;
/** Of the next that come to a path; 204 from then on. */
const answers = new Map<string, number[]>();
const underWay = new Map<string, number>();
const most = new Map<string, number>();
before(async () => {
  receiver = await startReceiver(({ path }, response) => {
    const count = (underWay.get(path) ?? 0) + 1;
    underWay.set(path, count);
    most.set(path, Math.max(most.get(path) ?? 0, count));
    setTimeout(() => {
      underWay.set(path, (underWay.get(path) ?? 0) - 1);
      response.writeHead(answers.get(path)?.shift() ?? 204).end();
    }, 20);
  });
  service = await startService({
    roles: ["api", "worker", "keeper"],
    secretKeys: SECRET_KEYS,
    allowAddresses: ["127.0.0.1"],
    sweepMs: 200,
  });
});
after(async () => {
  await service.stop();
  receiver.close();
});

const send = async (n: number): Promise<string> => {
  const request = { channel: "console", content: { body: "hello" }, metadata: { n } };
  return (await service.ask("POST", "/v1/notifications", request)).body.notificationId;
};
const sendAll = async (count: number): Promise<void> => {
  for (let n = 0; n < count; n++) await send(n);
};
const came = (path: string, count: number) =>
  until(async () => (receiver.at(path).length >= count ? receiver.at(path) : undefined), 60_000);
const idsAt = (path: string) => receiver.at(path).map(({ body }) => body.data.notificationId);
/** As if its backoff were over. */
const retryNow = (endpoint: string) =>
  until(async () => {
    const { rowCount } = await service.db.query(
      `update carillon.later l set due_at = carillon.now() from carillon.notifications n
       where n.tenant = -1 and n.id = l.id and n.user_id = $1 and l.attempt > 0 and l.due_at < '9999-01-01'`,
      [endpoint],
    );
    return rowCount ? true : undefined;
  });
const inOrder = async (ids: readonly string[]) => {
  const { rows } = await service.db.query("select id from carillon.notifications where id = any ($1) order by seq", [
    ids,
  ]);
  return rows.map(({ id }) => id);
};

test("a line is told one after the other, in order, and the next waits for a retry of the one before", async () => {
  answers.set("/line", [204, 204, 500]);
  const endpoint = await makeEndpoint(service, { url: `${receiver.url}/line`, events: ["accepted"], fifo: "endpoint" });
  await sendAll(12);
  await came("/line", 3);
  // What stands behind the third has its turn only after that has ended.
  await retryNow(endpoint);
  await came("/line", 13);
  const ids = idsAt("/line");
  assert.equal(ids[2], ids[3], "the third came again, and nothing before it");
  const once = ids.filter((id, n) => ids.indexOf(id) === n);
  assert.deepEqual(once, await inOrder(once));
  assert.equal(once.length, 12);
  assert.equal(most.get("/line"), 1);
  const [third, again] = receiver.at("/line").slice(2, 4);
  assert.equal(third?.headers["webhook-id"], again?.headers["webhook-id"]);
  await service.db.query("delete from carillon.endpoints where id = $1", [endpoint]);
});

test("one that failed for good lets the next have its turn; sent again, it stands at the end", async () => {
  answers.set("/refused", [400]);
  const endpoint = await makeEndpoint(service, {
    url: `${receiver.url}/refused`,
    events: ["accepted"],
    fifo: "endpoint",
  });
  await sendAll(5);
  await came("/refused", 5);
  const [first] = idsAt("/refused");
  const queue = createPostgresQueue(service.db, () => performance.now());
  const { rows } = await service.db.query(
    "select id from carillon.records where tenant = -1 and user_id = $1 and status = 'failed'",
    [endpoint],
  );
  assert.equal((await queue.retry(service.db, -1, [rows[0].id])).length, 1);
  await came("/refused", 6);
  assert.equal(idsAt("/refused").at(-1), first);
  assert.equal(most.get("/refused"), 1);
  await service.db.query("delete from carillon.endpoints where id = $1", [endpoint]);
});

test("a turn that a crash left ungiven is given by the keeper", async () => {
  answers.set("/left", [500]);
  const endpoint = await makeEndpoint(service, { url: `${receiver.url}/left`, events: ["accepted"], fifo: "endpoint" });
  await sendAll(2);
  await came("/left", 1);
  // The first ends as a worker would end it that is killed right after.
  await until(async () => {
    const { rowCount } = await service.db.query(
      `with gone as (delete from carillon.later l using carillon.notifications n
         where n.tenant = -1 and n.id = l.id and n.user_id = $1 and l.attempt = 1 returning l.id, l.tenant)
       insert into carillon.events (notification_id, tenant, type, from_status, to_status)
       select id, tenant, 'cancelled', 'pending', 'cancelled' from gone`,
      [endpoint],
    );
    return rowCount ? true : undefined;
  });
  await came("/left", 2);
  await service.db.query("delete from carillon.endpoints where id = $1", [endpoint]);
});

test("lines by notification do not wait for each other", async () => {
  answers.set("/apart", [500]);
  const events = ["accepted", "sent"];
  const endpoint = await makeEndpoint(service, { url: `${receiver.url}/apart`, events, fifo: "notification" });
  await sendAll(3);
  await came("/apart", 5);
  await retryNow(endpoint);
  const posted = await came("/apart", 7);
  for (const id of new Set(idsAt("/apart"))) {
    const types = posted.filter(({ body }) => body.data.notificationId === id).map(({ body }) => body.type);
    assert.deepEqual([...new Set(types)], ["notification.accepted", "notification.sent"]);
  }
  await service.db.query("delete from carillon.endpoints where id = $1", [endpoint]);
});

test("an endpoint's rate is never overshot", async () => {
  const at: number[] = [];
  const paced = await startReceiver((_, response) => {
    at.push(performance.now());
    response.writeHead(204).end();
  });
  const endpoint = await makeEndpoint(service, {
    url: paced.url,
    events: ["accepted"],
    rate: { per: "second", most: 5 },
  });
  await sendAll(12);
  await until(async () => (at.length >= 12 ? true : undefined), 60_000);
  for (let n = 5; n < at.length; n++) {
    const ms = (at[n] as number) - (at[n - 5] as number);
    // They are counted where they leave: on the way some gain a little on others.
    assert.ok(ms > 900, `six within ${ms} ms`);
  }
  await service.db.query("delete from carillon.endpoints where id = $1", [endpoint]);
  paced.close();
});
