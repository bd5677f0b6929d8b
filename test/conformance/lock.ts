// What every lock must do. An adapter's test file calls this with a way to open locks as different processes would.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Hold, Lock } from "#guards/lock/lock.ts";
import { until } from "../support/until.ts";

export type LocksUnderTest = {
  /** A lock of its own for each, as in a process of that name. */
  open(identity: string): Lock;
  /** One whose other side does not answer. */
  openBroken(): Lock;
  stop(): Promise<void>;
};

const LONG_MS = 30_000;

/** `shortMs` is the shortest time that the adapter can hold a lock for. */
export function lockConformance(name: string, shortMs: number, setUp: () => Promise<LocksUnderTest>): void {
  let under: LocksUnderTest;
  let ann: Lock;
  let bob: Lock;
  before(async () => {
    under = await setUp();
    ann = under.open("ann");
    bob = under.open("bob");
  });
  after(async () => {
    await Promise.all([ann.close(), bob.close()]);
    await under.stop();
  });

  const acquired = async (lock: Lock, key: string, ttlMs = LONG_MS): Promise<Hold> => {
    const answer = await lock.acquire(key, ttlMs);
    assert.equal(answer.kind, "acquired", JSON.stringify(answer));
    return answer as Hold;
  };
  /** Tries until it is free. */
  const waited = (lock: Lock, key: string) =>
    until(async () => {
      const answer = await lock.acquire(key, LONG_MS);
      return answer.kind === "acquired" ? answer : undefined;
    });

  test(`${name}: one holds it, the other is told who and for how long`, async () => {
    const key = randomUUID();
    const askedAt = performance.now();
    const hold = await acquired(ann, key);
    assert.equal(hold.key, key);
    assert.ok(hold.endsAt >= askedAt + LONG_MS && hold.endsAt <= performance.now() + LONG_MS);
    const answer = await bob.acquire(key, LONG_MS);
    assert.ok(answer.kind === "held");
    assert.equal(answer.by, "ann");
    assert.ok(answer.expiresInMs > 0 && answer.expiresInMs <= LONG_MS, String(answer.expiresInMs));
    await ann.release(hold);
  });

  test(`${name}: a lock is not re-entrant`, async () => {
    const key = randomUUID();
    const hold = await acquired(ann, key);
    assert.equal((await ann.acquire(key, LONG_MS)).kind, "held");
    assert.deepEqual(await ann.release(hold), { kind: "released" });
  });

  test(`${name}: released, it is free at once, and each holder's token is greater than the last one's`, async () => {
    const key = randomUUID();
    const tokens: number[] = [];
    for (const lock of [ann, bob, ann, ann, bob]) {
      const hold = await acquired(lock, key);
      tokens.push(hold.token);
      assert.deepEqual(await lock.release(hold), { kind: "released" });
    }
    assert.deepEqual(
      tokens,
      [...new Set(tokens)].sort((a, b) => a - b),
    );
  });

  test(`${name}: not renewed, it passes to another when its time is over and not before; its holder is told`, async () => {
    const key = randomUUID();
    const askedAt = performance.now();
    const stale = await acquired(ann, key, shortMs);
    const hold = await waited(bob, key);
    assert.ok(performance.now() - askedAt >= shortMs, "it was taken over too early");
    assert.ok(performance.now() >= stale.endsAt, "the first holder no longer believed in it");
    assert.ok(hold.token > stale.token);
    assert.deepEqual(await ann.renew(stale, LONG_MS), { kind: "lost" });
    assert.deepEqual(await ann.release(stale), { kind: "lost" });
    const seen = await ann.holder(key);
    assert.ok(seen.kind === "held" && seen.by === "bob", "the stale holder changed nothing");
    await bob.release(hold);
  });

  test(`${name}: renewed, it stays with its holder beyond its time, under the same token`, async () => {
    const { hold, renewed } = await until(async () => {
      const hold = await acquired(ann, randomUUID(), shortMs);
      const renewed = await ann.renew(hold, LONG_MS);
      if (renewed.kind === "renewed") return { hold, renewed };
      // The machine may keep us from renewing in time; then it is lost rightly.
      assert.ok(performance.now() > hold.endsAt, JSON.stringify(renewed));
      return undefined;
    });
    assert.ok(renewed.endsAt > performance.now());
    do assert.equal((await bob.acquire(hold.key, LONG_MS)).kind, "held");
    while (performance.now() < hold.endsAt + shortMs);
    assert.equal((await ann.renew(hold, LONG_MS)).kind, "renewed");
    assert.deepEqual(await ann.release(hold), { kind: "released" });
  });

  test(`${name}: what was released cannot be renewed or released again`, async () => {
    const hold = await acquired(ann, randomUUID());
    assert.deepEqual(await ann.release(hold), { kind: "released" });
    assert.deepEqual(await ann.release(hold), { kind: "lost" });
    assert.deepEqual(await ann.renew(hold, LONG_MS), { kind: "lost" });
    assert.deepEqual(await ann.holder(hold.key), { kind: "free" });
  });

  test(`${name}: of many who ask at once, one gets it`, async () => {
    const key = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) => (n % 2 ? ann : bob).acquire(key, LONG_MS).then((answer) => ({ n, answer }))),
    );
    const winners = answers.filter(({ answer }) => answer.kind === "acquired");
    assert.equal(winners.length, 1);
    assert.equal(answers.filter(({ answer }) => answer.kind === "held").length, 29);
    const [{ n, answer } = { n: 0, answer: undefined }] = winners;
    await (n % 2 ? ann : bob).release(answer as Hold);
  });

  test(`${name}: keys that look alike are different locks`, async () => {
    const end = randomUUID();
    const long = "x".repeat(300);
    const keys = ["a", "A", "a/", "a_", "ä", "a--b", "a-b", `${long}1`, `${long}2`, "-", "."].map((key) => key + end);
    const holds = await Promise.all(keys.map((key) => acquired(ann, key)));
    assert.equal((await bob.acquire(keys[0] ?? "", LONG_MS)).kind, "held");
    await Promise.all(holds.map((hold) => ann.release(hold)));
  });

  test(`${name}: an other side that does not answer is a value, not a throw`, async () => {
    const broken = under.openBroken();
    const hold: Hold = { kind: "acquired", key: "k", token: 1, endsAt: performance.now() + LONG_MS };
    const answer = await broken.acquire("k", LONG_MS);
    assert.ok(answer.kind === "unavailable");
    assert.equal(answer.reason, "unreachable");
    assert.equal((await broken.holder("k")).kind, "unavailable");
    // Without the other side it cannot be known, or is known to be none of ours.
    assert.notEqual((await broken.renew(hold, LONG_MS)).kind, "renewed");
    assert.notEqual((await broken.release(hold)).kind, "released");
    await broken.close();
  });
}
