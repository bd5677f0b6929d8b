// What every queue engine must do. An engine's test file calls this with a way to set one up; how the engine keeps what waits is its own
// affair, and nothing here looks at it.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt } from "#domain/attempt.ts";
import { PRIORITIES, type Priority } from "#domain/priority.ts";
import { until } from "../support/until.ts";
import { LEASE_MS, type QueueHarness, SENT, settled, useHarness } from "./queue-harness.ts";
import { leaseConformance } from "./queue-leases.ts";
import { takesConformance } from "./queue-takes.ts";
import { turnsConformance } from "./queue-turns.ts";
import { waitingConformance } from "./queue-waiting.ts";

/** `hasOrder: false` is of an engine that knows no order but that of lanes: neither turns nor first in, first out. */
export function queueConformance(name: string, setUp: () => Promise<QueueHarness>, { hasOrder = true } = {}): void {
  const use = useHarness(setUp);
  const ordered: typeof test.skip = hasOrder ? test : async () => undefined;
  claimConformance(name, use, ordered);
  leaseConformance(name, use);
  waitingConformance(name, use);
  turnsConformance(name, use, ordered);
  takesConformance(name, use);
}

function claimConformance(
  name: string,
  { queue, under, depth, claimIds }: ReturnType<typeof useHarness>,
  ordered: typeof test.skip,
): void {
  test(`${name}: a claim takes urgent before high before normal before low`, async () => {
    const [low, normal, high, urgent] = await under.enqueue(["low", "normal", "high", "urgent"]);
    assert.deepEqual(await claimIds(3), [urgent, high, normal]);
    assert.deepEqual(await claimIds(3), [low]);
    assert.deepEqual(await claimIds(3), []);
  });

  ordered(`${name}: within a lane it is first in, first out, over many claims`, async () => {
    const ids = await under.enqueue(Array(100).fill("normal"));
    const claimed: string[] = [];
    for (let n = 0; n < 10; n++) claimed.push(...(await claimIds(10)));
    assert.deepEqual(claimed, ids);
  });

  test(`${name}: a large claim keeps the order, and each of it is settled as itself`, async () => {
    const ids = await under.enqueue(Array(350).fill("normal"));
    const attempts = await queue.claim(1, 350, LEASE_MS);
    assert.deepEqual(
      attempts.map(({ id }) => id),
      ids,
    );
    const chosen = attempts.filter((_, n) => n % 50 === 49);
    assert.ok((await queue.settle(chosen.map((attempt) => settled(attempt, SENT)))).every(Boolean));
    for (const [n, id] of ids.entries()) {
      if (n % 50 > 47) assert.equal((await under.look(id)).status, n % 50 === 49 ? "sent" : "processing", `${n}`);
    }
    assert.equal((await depth()).processing, 343);
  });

  test(`${name}: a claim may look at some lanes only`, async () => {
    const [urgent, low] = await under.enqueue(["urgent", "low"]);
    const some = await queue.claim(1, 10, LEASE_MS, { ranks: [2, 3] });
    assert.deepEqual(
      some.map(({ id }) => id),
      [low],
    );
    assert.deepEqual(await claimIds(10), [urgent]);
  });

  test(`${name}: an attempt carries what is needed to deliver it`, async () => {
    const [id] = await under.enqueue(["high"], { expiresAt: "2099-01-01T00:00:00.000Z", recipient: { userId: "u" } });
    const before = performance.now();
    const [attempt] = await queue.claim(7, 1, LEASE_MS);
    assert.ok(attempt);
    assert.deepEqual([attempt.id, attempt.rank, attempt.number, attempt.tenant], [id, 1, 1, 1]);
    assert.deepEqual(attempt.request.recipient, { userId: "u" });
    assert.equal(attempt.expiresAtMs, Date.parse("2099-01-01T00:00:00.000Z"));
    assert.ok(Math.abs(attempt.lease.claimedAtMs - Date.now()) < 60_000);
    assert.ok(attempt.lease.endsAt >= before + LEASE_MS && attempt.lease.endsAt <= performance.now() + LEASE_MS);
    assert.equal((await under.look(id as string)).status, "processing");
  });

  test(`${name}: racing claims share out everything, each to one`, async () => {
    const ids = await under.enqueue(Array.from({ length: 400 }, (_, n) => PRIORITIES[n % 4] as Priority));
    const claims = await Promise.all(
      Array.from({ length: 8 }, async (_, worker) => {
        const mine: string[] = [];
        for (let got = [""]; got.length > 0; mine.push(...got))
          got = (await queue.claim(worker, 25, LEASE_MS)).map(({ id }) => id);
        return mine;
      }),
    );
    assert.deepEqual(claims.flat().sort(), [...ids].sort());
  });

  test(`${name}: what is acknowledged is over, with its record`, async () => {
    const ids = await under.enqueue(["normal", "normal", "normal", "normal"]);
    const attempts = await queue.claim(1, 4, LEASE_MS);
    const endings = ["sent", "failed", "ambiguous", "expired"] as const;
    const answers = await queue.settle(
      attempts.map((attempt, n) => settled(attempt, { to: endings[n] ?? "sent" }, `o${n}`)),
    );
    assert.deepEqual(answers, [true, true, true, true]);
    for (const [n, id] of ids.entries()) {
      assert.deepEqual(await under.look(id), { status: endings[n], outcomes: [`o${n}`], attempts: [1] });
    }
    assert.deepEqual(await depth(), {
      depth: { urgent: 0, high: 0, normal: 0, low: 0 },
      processing: 0,
      scheduled: 0,
    });
  });

  test(`${name}: what is postponed waits, and comes back with its attempt spent or given back`, async () => {
    const [spent, given] = (await under.enqueue(["low", "low"])) as [string, string];
    const attempts = await queue.claim(1, 2, LEASE_MS);
    const waits = attempts.map((attempt, n) =>
      settled(attempt, { to: "pending", waitMs: 0, spendsAttempt: n === 0 }, "unavailable"),
    );
    assert.deepEqual(await queue.settle(waits), [true, true]);
    const again = await queue.claim(1, 10, LEASE_MS);
    assert.deepEqual(
      again.map(({ id, number }) => [id, number]),
      [
        [spent, 2],
        [given, 1],
      ],
    );
  });

  test(`${name}: what waited for its time goes before what came, in the order of those times, within its lane`, async () => {
    const now = Date.now();
    const soon = (ms: number) => ({ scheduledFor: new Date(now + ms).toISOString() });
    const [later] = await under.enqueue(["normal"], soon(1_600));
    const [sooner] = await under.enqueue(["normal"], soon(1_500));
    const [low] = await under.enqueue(["low"], soon(1_500));
    const [far] = (await under.enqueue(["urgent"], soon(3_600_000))) as [string];
    assert.deepEqual(await depth(), {
      depth: { urgent: 0, high: 0, normal: 0, low: 0 },
      processing: 0,
      scheduled: 4,
    });
    const [came] = await under.enqueue(["normal"]);
    await until(async () => ((await depth()).scheduled === 1 ? true : undefined));
    assert.deepEqual((await depth()).depth, { urgent: 0, high: 0, normal: 3, low: 1 });
    assert.equal((await under.look(later as string)).status, "queued");
    assert.equal((await under.look(far)).status, "pending");
    const [high] = await under.enqueue(["high"]);
    assert.deepEqual(await claimIds(3), [high, sooner, later]);
    assert.deepEqual(await claimIds(3), [came, low]);
    assert.equal((await depth()).scheduled, 1);
  });

  test(`${name}: claims that race for what is due get each of it once`, async () => {
    const scheduledFor = new Date(Date.now() + 200).toISOString();
    const ids = await under.enqueue(Array(1000).fill("normal"), { scheduledFor });
    await until(async () => ((await depth()).depth.normal === 1000 ? true : undefined));
    const claimed = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const mine: string[] = [];
        for (let some = await claimIds(37); some.length > 0; some = await claimIds(37)) mine.push(...some);
        return mine;
      }),
    );
    assert.deepEqual(claimed.flat().sort(), ids.toSorted());
    assert.equal((await depth()).processing, 1000);
  });

  test(`${name}: what waits for long does not come back early`, async () => {
    const [id] = (await under.enqueue(["low"])) as [string];
    const [attempt] = await queue.claim(1, 1, LEASE_MS);
    assert.ok(attempt);
    await queue.settle([settled(attempt, { to: "pending", waitMs: 60_000, spendsAttempt: true })]);
    assert.equal((await under.look(id)).status, "pending");
    assert.deepEqual(await queue.claim(1, 1, LEASE_MS), []);
    assert.equal((await depth()).scheduled, 1);
  });

  test(`${name}: what is handed back is at the head of its lane again, as if never claimed`, async () => {
    const [first, second] = (await under.enqueue(["normal", "normal"])) as [string, string];
    const [attempt] = await queue.claim(1, 1, LEASE_MS);
    assert.ok(attempt);
    assert.deepEqual(await queue.settle([{ attempt, settlement: { to: "queued" } }]), [true]);
    assert.deepEqual(await under.look(first), { status: "queued", outcomes: [], attempts: [] });
    const again = await queue.claim(1, 2, LEASE_MS);
    assert.deepEqual(
      again.map(({ id, number }) => [id, number]),
      [
        [first, 1],
        [second, 1],
      ],
    );
  });

  test(`${name}: of a claim each is settled by itself, in any order, once`, async () => {
    const lanes = Array.from({ length: 40 }, (_, n) => PRIORITIES[(n * 7) % 4] as Priority);
    const ids = await under.enqueue(lanes);
    const attempts = await queue.claim(1, 40, LEASE_MS);
    const odd = attempts.filter((_, n) => n % 2 === 1).reverse();
    const [again] = odd as [Attempt];
    assert.deepEqual(
      await queue.settle([...odd, again].map((attempt) => settled(attempt, SENT, attempt.id))),
      [...odd.map(() => true), false],
      "what is said twice counts once",
    );
    for (const id of ids) {
      const isSent = odd.some((attempt) => attempt.id === id);
      assert.deepEqual(await under.look(id), {
        status: isSent ? "sent" : "processing",
        outcomes: isSent ? [id] : [],
        attempts: isSent ? [1] : [],
      });
    }
    assert.equal((await depth()).processing, 20);
    const [first, ...rest] = attempts.filter((_, n) => n % 2 === 0) as [Attempt, ...Attempt[]];
    await queue.settle([{ attempt: first, settlement: { to: "queued" } }]);
    assert.deepEqual(await claimIds(40), [first.id], "what is handed back is the one that was");
    const races = await Promise.all(
      rest.flatMap((attempt) => [attempt, attempt].map((a) => queue.settle([settled(a, SENT)]))),
    );
    assert.equal(races.flat().filter(Boolean).length, rest.length, "of two racing settlements of one, one counts");
    assert.equal((await depth()).processing, 1);
  });
}
