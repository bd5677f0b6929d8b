// What every queue engine must do about turns: lanes first, within a lane tenants by weight, within a tenant first in, first out.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../support/until.ts";
import { LEASE_MS, type useHarness } from "./queue-harness.ts";

const many = (count: number) => Array<"normal">(count).fill("normal");
const soon = () => ({ scheduledFor: new Date(Date.now() + 300).toISOString() });
const count = <One>(all: readonly One[], one: One) => all.filter((other) => other === one).length;

export function turnsConformance(
  name: string,
  { queue, under, depth }: ReturnType<typeof useHarness>,
  ordered: typeof test.skip,
): void {
  let made = 0;
  const tenant = (weight?: number) => under.tenant(`turns-${++made}`, weight);
  const claim = (size: number) => queue.claim(1, size, LEASE_MS);
  const claimTenants = async (size: number) => (await claim(size)).map((attempt) => attempt.tenant);

  ordered(
    `${name}: tenants of a lane take turns, and each has its own first in, first out, whatever the channel`,
    async () => {
      const [a, b] = [await tenant(), await tenant()];
      const ofA: string[] = [];
      for (let n = 0; n < 40; n++) {
        const more = n % 3 === 0 ? { channel: "file" } : {};
        ofA.push(...(await under.enqueue(["normal"], more, a)));
      }
      const ofB = await under.enqueue(many(5), {}, b);
      const attempts = await claim(20);
      assert.deepEqual(
        attempts.slice(0, 10).map((attempt) => attempt.tenant),
        [a, b, a, b, a, b, a, b, a, b],
      );
      const idsOf = (owner: number) => attempts.filter((attempt) => attempt.tenant === owner).map(({ id }) => id);
      assert.deepEqual(idsOf(b), ofB);
      assert.deepEqual(idsOf(a), ofA.slice(0, 15), "what others leave goes to who has more");
      assert.deepEqual(
        (await claim(100)).map(({ id }) => id),
        ofA.slice(15),
      );
    },
  );

  ordered(`${name}: turns are as long as the tenant's weight, in one claim and over many small ones`, async () => {
    const [a, b] = [await tenant(3), await tenant()];
    for (const owner of [a, b]) await under.enqueue(many(60), {}, owner);
    assert.deepEqual(await claimTenants(8), [a, a, a, b, a, a, a, b]);
    const small: number[] = [];
    for (let n = 0; n < 20; n++) small.push(...(await claimTenants(1)));
    assert.deepEqual([count(small, a), count(small, b)], [15, 5]);
  });

  ordered(`${name}: with more tenants than a claim has room for, the next claim goes on with the next`, async () => {
    const owners: number[] = [];
    for (let n = 0; n < 7; n++) owners.push(await tenant());
    for (const owner of owners) await under.enqueue(many(4), {}, owner);
    const claimed: number[] = [];
    for (let n = 0; n < 7; n++) claimed.push(...(await claimTenants(2)));
    for (const owner of owners) assert.equal(count(claimed, owner), 2);
  });

  test(`${name}: a higher lane goes first whoever has how much of it`, async () => {
    const [a, b] = [await tenant(), await tenant()];
    await under.enqueue(Array(5).fill("high"), {}, a);
    await under.enqueue(many(5), {}, b);
    assert.deepEqual(await claimTenants(7), [a, a, a, a, a, b, b]);
  });

  test(`${name}: what a higher lane leaves of a claim goes to the first of a tenant, whatever the channel`, async () => {
    const a = await tenant();
    const [urgent] = await under.enqueue(["urgent"], {}, a);
    const [first] = await under.enqueue(["normal"], { channel: "file" }, a);
    const rest = await under.enqueue(many(3), {}, a);
    assert.deepEqual(
      (await claim(3)).map(({ id }) => id),
      [urgent, first, rest[0]],
    );
    assert.deepEqual(
      (await claim(3)).map(({ id }) => id),
      rest.slice(1),
    );
  });

  test(`${name}: what becomes due at one instant has its tenant's turns and no more`, async () => {
    const [a, b, c] = [await tenant(), await tenant(), await tenant()];
    await under.enqueue(many(300), soon(), a);
    const dueB = await under.enqueue(many(2), soon(), b);
    const cameB = await under.enqueue(many(2), {}, b);
    await under.enqueue(many(3), {}, c);
    await until(async () => ((await depth()).scheduled === 0 ? true : undefined));
    const attempts = await claim(30);
    const tenants = attempts.map((attempt) => attempt.tenant);
    assert.deepEqual(tenants.slice(0, 9), [a, b, c, a, b, c, a, b, c]);
    assert.deepEqual([count(tenants, a), count(tenants, b), count(tenants, c)], [23, 4, 3]);
    assert.deepEqual(
      attempts.filter((attempt) => attempt.tenant === b).map(({ id }) => id),
      [...dueB, ...cameB],
      "within a tenant what waited for its time goes first",
    );
  });

  test(`${name}: a claim that is shorter than asked has left nothing behind`, async () => {
    const owners: number[] = [];
    for (let n = 0; n < 12; n++) owners.push(await tenant());
    for (const [n, owner] of owners.entries()) {
      for (const channel of ["console", "file"]) await under.enqueue(many(1 + n * n), { channel }, owner);
    }
    const total = 2 * owners.reduce((sum, _, n) => sum + 1 + n * n, 0);
    let claimed = 0;
    for (const size of [200, 1, 400, 33]) {
      const { length } = await claim(size);
      assert.equal(length, size);
      claimed += length;
    }
    assert.equal((await claim(1_000)).length, total - claimed);
    assert.equal((await claim(1_000)).length, 0);
  });
}
