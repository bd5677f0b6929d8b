// What a tenant sees of its callbacks: deliveries with request and answers, dead letters of their own, and the way back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createClient } from "#client/client.ts";
import { createIds } from "#domain/ids.ts";
import { type Service, startService } from "../support/service.ts";

let service: Service;
let tenant: number;
const newId = createIds();
const keys: { [who: string]: string } = {};
before(async () => {
  service = await startService();
  keys.shop = await service.makeKey({ tenant: "shop", scopes: ["admin"] });
  keys.stranger = await service.makeKey({ tenant: "stranger", scopes: ["admin"] });
  tenant = (await service.db.query("select id from carillon.tenants where name = 'shop'")).rows[0].id;
});
after(() => service.stop());

const client = (who = "shop") => createClient({ url: service.url, key: keys[who] as string });
const url = "https://hooks.example.com/carillon";

/** As the caller makes them. */
async function callbacks(endpoint: string, count: number, type = "notification.sent"): Promise<string[]> {
  const rows = Array.from({ length: count }, (_, n) => {
    const callback = { webhookId: `msg_${n}`, endpoint, type, timestamp: "2027-01-01T09:00:00.000Z", data: { n } };
    return {
      i: newId(),
      t: -tenant,
      c: "callback",
      p: 4,
      u: endpoint,
      r: { channel: "callback", content: {}, callback },
    };
  });
  await service.db.query("select carillon.accept($1, false)", [JSON.stringify(rows)]);
  return rows.map(({ i }) => i);
}
/** As a worker does, which takes them out of the queue. */
async function settle(ids: string[], to: string, tries: number, answer?: object): Promise<void> {
  await service.db.query("delete from carillon.ready where id = any ($1)", [ids]);
  for (let attempt = 1; attempt <= tries; attempt++)
    await service.db.query(
      `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, outcome, error, latency_ms, detail)
       select id, $2, 'attempt', 'processing', $3, $4, $5, $6, 12, $7 from unnest($1::uuid[]) as id`,
      [
        ids,
        -tenant,
        attempt === tries ? to : "pending",
        attempt,
        to === "sent" && attempt === tries ? "accepted" : "rejected",
        to === "sent" && attempt === tries ? null : "the receiver answered 500",
        answer ? JSON.stringify({ answer }) : null,
      ],
    );
}

test("a delivery shows what is posted, the tries and what the receiver answered, page by page, to its tenant alone", async () => {
  const { id } = await client().endpoints.create({ url });
  const ids = await callbacks(id, 5);
  await settle(ids.slice(0, 1), "sent", 2, { status: 500, body: "oh no" });
  await settle(ids.slice(1, 2), "failed", 25);

  const page = await client().endpoints.deliveries(id, { limit: 3 });
  const rest = await client().endpoints.deliveries(id, { limit: 3, cursor: page.nextCursor ?? "" });
  assert.deepEqual([page.data.length, rest.data.length, rest.nextCursor], [3, 2, null]);
  assert.deepEqual(
    [...page.data, ...rest.data].map((one) => [one.id, one.status]),
    ids.map((one, n) => [one, ["sent", "failed"][n] ?? "queued"]).reverse(),
  );
  const { createdAt, tries, ...first } = rest.data[1] ?? assert.fail();
  assert.deepEqual(first, {
    id: ids[0],
    webhookId: "msg_0",
    endpointId: id,
    type: "notification.sent",
    status: "sent",
    request: {
      url,
      headers: { "content-type": "application/json", "webhook-id": "msg_0" },
      body: '{"type":"notification.sent","timestamp":"2027-01-01T09:00:00.000Z","data":{"n":0}}',
    },
  });
  assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 600_000);
  assert.deepEqual(
    tries.map(({ number, outcome, error, answer }) => [number, outcome, error, answer?.body]),
    [
      [1, "rejected", "the receiver answered 500", "oh no"],
      [2, "accepted", undefined, "oh no"],
    ],
  );
  assert.deepEqual(
    rest.data[0]?.tries.map(({ number }) => number),
    Array.from({ length: 20 }, (_, n) => n + 6),
    "the last twenty",
  );
  const failed = await client().endpoints.deliveries(id, { status: "failed" });
  assert.deepEqual([failed.data.map((one) => one.id), failed.nextCursor], [[ids[1]], null]);
  const none = await client().endpoints.deliveries(id, { until: "2026-01-01T00:00:00.000Z" });
  assert.deepEqual(none.data, []);
  await assert.rejects(client("stranger").endpoints.deliveries(id), /NOT_FOUND/);
});

