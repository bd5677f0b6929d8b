// What every queue engine must do with notifications that wait, other than handing them out.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt } from "#domain/attempt.ts";
import { rankOf } from "#domain/priority.ts";
import type { Change } from "#queue/queue.ts";
import { until } from "../support/until.ts";
import { LEASE_MS, SENT, settled, type useHarness } from "./queue-harness.ts";

const HOUR_MS = 3_600_000;
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const UNKNOWN = "00000000-0000-7000-8000-000000000000";

export function waitingConformance(
  name: string,
  { queue, under, depth, claimIds }: ReturnType<typeof useHarness>,
): void {
  test(`${name}: the depth counts lanes, what is held and what waits`, async () => {
    await under.enqueue(["urgent", "high", "high", "low", "low", "low"]);
    const [attempt] = await queue.claim(1, 2, LEASE_MS);
    assert.ok(attempt);
    await queue.settle([settled(attempt, { to: "pending", waitMs: 60_000, spendsAttempt: true })]);
    assert.deepEqual(await depth(), {
      depth: { urgent: 0, high: 1, normal: 0, low: 3 },
      processing: 1,
      scheduled: 1,
    });
  });

  /** On a busy machine a moment is over before the queue hears of it: then another. */
  const movedSoon = (id: string, change: () => Change, status?: string) =>
    until(async () => {
      const moved = await queue.move(under.db, 1, id, change());
      return moved.kind === "done" && moved.status === (status ?? moved.status) ? true : undefined;
    });

  test(`${name}: the depth is one tenant's or everybody's, and says how old the oldest is`, async () => {
    await under.enqueue(["normal", "low"]);
    const none = { depth: { urgent: 0, high: 0, normal: 0, low: 0 }, processing: 0, scheduled: 0, oldestAgeMs: 0 };
    assert.deepEqual(await queue.depth(under.db, 2), none);
    assert.deepEqual((await queue.depth(under.db, 1)).depth, { urgent: 0, high: 0, normal: 1, low: 1 });
    const { depth: lanes } = await queue.figures(under.db);
    assert.deepEqual(lanes, { urgent: 0, high: 0, normal: 1, low: 1 });
    await until(async () => ((await queue.figures(under.db)).oldestAgeMs > 20 ? true : undefined));
    assert.ok((await queue.depth(under.db, 1)).oldestAgeMs > 20);
    assert.equal(await queue.hasReady(under.db), true);
    await claimIds(2);
    assert.equal(await queue.hasReady(under.db), false);
    assert.equal((await queue.figures(under.db)).oldestAgeMs, 0);
  });

  test(`${name}: a tenant's depth is counted one further than it was asked, in each lane`, async () => {
    const none = { urgent: 0, high: 0, normal: 0, low: 0 };
    await under.enqueue(["low", "low", "low", "low"]);
    await until(async () => ((await queue.depthOf(under.db, 1, 10)).oldestAgeMs > 20 ? true : undefined));
    await under.enqueue(["low", "low", "low", "normal"], { scheduledFor: "2099-01-01T00:00:00.000Z" });
    const { queued, scheduled } = await queue.depthOf(under.db, 1, 2);
    assert.deepEqual(
      [queued, scheduled],
      [
        { ...none, low: 3 },
        { ...none, low: 3, normal: 1 },
      ],
    );
    assert.deepEqual((await queue.depthOf(under.db, 1, 4)).queued, { ...none, low: 4 });
    assert.deepEqual((await queue.depthOf(under.db, 2, 4)).queued, none);
    await claimIds(4);
    const { processing, oldestAgeMs } = await queue.depthOf(under.db, 1, 4);
    assert.deepEqual([processing, oldestAgeMs], [{ ...none, low: 4 }, 0]);
  });

  test(`${name}: what waits for accounts that are not paused is brought back, the first accepted first, with nothing spent`, async () => {
    const ids = await under.enqueue(["normal", "normal", "normal", "normal"]);
    const claimed = await queue.claim(1, 4, LEASE_MS);
    const aside = { to: "pending", waitMs: HOUR_MS, spendsAttempt: false, waitsFor: ["smtp", "ses@7"] } as const;
    const [, , , last] = claimed;
    await queue.settle([
      settled(last as Attempt, { to: "pending", waitMs: HOUR_MS, spendsAttempt: false }),
      ...claimed
        .slice(0, 3)
        .reverse()
        .map((attempt) => settled(attempt, aside)),
    ]);
    assert.equal((await depth()).scheduled, 4);
    assert.deepEqual(await claimIds(10), []);
    assert.equal(await queue.bringBack(under.db, 2), 2);
    assert.equal(await queue.bringBack(under.db, 2), 1);
    assert.equal(await queue.bringBack(under.db, 2), 0, "what waits for its time goes on waiting");
    const back = await queue.claim(1, 10, LEASE_MS);
    assert.deepEqual(
      back.map(({ id, number }) => [id, number]),
      ids.slice(0, 3).map((id) => [id, 1]),
    );
  });

  test(`${name}: what waits can be cancelled, once, in its lane or for its time`, async () => {
    const [ready] = (await under.enqueue(["high"])) as [string];
    const [later] = (await under.enqueue(["low"], { scheduledFor: inMs(HOUR_MS) })) as [string];
    for (const id of [ready, later]) {
      assert.equal(await queue.cancel(under.db, 2, id), false, "another tenant's");
      assert.equal(await queue.cancel(under.db, 1, id), true);
      assert.equal(await queue.cancel(under.db, 1, id), false);
      assert.equal((await under.look(id)).status, "cancelled");
    }
    assert.equal(await queue.cancel(under.db, 1, UNKNOWN), false);
    assert.deepEqual(await claimIds(10), []);
    assert.equal((await depth()).scheduled, 0);
  });

  test(`${name}: many that wait are cancelled at once, and nobody is told of others'`, async () => {
    const ready = await under.enqueue(["high", "normal"]);
    const later = await under.enqueue(["low"], { scheduledFor: inMs(HOUR_MS) });
    const ids = [...ready, ...later];
    assert.deepEqual(await queue.cancelAll(under.db, 2, ids), [], "another tenant's");
    assert.deepEqual((await queue.cancelAll(under.db, 1, [...ids, UNKNOWN])).sort(), [...ids].sort());
    assert.deepEqual(await queue.cancelAll(under.db, 1, ids), []);
    for (const id of ids) assert.equal((await under.look(id)).status, "cancelled");
    assert.deepEqual(await claimIds(10), []);
  });

  test(`${name}: what is held cannot be cancelled; of a claim and a cancel that race one wins`, async () => {
    const ids = await under.enqueue(Array(60).fill("normal"));
    const [claimed, ...cancelled] = await Promise.all([
      claimIds(60),
      ...ids.map((id) => queue.cancel(under.db, 1, id)),
    ]);
    for (const [n, id] of ids.entries()) assert.notEqual(claimed.includes(id), cancelled[n], `${n}`);
    for (const id of claimed) assert.equal(await queue.cancel(under.db, 1, id), false);
    const more = await under.enqueue(Array(60).fill("normal"));
    const [taken, gone] = await Promise.all([claimIds(60), queue.cancelAll(under.db, 1, more)]);
    assert.deepEqual([...taken, ...gone].sort(), [...more].sort());
  });

  test(`${name}: what waits is moved to another time and lane, and keeps its attempts`, async () => {
    const [id] = (await under.enqueue(["low"])) as [string];
    const [first] = await queue.claim(1, 1, LEASE_MS);
    await queue.settle([settled(first as Attempt, { to: "pending", waitMs: HOUR_MS, spendsAttempt: true })]);
    const dueAt = inMs(2 * HOUR_MS);
    assert.deepEqual(await queue.move(under.db, 1, id, { dueAt, expiresAt: "2099-01-01T00:00:00.000Z" }), {
      kind: "done",
      status: "pending",
      priority: "low",
      dueAt: new Date(dueAt),
      expiresAt: new Date("2099-01-01T00:00:00.000Z"),
    });
    assert.equal((await queue.move(under.db, 1, id, { dueAt: inMs(-1), rank: rankOf.urgent })).kind, "done");
    assert.deepEqual((await depth()).depth, { urgent: 1, high: 0, normal: 0, low: 0 });
    const [again] = await queue.claim(1, 1, LEASE_MS);
    assert.deepEqual([again?.id, again?.rank, again?.number], [id, 0, 2]);
    assert.equal(again?.expiresAtMs, Date.parse("2099-01-01T00:00:00.000Z"));
  });

  test(`${name}: what is held, over or unknown is not moved, nor beyond its own expiry`, async () => {
    const [id] = (await under.enqueue(["normal"])) as [string];
    assert.equal((await queue.move(under.db, 1, id, { expiresAt: inMs(-1_000) })).kind, "refused");
    assert.deepEqual(await queue.move(under.db, 1, UNKNOWN, { rank: 0 }), { kind: "unknown" });
    const [attempt] = await queue.claim(1, 1, LEASE_MS);
    assert.deepEqual(await queue.move(under.db, 1, id, { rank: 0 }), { kind: "over", status: "processing" });
    await queue.settle([settled(attempt as Attempt, SENT)]);
    assert.deepEqual(await queue.move(under.db, 1, id, { rank: 0 }), { kind: "over", status: "sent" });
  });

  test(`${name}: what ended badly is brought back once, with a fresh budget; what was sent is left alone`, async () => {
    const [failed, sent, waits] = (await under.enqueue(["normal", "normal", "normal"])) as [string, string, string];
    const [one, other] = (await queue.claim(1, 2, LEASE_MS)) as [Attempt, Attempt];
    await queue.settle([settled(one, { to: "failed" }, "rejected"), settled(other, SENT)]);
    assert.deepEqual(await queue.retry(under.db, 2, [failed]), [], "another tenant's");
    const races = await Promise.all([1, 2, 3].map(() => queue.retry(under.db, 1, [failed, sent, waits, UNKNOWN])));
    assert.deepEqual(races.flat(), [failed]);
    assert.equal((await under.look(failed)).status, "queued");
    assert.deepEqual(
      (await queue.claim(1, 10, LEASE_MS)).map(({ id, number }) => [id, number]),
      [
        [failed, 1],
        [waits, 1],
      ],
    );
  });

  test(`${name}: what waited past its expiry is ended, so many at a time, and nothing else`, async () => {
    const [held] = (await under.enqueue(["urgent"])) as [string];
    await movedSoon(held, () => ({ expiresAt: inMs(200) }));
    assert.deepEqual(await claimIds(1), [held]);
    const ids = await under.enqueue(["normal", "low"]);
    for (const id of ids) await movedSoon(id, () => ({ expiresAt: inMs(200) }));
    ids.push(...(await under.enqueue(["normal"], { scheduledFor: inMs(HOUR_MS) })));
    await movedSoon(ids[2] as string, () => ({ dueAt: inMs(100), expiresAt: inMs(200) }));
    const [stays] = (await under.enqueue(["normal"], { expiresAt: inMs(HOUR_MS) })) as [string];
    const counts: number[] = [];
    await until(async () => {
      counts.push(await queue.expire(under.db, 2));
      return counts.reduce((sum, n) => sum + n) === 3 ? true : undefined;
    });
    for (const id of ids) assert.equal((await under.look(id)).status, "expired");
    assert.equal((await under.look(held)).status, "processing");
    assert.deepEqual(await claimIds(10), [stays]);
  });

  test(`${name}: of what was accepted together, each that waited past its expiry is ended, and the others wait on`, async () => {
    const expiresAt = inMs(1_500);
    const late = await under.enqueue(Array(7).fill("normal"), { expiresAt });
    const others = await under.enqueue(["normal", "normal"], { expiresAt: inMs(HOUR_MS) });
    let ended = 0;
    await until(async () => {
      ended += await queue.expire(under.db, 3);
      return ended === late.length ? true : undefined;
    });
    for (const id of late) assert.equal((await under.look(id)).status, "expired");
    assert.equal(await queue.expire(under.db, 10), 0);
    assert.deepEqual(await claimIds(10), others);
  });

  test(`${name}: of what is paused nothing is claimed by anybody, until it is resumed; then in its order`, async () => {
    const [high] = await under.enqueue(["high"]);
    const lows = await under.enqueue(["low", "low", "low"]);
    const [held] = (await queue.claim(1, 1, LEASE_MS, { ranks: [3] })) as [Attempt];
    const low = { kind: "lane", name: "low" } as const;
    await queue.pause(under.db, low, { reason: "the printer is out of paper" });
    await queue.pause(under.db, low, { reason: "again" });
    assert.equal((await under.another.claim(2, 10, LEASE_MS, { ranks: [rankOf.low] })).length, 0);
    assert.deepEqual(await claimIds(10), [high]);
    assert.deepEqual(
      await queue.settle([{ attempt: held, settlement: { to: "queued" } }]),
      [true],
      "what is held goes on",
    );
    assert.equal((await depth()).depth.low, 3);
    assert.equal(await queue.resume(under.db, low), true);
    assert.equal(await queue.resume(under.db, low), false);
    assert.deepEqual(
      (await under.another.claim(2, 10, LEASE_MS)).map(({ id }) => id),
      lows,
    );
  });

  test(`${name}: it says when the next is due, and whether something is; what is paused is neither`, async () => {
    const idle = await queue.nextDue();
    assert.deepEqual([idle.hasDue, idle.inMs], [false, undefined]);
    await under.enqueue(["low"], { scheduledFor: inMs(HOUR_MS) });
    const [soon] = (await under.enqueue(["normal"], { scheduledFor: inMs(HOUR_MS) })) as [string];
    await movedSoon(soon, () => ({ dueAt: inMs(100) }), "pending");
    await until(async () => ((await queue.nextDue()).hasDue ? true : undefined));
    const { inMs: leftMs = 0, nowMs } = await queue.nextDue();
    assert.ok(leftMs > HOUR_MS - 60_000 && leftMs <= HOUR_MS);
    assert.ok(Math.abs(nowMs - Date.now()) < 60_000);
    for (const name of ["normal", "low"] as const)
      await queue.pause(under.db, { kind: "lane", name }, { reason: "for a while" });
    const paused = await queue.nextDue();
    assert.deepEqual([paused.hasDue, paused.inMs], [false, undefined]);
  });

  test(`${name}: that it was postponed is noted once, and only while the lease is held`, async () => {
    const [id, lost] = (await under.enqueue(["normal", "normal"])) as [string, string];
    const [attempt] = (await queue.claim(1, 1, LEASE_MS)) as [Attempt];
    const [stale] = (await queue.claim(1, 1, 0)) as [Attempt];
    await queue.sweep(2, 10, LEASE_MS);
    const postponed = { kind: "postponed", waitMs: 100, reason: "the limit" } as const;
    for (let n = 0; n < 2; n++) {
      await queue.notePostponed(1, [
        { attempt: stale, postponed },
        { attempt, postponed },
      ]);
    }
    assert.equal(await under.postponements(id), 1);
    assert.equal(await under.postponements(lost), 0);
    for (let n = 0; n < 2; n++) await queue.notePostponed(1, [{ attempt, postponed: { ...postponed, silentMs: 0 } }]);
    await queue.notePostponed(1, [{ attempt, postponed }]);
    assert.equal(await under.postponements(id), 2, "that nobody answers is another matter");
    assert.equal((await under.look(id)).status, "processing");
  });
}
