// What every lock must do between real processes, with wall clocks that differ by up to 20 s.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { type LockChild, startLockChildren, type Where } from "../support/lock-children.ts";
import { until } from "../support/until.ts";

const SKEWS = [-10_000, 0, 10_000];
const LONG_MS = 30_000;
/** Shorter than the clocks differ, so that whoever believes them takes it for over; else as long as can be. */
const SKEWED_MS = 9_000;
/** How often each process takes each lock. */
const TIMES = 10;
const machineMs = () => Number(process.hrtime.bigint()) / 1e6;

/** `shortMs` is the shortest time that the adapter can hold a lock for. */
export function lockProcesses(
  name: string,
  shortMs: number,
  setUp: () => Promise<{ at: Where; stop(): Promise<void> }>,
): void {
  let at: Where;
  let stop: () => Promise<void>;
  before(async () => {
    ({ at, stop } = await setUp());
  });
  after(() => stop());

  const granted = async (child: LockChild, key: string, ttlMs: number) => {
    const { answer } = await child.acquire(key, ttlMs);
    assert.ok(answer.kind === "acquired", JSON.stringify(answer));
    return answer;
  };

  test(`${name}: of three processes that want ten locks at once, each lock has one winner`, async (t) => {
    const children = await startLockChildren(t, at, SKEWS);
    const keys = Array.from({ length: 10 }, () => randomUUID());
    const answers = await Promise.all(
      keys.flatMap((key) => children.map(async (child) => ({ key, child, ...(await child.acquire(key, LONG_MS)) }))),
    );
    assert.equal(answers.length, 30);
    for (const key of keys) {
      const kinds = answers.filter((one) => one.key === key).map(({ answer }) => answer.kind);
      assert.deepEqual(kinds.sort(), ["acquired", "held", "held"]);
    }
    const won = answers.filter(({ answer }) => answer.kind === "acquired");
    for (const { key, child } of won) assert.equal(await child.release(key), "released");
  });

  test(`${name}: however much three processes contend, no two hold a lock at once, and tokens only grow`, async (t) => {
    const children = await startLockChildren(t, at, SKEWS);
    const keys = Array.from({ length: 3 }, () => randomUUID());
    const spans = (await Promise.all(children.map((child) => child.churn(keys, TIMES)))).flat();
    for (const key of keys) {
      const held = spans.filter((span) => span.key === key).sort((a, b) => a.from - b.from);
      assert.equal(held.length, children.length * TIMES);
      for (const [n, next] of held.entries()) {
        const last = held[n - 1];
        if (!last) continue;
        assert.ok(next.from >= last.to, `two held it for ${last.to - next.from} ms`);
        assert.ok(next.token > last.token, `token ${next.token} after ${last.token}`);
      }
    }
  });

  test(`${name}: a killed holder's lock passes to one other, after it ran out and not before`, async (t) => {
    const [holder, ...others] = await startLockChildren(t, at, SKEWS);
    assert.ok(holder);
    const key = randomUUID();
    const { token } = await granted(holder, key, LONG_MS);
    const renewedAt = machineMs();
    assert.equal(await holder.renew(key, shortMs), "renewed");
    await holder.kill();
    const winner = await until(async () => {
      const answers = await Promise.all(others.map((child) => child.acquire(key, LONG_MS)));
      const won = answers.filter(({ answer }) => answer.kind === "acquired");
      assert.ok(won.length <= 1, "two took it over");
      return won[0];
    }, 60_000);
    assert.ok(winner.answer.kind === "acquired" && winner.answer.token > token);
    const tookMs = winner.at - renewedAt;
    assert.ok(tookMs >= shortMs, `taken over after ${tookMs} ms`);
  });

  test(`${name}: clocks that are 10 s fast or slow give nobody a lock that another renews`, async (t) => {
    const children = await startLockChildren(t, at, SKEWS);
    const keys = children.map(() => randomUUID());
    await Promise.all(children.map((child, n) => granted(child, keys[n] ?? "", SKEWED_MS)));
    for (let round = 0; round < 5; round++) {
      await Promise.all(
        children.flatMap((child, n) =>
          keys.map(async (key, k) => {
            if (n === k) return assert.equal(await child.renew(key, SKEWED_MS), "renewed");
            const { answer } = await child.acquire(key, LONG_MS);
            assert.equal(answer.kind, "held", `${child.identity} was given another's lock`);
          }),
        ),
      );
    }
  });
}
