// A rolling upgrade: replicas of the version before and of today side by side on one database, which the new one migrates under the old one's
// feet. Both take requests, send, fire, sweep and lead; either may be killed.

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { keptAhead } from "../support/planned.ts";
import { type ServiceProcess, sandboxFor } from "../support/process.ts";
import { until } from "../support/until.ts";
import { released } from "./released.ts";
import { inbox, inMs, openWorld, type Talk, talkTo } from "./world.ts";

const HOUR = 3_600_000;
const EACH = 20;
const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

/** PostgreSQL's codes for what passes by itself: connections, resources, its stop, input and output; locks that are waited for. No deadlocks. */
const PASSES = /^(08|53|57|58|40001|55)/;

/** What it logged that the migrated schema is to blame for. */
function complaints({ stderr }: ServiceProcess): string[] {
  const lines = stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"));
  assert.ok(lines.length > 0, "it logs");
  return lines.filter((line) => {
    const { level, err } = JSON.parse(line);
    return level >= 50 || (err?.code !== undefined && !PASSES.test(err.code));
  });
}

/** Sends, schedules and reminders through one door, and changes of what another has accepted. */
async function useDoor(name: string, mine: Talk, other: Talk) {
  const hooked = await Promise.all(
    Array.from({ length: EACH }, (_, n) =>
      mine.hook("/ok", `${name}-${n}.`, {
        priority: ["urgent", "high", "normal", "low"][n % 4],
        ...(n % 2 === 0 && { scheduledFor: inMs(500 + 50 * n) }),
      }),
    ),
  );
  await mine.must("PUT", `/v1/schedules/${name}`, { every: "PT1S", notification: inbox(`tick of ${name}`, name) });
  const notification = inbox(`reminder of ${name}`, name);
  await keptAhead({ leadMs: 1_000, beforeMs: HOUR }, (at) =>
    mine.must("PUT", `/v1/reminders/${name}`, { at, before: ["PT1H"], notification }),
  );
  const [cancelled, moved, refused, keyed] = await Promise.all([
    other.hook("/ok", `${name} cancels.`, { scheduledFor: inMs(HOUR) }),
    other.hook("/ok", `${name} moves.`, { scheduledFor: inMs(HOUR) }),
    other.hook("/refuse", `${name} retries.`),
    other.send({ ...inbox("keyed", name), idempotencyKey: name }),
  ]);
  await mine.must("POST", `/v1/notifications/${cancelled}/cancel`);
  await mine.must("PATCH", `/v1/notifications/${moved}`, { scheduledFor: inMs(500), priority: "high" });
  assert.equal(await mine.send({ ...inbox("keyed", name), idempotencyKey: name }), keyed, "a key holds at every door");
  await mine.ends(refused, "failed");
  await mine.must("POST", `/v1/notifications/${refused}/retry`);
  await until(async () => ((await mine.read(refused)).attempts.length === 2 ? true : undefined));
  await mine.ends(refused, "failed");
  assert.equal((await mine.must("POST", "/v1/dead-letters/requeue", { ids: [refused] })).requeued, 1);
  return { hooked: [...hooked, moved], cancelled };
}

test("replicas of 0.4.0 and of today work side by side, and either takes over from the other", async (t) => {
  const { receiver, db, env } = await openWorld(t, publicKey);
  const [oldBox, newBox] = [await sandboxFor(t, released("0.4.0")), await sandboxFor(t)];
  const old = await oldBox.start(env);
  const today = await newBox.start(env);
  const [before, after] = [talkTo(old, receiver), talkTo(today, receiver)];

  const doors = await Promise.all([useDoor("old", before, after), useDoor("new", after, before)]);
  for (const { hooked, cancelled } of doors) {
    for (const id of hooked) await before.ends(id, "sent");
    assert.equal((await after.read(cancelled)).status, "cancelled");
  }
  for (const name of ["old", "new"]) {
    for (let n = 0; n < EACH; n += 1) assert.equal(receiver.times(`${name}-${n}.`), 1, `${name}-${n}`);
    assert.deepEqual([receiver.times(`${name} cancels.`), receiver.times(`${name} moves.`)], [0, 1]);
    await until(async () => (receiver.times(`${name} retries.`) === 3 ? true : undefined));
    await until(async () =>
      (await after.must("GET", `/v1/reminders/${name}`)).plan[0].status === "sent" ? true : undefined,
    );
    await until(async () =>
      (await before.must("GET", `/v1/schedules/${name}/runs`)).data.length > 1 ? true : undefined,
    );
  }
  const twice = await db.query(
    "select user_id, request -> 'content' ->> 'title' as title from carillon.notifications where user_id is not null group by 1, 2, due_at having count(*) > 1 and min(request -> 'content' ->> 'title') not like 'tick%'",
  );
  assert.deepEqual(twice.rows, []);

  // The new one dies with sends in its hands, and the old one has them sent.
  const lost = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => after.hook("/hold", `lost by the new ${n}.`)));
  for (const n of [1, 2, 3, 4, 5, 6]) await receiver.arrived(`lost by the new ${n}.`);
  await today.end("SIGKILL");
  receiver.release();
  for (const id of lost) await before.ends(id, "sent");

  // And the other way round. An old one that has ended does not come back: the schema is newer than it.
  const successor = await newBox.start(env);
  const later = talkTo(successor, receiver);
  receiver.hold();
  const taken = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => before.hook("/hold", `lost by the old ${n}.`)));
  for (const n of [1, 2, 3, 4, 5, 6]) await receiver.arrived(`lost by the old ${n}.`);
  await old.end("SIGKILL");
  receiver.release();
  for (const id of taken) await later.ends(id, "sent");
  const refused = await oldBox.run(["start"], env);
  assert.match(refused.stderr, /schema version \d+, this Carillon knows versions up to 30/);

  for (const name of ["old", "new"]) await later.must("DELETE", `/v1/schedules/${name}`);
  const ledger = await later.must("GET", "/v1/ledger");
  assert.equal(ledger.balanced, true, JSON.stringify(ledger));
  assert.deepEqual(complaints(old), []);
});