test("callbacks that failed for good have a list of their own, and go back by ids and by filter", async () => {
  const c = client();
  const [one, two] = [await c.endpoints.create({ url }), await c.endpoints.create({ url })];
  const [ofOne, ofTwo] = [await callbacks(one.id, 3), await callbacks(two.id, 2, "notification.failed")];
  await settle([...ofOne, ...ofTwo], "failed", 2);
  const dead = async (filter: object) => (await c.callbackDeadLetters.list(filter)).data.map(({ id }) => id);
  assert.deepEqual(await dead({ endpoint: one.id }), ofOne.toReversed());
  assert.deepEqual(await dead({ type: "notification.failed" }), ofTwo.toReversed());
  assert.deepEqual(await dead({ endpoint: one.id, type: "notification.failed" }), []);
  assert.deepEqual(await dead({ endpoint: one.id, until: "2026-01-01T00:00:00.000Z" }), []);
  const page = await c.callbackDeadLetters.list({ endpoint: one.id, limit: 2 });
  const { createdAt: _, failedAt: __, ...letter } = page.data[0] ?? assert.fail();
  assert.deepEqual(letter, {
    id: ofOne[2],
    webhookId: "msg_2",
    endpointId: one.id,
    type: "notification.sent",
    attempts: 2,
    outcome: "rejected",
    error: "the receiver answered 500",
    data: { n: 2 },
  });
  const rest = await c.callbackDeadLetters.list({ endpoint: one.id, limit: 2, cursor: page.nextCursor ?? "" });
  assert.deepEqual(
    rest.data.map(({ id }) => id),
    ofOne.slice(0, 1),
  );

  // They are nobody else's, and no notifications.
  assert.deepEqual((await client("stranger").callbackDeadLetters.list()).data, []);
  const stolen = await client("stranger").callbackDeadLetters.requeue({ ids: ofOne });
  assert.equal(stolen.requeued, 0);
  const { body } = await service.ask("GET", "/v1/dead-letters", undefined, { key: keys.shop as string });
  assert.deepEqual(body.data, []);
  const asNotifications = { ids: ofOne };
  assert.equal(
    (await service.ask("POST", "/v1/dead-letters/requeue", asNotifications, { key: keys.shop as string })).body
      .requeued,
    0,
  );

  const counted = await c.callbackDeadLetters.requeue({ filter: { endpoint: one.id }, dryRun: true });
  assert.deepEqual([counted.matched, counted.requeued], [3, 0]);
  assert.equal((await c.callbackDeadLetters.requeue({ filter: { endpoint: one.id } })).requeued, 3);
  const { rows: lines } = await service.db.query(
    "select after from carillon.audit where action = 'callback-dead-letters.requeue'",
  );
  const [made] = (await c.plans.list()).data;
  assert.deepEqual(lines, [{ after: { filter: { endpoint: one.id }, plan: made?.planId, requeued: 3 } }]);
  assert.deepEqual([made?.kind, made?.filter, made?.progress.done], ["callback-retry", { endpoint: one.id }, 3]);
  assert.deepEqual(await dead({ endpoint: one.id }), []);
  const again = await c.endpoints.deliveries(one.id);
  assert.deepEqual(
    again.data.map(({ status }) => status),
    ["queued", "queued", "queued"],
  );
  assert.equal((await c.callbackDeadLetters.requeue({ ids: ofTwo.slice(0, 1) })).requeued, 1);
  assert.deepEqual(await dead({}), [ofTwo[1], ...(await dead({})).slice(1)]);
});
