// Locks that others hold: of an idempotency key, which concerns nobody else, and of a whole table, which is nobody's key.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { email, type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

/** Open until the test is over. */
async function openTransaction(): Promise<pg.PoolClient & AsyncDisposable> {
  const client = await service.db.connect();
  await client.query("begin");
  return Object.assign(client, { [Symbol.asyncDispose]: async () => client.release(true) });
}
const hold = (tx: pg.PoolClient, key: string) =>
  tx.query("select carillon.send($1)", [JSON.stringify({ ...email(), idempotencyKey: key })]);
const send = (body: object, key?: string) =>
  service.ask("POST", "/v1/notifications", body, key === undefined ? {} : { key });

test("a key in an open transaction concerns only those who want it, and they get it when it has ended", async () => {
  await using tx = await openTransaction();
  await hold(tx, "held");
  const other = await service.makeKey({ tenant: "other", scopes: ["send"] });
  for (let round = 0; round < 2; round++) {
    const mine = send({ ...email(), idempotencyKey: "held" });
    const others = Array.from({ length: 40 }, (_, n) => {
      // Another tenant's key of the same name is another key.
      const bodies = [
        email(n),
        { ...email(n), idempotencyKey: `${round}-${n}` },
        { ...email(), idempotencyKey: "held" },
      ];
      return send(bodies[n % 3] as object, other);
    });
    for (const { status, body } of await Promise.all(others)) {
      assert.ok(status === 202 || status === 200, JSON.stringify(body));
    }
    const { status, body, headers } = await mine;
    assert.deepEqual([status, body.code, headers.get("retry-after")], [409, "IDEMPOTENCY_IN_PROGRESS", "1"]);
  }
  const { body } = await service.ask("POST", "/v1/notifications/batch", {
    notifications: [email(1), { ...email(), idempotencyKey: "held" }, { ...email(2), idempotencyKey: "free" }],
  });
  assert.deepEqual(
    body.results.map((result: { status?: string; error?: { code: string } }) => result.status ?? result.error?.code),
    ["queued", "IDEMPOTENCY_IN_PROGRESS", "queued"],
  );
  await tx.query("commit");
  assert.equal((await send({ ...email(), idempotencyKey: "held" })).status, 200);
  assert.equal((await send({ ...email(3), idempotencyKey: "held" })).body.code, "IDEMPOTENCY_MISMATCH");
});

test("of a batch in the database, the requests whose key is held are left out and named, all others are stored", async () => {
  await using tx = await openTransaction();
  for (const key of ["a-held", "m-held", "z-held"]) await hold(tx, key);
  const keys = ["a", "a-held", "b", "m-held", "m-held", null, "z", "z-held", "z"];
  const rows = keys.map((k, n) => ({
    i: `00000000-0000-7000-8000-00000000000${n}`,
    t: 1,
    c: "console",
    p: 2,
    k,
    r: {},
  }));
  const { rows: answers } = await service.db.query("select * from carillon.accept($1, true, 20)", [
    JSON.stringify(rows),
  ]);
  const { held, replays } = answers[0];
  const namesOf = (ids: string[]) => ids.map((id) => keys[Number(id.at(-1))]).sort();
  assert.deepEqual(namesOf(held), ["a-held", "m-held", "m-held", "z-held"]);
  assert.deepEqual(namesOf(replays.map(({ i }: { i: string }) => i)), ["z"]);
  const { rows: stored } = await service.db.query("select id from carillon.notifications where id = any ($1)", [
    rows.map(({ i }) => i),
  ]);
  assert.deepEqual(namesOf(stored.map(({ id }) => id)), ["a", "b", null, "z"].sort());
});

for (const table of ["notifications", "idempotency"]) {
  test(`who finds ${table} locked is told 503, not that a key is in use`, async () => {
    {
      await using tx = await openTransaction();
      await tx.query(`lock table carillon.${table} in access exclusive mode`);
      const sends = [send({ ...email(), idempotencyKey: `${table}-mine` })];
      if (table === "notifications") sends.push(send(email()));
      for (const { status, body } of await Promise.all(sends)) {
        assert.deepEqual([status, body.code], [503, "DATABASE_UNAVAILABLE"]);
      }
    }
    assert.equal((await send({ ...email(), idempotencyKey: `${table}-mine` })).status, 202);
  });
}
