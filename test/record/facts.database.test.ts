// What the record says of facts is what its history says of them, though it is asked in another way.

import assert from "node:assert/strict";
import { test } from "node:test";
import { findDetails } from "#record/facts.ts";
import { attempt, feedDatabase, follow, makeId } from "../support/feed.ts";

test("the details of a page are the lines of the history, also of what was scheduled, lies weeks apart or is gone", async (t) => {
  const { db } = await feedDatabase(t);
  const [now, later, never, gone] = [makeId(), makeId(), makeId(), makeId()];
  // In another week's partition than the others.
  const early = "01900000-0000-7000-8000-000000000000";
  const ids = [now, later, never, gone, early];
  const requests: { [id: string]: object } = {
    [later]: { scheduledFor: "2099-01-01T00:00:00Z" },
    [never]: { scheduledFor: "no instant" },
  };
  const rows = ids.map((i) => ({ i, t: 1, c: "email", p: 2, r: requests[i] ?? {} }));
  await db.query("select from carillon.accept($1, false)", [JSON.stringify(rows)]);
  await attempt(db, [now, gone, early]);
  await attempt(db, [now], "sent");
  await db.query("delete from carillon.events where notification_id = $1", [gone]);
  await db.query("delete from carillon.notifications where id = $1", [gone]);

  const { facts } = await follow(db, { limit: 100, least: 9 });
  assert.equal(facts.length, 9);
  const { rows: lines } = await db.query(
    `select h.type as event, h.from_status as "from", h.to_status as "to", h.attempt, h.outcome, n.channel, n.accepted_at as "acceptedAt"
     from unnest($1::uuid[], $2::bigint[]) with ordinality as x(id, number, nth)
     left join carillon.notifications n on n.id = x.id
     left join carillon.history h on h.notification_id = x.id and h.seq = x.number order by x.nth`,
    [facts.map(({ notificationId }) => notificationId), facts.map(({ number }) => number)],
  );
  const found = (await findDetails(db, facts)).map((detail) =>
    Object.fromEntries(Object.keys(lines[0]).map((name) => [name, detail[name as keyof typeof detail]])),
  );
  assert.deepEqual(found, lines);
  const accepted = new Map(facts.map(({ type, notificationId }, n) => [`${type} ${notificationId}`, found[n]?.to]));
  assert.deepEqual(
    ids.map((id) => accepted.get(`accepted ${id}`)),
    ["queued", "pending", "queued", null, "queued"],
  );
});
