// That an item was read is a fact like any other: it is told to those who follow, once.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { markItems, storeItems } from "#store/inbox.ts";
import { makeId } from "../support/feed.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService({ roles: ["api"] });
});
after(() => service.stop());

type Fact = { type: string; id: string; notificationId: string; at: string; [field: string]: unknown };

const itemOf = (id: string, userId: string) => ({
  ...{ id, tenant: 1, userId, title: "Hello" },
  ...{ body: null, category: null, data: null, link: null },
});
/** In the inbox, as the worker would have put it there. */
async function send(userId: string): Promise<string> {
  const request = { channel: "inbox", recipient: { userId }, content: { title: "Hello" } };
  const id: string = (await service.ask("POST", "/v1/notifications", request)).body.notificationId;
  await storeItems(service.db, [itemOf(id, userId)]);
  return id;
}
const mark = (userId: string, verb: string, body: object = {}) =>
  service.ask("POST", `/v1/inbox/${userId}/${verb}`, body);
const reads = async (query: string, least: number): Promise<Fact[]> =>
  until(async () => {
    const { data } = await ask(service, `/v1/events?limit=1000&${query}`);
    return data.length >= least ? data : undefined;
  });
const rowsOf = async (ids: readonly string[]): Promise<number[]> => {
  const { rows } = await service.db.query(
    "select size from carillon.feed where types = '{13}' and ids && $1::uuid[] order by seq",
    [ids],
  );
  return rows.map(({ size }) => size);
};

test("items that were read are told once, those of one call by one row; having arrived or been put away is not reading", async () => {
  const [a, b, c] = [await send("ada"), await send("ada"), await send("ada")];
  await mark("ada", "ack", { ids: [a, b, c] });
  await mark("ada", "archive", { ids: [c] });
  await mark("ada", "read", { ids: [a, b] });
  await mark("ada", "read", { ids: [a, b] });
  await mark("ada", "read-all");
  assert.deepEqual(await rowsOf([a, b, c]), [2]);
  const facts = await reads("types=read", 2);
  assert.deepEqual(facts.map(({ notificationId }) => notificationId).sort(), [a, b].sort());
  const { position: _, id, at, acceptedAt, ...rest } = facts.find(({ notificationId }) => notificationId === a) as Fact;
  assert.deepEqual(rest, {
    type: "read",
    notificationId: a,
    channel: "inbox",
    priority: "normal",
    userId: "ada",
  });
  assert.match(id, new RegExp(`^${a}:[1-9]\\d*$`));
  assert.ok(Date.parse(String(acceptedAt)) <= Date.parse(at));
  const { data } = await ask(service, "/v1/inbox/ada");
  assert.equal(data.find((item: { id: string }) => item.id === a).readAt, at);

  // Found by the notification, too.
  const ofOne = await reads(`notification=${a}`, 2);
  assert.deepEqual(
    ofOne.map(({ type, id }) => [type, id]),
    [
      ["accepted", `${a}:0`],
      ["read", id],
    ],
  );
});

test("who reads a whole inbox of thousands is told by a row for each thousand", async () => {
  const ids = Array.from({ length: 2_500 }, makeId);
  await storeItems(
    service.db,
    ids.map((id) => itemOf(id, "grace")),
  );
  assert.equal((await mark("grace", "read-all")).body.marked, 2_500);
  assert.deepEqual(await rowsOf(ids), [1_000, 1_000, 500]);
  const { rows } = await service.db.query(
    "select count(distinct number)::int as n from carillon.feed f, unnest(f.numbers) as number where f.types = '{13}' and f.ids && $1::uuid[]",
    [ids],
  );
  assert.equal(rows[0].n, 2_500);
});

test("a mark that is rolled back tells nothing", async () => {
  const id = await send("linus");
  const client = await service.db.connect();
  try {
    await client.query("begin");
    assert.deepEqual(await markItems(client, { tenant: 1, userId: "linus" }, { verb: "read", ids: [id] }), [id]);
    await client.query("rollback");
  } finally {
    client.release();
  }
  assert.deepEqual(await rowsOf([id]), []);
});
