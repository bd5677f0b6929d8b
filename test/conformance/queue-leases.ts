// What every queue engine must do about leases that were lost, prolonged or taken over.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attempt } from "#domain/attempt.ts";
import { LEASE_MS, SENT, settled, type useHarness } from "./queue-harness.ts";

export function leaseConformance(name: string, { queue, under, depth }: ReturnType<typeof useHarness>): void {
  test(`${name}: settling twice, or what others have taken over, or what is long settled, changes nothing and says so`, async () => {
    const [id] = (await under.enqueue(["normal"])) as [string];
    const [attempt] = await queue.claim(1, 1, 0);
    assert.ok(attempt);
    const [taken] = await queue.sweep(2, 10, LEASE_MS);
    assert.ok(taken);
    assert.equal(taken.heldBy, 1);
    assert.deepEqual(await queue.settle([settled(attempt, SENT, "stale")]), [false]);
    assert.deepEqual(await under.look(id), { status: "processing", outcomes: [], attempts: [] });
    assert.deepEqual(await queue.settle([settled(taken, SENT, "real")]), [true]);
    assert.deepEqual(await queue.settle([settled(taken, { to: "failed" }, "again")]), [false]);
    assert.deepEqual(await queue.settle([settled(attempt, SENT, "stale")]), [false]);
    assert.deepEqual(await under.look(id), { status: "sent", outcomes: ["real"], attempts: [1] });
  });

  test(`${name}: in a mixed batch each settlement stands or falls by its own lease`, async () => {
    await under.enqueue(Array(6).fill("normal"));
    const stale = await queue.claim(1, 3, 0);
    const held = await queue.claim(1, 3, LEASE_MS);
    await queue.sweep(2, 10, LEASE_MS);
    const batch = [stale[0], held[0], stale[1], held[1], stale[2], held[2]].map((attempt) =>
      settled(attempt as NonNullable<typeof attempt>, SENT),
    );
    assert.deepEqual(await queue.settle(batch), [false, true, false, true, false, true]);
  });

  test(`${name}: what a claim had settled before it was swept stays settled`, async () => {
    const ids = await under.enqueue(Array(5).fill("normal"));
    const attempts = await queue.claim(1, 5, 0);
    await queue.settle([settled(attempts[1] as Attempt, SENT), settled(attempts[3] as Attempt, SENT)]);
    const swept = await queue.sweep(2, 10, LEASE_MS);
    assert.deepEqual(
      swept.map(({ id }) => id),
      [ids[0], ids[2], ids[4]],
    );
    const back = await queue.settle(swept.map((attempt) => settled(attempt, { to: "failed" }, "lost")));
    assert.deepEqual(back, [true, true, true]);
    assert.equal((await depth()).processing, 0);
    assert.deepEqual(await under.look(ids[4] as string), { status: "failed", outcomes: ["lost"], attempts: [1] });
  });

  test(`${name}: a sweep takes over many small claims, as many as asked for`, async () => {
    const ids = await under.enqueue(Array(12).fill("normal"));
    for (let n = 0; n < 6; n++) await queue.claim(1, 2, 0);
    const first = await queue.sweep(2, 5, LEASE_MS);
    assert.deepEqual(
      first.map(({ id }) => id),
      ids.slice(0, 6),
    );
    assert.equal((await queue.sweep(2, 5, LEASE_MS)).length, 6);
    assert.equal((await queue.sweep(2, 5, LEASE_MS)).length, 0);
  });

  test(`${name}: an extended lease is not swept; what was taken over is not extended`, async () => {
    const [kept, lost] = (await under.enqueue(["normal", "normal"])) as [string, string];
    const [mine] = await queue.claim(1, 1, 1_500);
    const [frozen] = await queue.claim(1, 1, 0);
    assert.ok(mine && frozen);
    assert.deepEqual(
      (await queue.sweep(2, 10, LEASE_MS)).map(({ id }) => id),
      [lost],
    );
    assert.deepEqual(await queue.extend(1, [mine.lease, frozen.lease], LEASE_MS), [mine.lease]);
    await sleep(mine.lease.endsAt - performance.now() + 50);
    assert.deepEqual(await queue.sweep(2, 10, LEASE_MS), []);
    assert.deepEqual(await queue.settle([settled(mine, SENT)]), [true]);
    assert.equal((await under.look(kept)).status, "sent");
  });

  test(`${name}: a lease that has run out cannot be extended any more, and nobody else's can`, async () => {
    await under.enqueue(["normal", "normal"]);
    const [late] = await queue.claim(1, 1, 0);
    const [theirs] = await queue.claim(2, 1, LEASE_MS);
    assert.ok(late && theirs);
    assert.deepEqual(await queue.extend(1, [late.lease, theirs.lease], LEASE_MS), []);
  });

  test(`${name}: racing sweeps take over each expired lease once`, async () => {
    const ids = await under.enqueue(Array(100).fill("normal"));
    await queue.claim(1, 100, 0);
    const swept = await Promise.all(Array.from({ length: 5 }, (_, worker) => queue.sweep(worker + 2, 60, LEASE_MS)));
    assert.deepEqual(
      swept
        .flat()
        .map(({ id }) => id)
        .sort(),
      [...ids].sort(),
    );
  });
}
