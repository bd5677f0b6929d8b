// Replicas of 0.2.0 run beside the new ones while an upgrade rolls: what waits for its time they know as carillon.schedule. Their
// statements here are their own, cut down to what they do with it.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());
beforeEach(() => service.db.query("delete from carillon.later"));

const run = async (text: string, values: unknown[] = []) => (await service.db.query(text, values)).rows;
const later = () => run("select seq::int as seq, attempt from carillon.later order by seq");

/** As their settlement puts back what is tried again. */
const wait = (seqs: number[], due: string, expires: string | null = null) =>
  run(
    `with held as (select seq from unnest($1::bigint[]) as s(seq)), waiting as (
       insert into carillon.schedule (seq, due_at, priority, tenant, id, attempt, expires_at)
       select seq, clock_timestamp() + $2::interval, 2, 1, gen_random_uuid(), 1, clock_timestamp() + $3::interval from held
     ) select count(*) from held`,
    [seqs, due, expires],
  );

const CLAIM = `with picked as materialized (
    select due_at, ctid as place, seq, priority, tenant, id, (attempt + 1)::smallint as attempt, expires_at
    from carillon.schedule where priority = 2 and due_at <= statement_timestamp()
    order by due_at limit $1 for update skip locked
  ), due as (
    delete from carillon.schedule where seq = any (array(select seq from picked where due_at is not null))
  )
  select seq::int as seq, attempt from picked`;

test("they put back what is tried again and claim what is due, in order, past what others have locked", async () => {
  await wait([3], "-1 s");
  await wait([1], "-3 s");
  await wait([2], "-2 s");
  await wait([4], "1 h");
  const other = await service.db.connect();
  try {
    await other.query("begin");
    await other.query("select from carillon.later where seq = 1 for update");
    assert.deepEqual(await run(CLAIM, [10]), [
      { seq: 2, attempt: 2 },
      { seq: 3, attempt: 2 },
    ]);
  } finally {
    await other.query("rollback");
    other.release();
  }
  assert.deepEqual(await later(), [
    { seq: 1, attempt: 1 },
    { seq: 4, attempt: 1 },
  ]);
});

test("they cancel and expire what waits, and find out when the next is due", async () => {
  await wait([5], "1 h");
  await wait([6], "1 h", "-1 s");
  const expired = await run(
    `with later as materialized (
       select ctid as place from carillon.schedule where expires_at <= statement_timestamp() limit $1 for update skip locked
     )
     delete from carillon.schedule where ctid = any (array(select place from later)) returning carillon.waits_as(due_at) as was`,
    [10],
  );
  assert.deepEqual(expired, [{ was: "pending" }]);
  const [next] = await run(
    "select due_at > statement_timestamp() + interval '50 min' as is_far from carillon.schedule where priority = 2 order by due_at limit 1",
  );
  assert.deepEqual(next, { is_far: true });
  await run("delete from carillon.schedule where seq = $1 returning carillon.waits_as(due_at) as was", [5]);
  assert.deepEqual(await later(), []);
});

test("what they insert wakes whoever sleeps until the next is due", async () => {
  const client = await service.db.connect();
  try {
    await client.query("set carillon.hints = ''");
    await client.query("listen carillon_due");
    const told = new Promise<string | undefined>((resolve) => {
      client.once("notification", ({ payload }) => resolve(payload));
    });
    await client.query(
      "insert into carillon.schedule (seq, due_at, priority, tenant, id) values (7, '2099-01-01Z', 2, 1, gen_random_uuid())",
    );
    assert.equal(await told, String(Date.parse("2099-01-01Z")));
  } finally {
    client.release(true);
  }
  assert.deepEqual(await later(), [{ seq: 7, attempt: 0 }]);
});
