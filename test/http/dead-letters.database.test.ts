// Dead letters by the ten thousands: no request looks at all of them, and every one is found.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Service, startService } from "../support/service.ts";

const TOTAL = 10_700;
const RARE = 7;

let service: Service;
before(async () => {
  service = await startService();
  // Of each, two failures: it was sent again once. The oldest few went by another provider.
  await service.db.query(
    `with stored as (
       insert into carillon.notifications (tenant, id, seq, channel, priority, accepted_at, request)
       select 1, carillon.first_id(now() - n * interval '1 ms'), nextval('carillon.acceptance'), 'push', 2, now(), '{}'
       from generate_series(1, $1) as n returning tenant, id, seq
     )
     insert into carillon.events (notification_id, tenant, at, type, from_status, to_status, attempt, provider)
     select id, tenant, now() + again * interval '1 s', 'attempt', 'processing', 'failed', 1,
       case when id < carillon.first_id(now() - ($1 - $2) * interval '1 ms') then 'rare' else 'common' end
     from stored, generate_series(0, 1) as again`,
    [TOTAL, RARE],
  );
  await service.db.query("analyze carillon.notifications, carillon.events");
});
after(() => service.stop());

type Requeued = { matched: number; requeued: number; remaining: number; nextCursor: string | null };
const requeue = async (body: object): Promise<Requeued> => {
  const answer = await service.ask("POST", "/v1/dead-letters/requeue", body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
};

/** Asks until there is nothing to go on with. */
async function all(body: object): Promise<Requeued[]> {
  const answers: Requeued[] = [];
  for (let cursor: string | null | undefined; cursor !== null; cursor = answers.at(-1)?.nextCursor ?? null) {
    answers.push(await requeue({ ...body, ...(cursor && { cursor }) }));
  }
  return answers;
}
const sum = (answers: Requeued[], field: "matched" | "requeued") => answers.reduce((n, one) => n + one[field], 0);

test("a dry run counts so many at a time, and all of them in the end", async () => {
  const answers = await all({ filter: {}, dryRun: true });
  assert.deepEqual(
    answers.map(({ matched }) => matched),
    [10_000, TOTAL - 10_000],
  );
  assert.equal(sum(await all({ filter: { provider: "rare" }, dryRun: true }), "matched"), RARE);
});

test("a list with a rare filter goes on page by page and finds every match", async () => {
  const found = new Set<string>();
  let pages = 0;
  for (let cursor = ""; pages === 0 || cursor; pages++) {
    const { body } = await service.ask("GET", `/v1/dead-letters?provider=rare${cursor && `&cursor=${cursor}`}`);
    for (const { notificationId } of body.data) found.add(notificationId);
    cursor = body.nextCursor ?? "";
  }
  assert.equal(found.size, RARE);
  assert.ok(pages > 5, `all of them looked at in ${pages} pages`);
});

test("a requeue by filter goes on where it stopped until every one of them is back, once", async () => {
  assert.equal(sum(await all({ filter: { provider: "rare" }, limit: 5 }), "requeued"), RARE);
  const answers = await all({ filter: {}, limit: 5_000 });
  assert.deepEqual(
    answers.map(({ requeued, remaining }) => [requeued, remaining]),
    [
      [5_000, TOTAL - RARE - 5_000],
      [5_000, TOTAL - RARE - 10_000],
      [TOTAL - RARE - 10_000, 0],
    ],
  );
  const { rows } = await service.db.query("select count(*)::int as n from carillon.ready");
  assert.equal(rows[0].n, TOTAL);
  assert.equal((await requeue({ filter: {}, dryRun: true })).matched, 0);
});

test("a cursor goes with a filter, and must be one", async () => {
  const ids = ["00000000-0000-7000-8000-000000000000"];
  const { nextCursor: cursor } = await requeue({ filter: {}, dryRun: true });
  for (const body of [
    { ids, cursor },
    { filter: {}, cursor: "made-up" },
  ]) {
    assert.equal((await service.ask("POST", "/v1/dead-letters/requeue", body)).status, 422);
  }
});
