// What every queue engine must leave out: what a worker does not take, and what is paused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PRIORITIES } from "#domain/priority.ts";
import type { Takes } from "#queue/queue.ts";
import { until } from "../support/until.ts";
import { LEASE_MS, type useHarness } from "./queue-harness.ts";

const ranks = PRIORITIES.map((_, rank) => rank);
const inMs = (ms: number) => new Date(Date.now() + ms);

export function takesConformance(name: string, { queue, under, depth }: ReturnType<typeof useHarness>): void {
  let made = 0;
  const claim = async (takes: Omit<Takes, "ranks"> = {}) =>
    (await queue.claim(1, 100, LEASE_MS, { ranks, ...takes })).map(({ id }) => id);

  test(`${name}: a claim takes of some channels only, and leaves the rest to others`, async () => {
    const [first] = await under.enqueue(["normal"]);
    const [file] = await under.enqueue(["normal"], { channel: "file" });
    const [last] = await under.enqueue(["normal"]);
    assert.deepEqual(await claim({ channels: ["file", "sms"] }), [file]);
    assert.deepEqual(await claim({ channels: ["sms"] }), []);
    assert.deepEqual(await claim({ channels: ["console"] }), [first, last]);
  });

  test(`${name}: a claim takes of some tenants only, or of all but some`, async () => {
    const names = [1, 2, 3].map(() => `takes-${++made}`);
    const owners: number[] = [];
    for (const one of names) owners.push(await under.tenant(one));
    const ids: string[] = [];
    for (const owner of owners) ids.push(...(await under.enqueue(["normal"], {}, owner)));
    assert.deepEqual(await claim({ tenants: ["nobody"] }), []);
    assert.deepEqual(await claim({ tenants: [names[1] as string, "nobody"] }), [ids[1]]);
    assert.deepEqual(await claim({ notTenants: [owners[0] as number] }), [ids[2]]);
    assert.deepEqual(await claim(), [ids[0]]);
  });

  test(`${name}: a claim takes of some regions only, and what names none is taken everywhere, also once it came back`, async () => {
    const [eu] = await under.enqueue(["normal"], { region: "eu" });
    const [anywhere] = await under.enqueue(["normal"]);
    const [us] = await under.enqueue(["normal"], { region: "us" });
    const [first] = await queue.claim(1, 1, LEASE_MS, { ranks, regions: ["eu"] });
    assert.equal(first?.id, eu);
    if (first) await queue.settle([{ attempt: first, settlement: { to: "pending", waitMs: 0, spendsAttempt: false } }]);
    assert.deepEqual(await claim({ regions: ["mars"] }), [anywhere]);
    assert.deepEqual(await claim({ regions: ["us"] }), [us]);
    assert.deepEqual(await claim({ regions: ["eu", "us"] }), [eu]);
    const [again] = await under.enqueue(["normal"], { region: "eu" });
    assert.deepEqual(await claim({ regions: [] }), []);
    assert.deepEqual(await claim(), [again], "who names no region takes all");
  });

  test(`${name}: what is left out is left out of what is due, too`, async () => {
    const owner = await under.tenant(`takes-${++made}`);
    const scheduledFor = inMs(300).toISOString();
    const [mine] = await under.enqueue(["normal"], { scheduledFor });
    const theirs = await under.enqueue(Array(200).fill("normal"), { scheduledFor, channel: "file" }, owner);
    await until(async () => ((await depth()).scheduled === 0 ? true : undefined));
    assert.deepEqual(await claim({ notTenants: [owner] }), [mine]);
    assert.deepEqual(await claim({ channels: ["console"] }), []);
    assert.equal((await claim({ channels: ["file"] })).length, 100);
    assert.equal(theirs.length, 200);
  });

  test(`${name}: of a paused channel or tenant nothing is claimed by anybody until it is resumed; then in its order`, async () => {
    const other = `takes-${++made}`;
    const owner = await under.tenant(other);
    const ids = await under.enqueue(["normal", "normal"]);
    const [file] = await under.enqueue(["normal"], { channel: "file" });
    const theirs = await under.enqueue(["normal", "normal"], {}, owner);
    const channel = { kind: "channel", name: "console" } as const;
    const tenant = { kind: "tenant", name: other } as const;
    await queue.pause(under.db, channel, { reason: "it is being repaired" });
    assert.deepEqual(await claim(), [file]);
    await queue.pause(under.db, tenant, { reason: "unpaid" });
    assert.equal(await queue.resume(under.db, channel), true);
    assert.deepEqual(await claim(), ids);
    assert.equal(await queue.resume(under.db, tenant), true);
    assert.deepEqual(await claim(), theirs);
  });

  test(`${name}: what is due of a paused tenant or channel is neither due nor next; the pause's end is`, async () => {
    const other = `takes-${++made}`;
    const owner = await under.tenant(other);
    await under.enqueue(["normal"], { scheduledFor: inMs(300).toISOString() }, owner);
    await under.enqueue(["high"], { scheduledFor: inMs(3_600_000).toISOString() }, owner);
    await until(async () => ((await queue.nextDue()).hasDue ? true : undefined));
    await queue.pause(under.db, { kind: "tenant", name: other }, { reason: "unpaid" });
    assert.deepEqual(await claim(), []);
    const { hasDue, inMs: none } = await queue.nextDue();
    assert.deepEqual([hasDue, none], [false, undefined]);
    await queue.pause(under.db, { kind: "tenant", name: other }, { reason: "unpaid", until: inMs(60_000) });
    const { inMs: leftMs = 0 } = await queue.nextDue();
    assert.ok(leftMs > 0 && leftMs <= 60_000, `${leftMs}`);
    await queue.resume(under.db, { kind: "tenant", name: other });
    assert.equal((await queue.nextDue()).hasDue, true);
    assert.equal((await claim()).length, 1);
  });

  test(`${name}: a pause with an end is over by itself`, async () => {
    const [id] = await under.enqueue(["normal"]);
    const channel = { kind: "channel", name: "console" } as const;
    await queue.pause(under.db, channel, { reason: "a moment", until: inMs(3_600_000) });
    assert.deepEqual(await claim(), []);
    await queue.pause(under.db, channel, { reason: "a moment", until: inMs(200) });
    assert.deepEqual(await until(async () => ((await claim()).includes(id as string) ? true : undefined)), true);
    assert.equal(await queue.resume(under.db, channel), false, "it was not paused any more");
  });
}
