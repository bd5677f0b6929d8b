// What one tenant has to be told, however much it is, holds up nobody else's callbacks, and fills nobody's memory.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createIds } from "#domain/ids.ts";
import { type CallerWorld, makeCallbacks, type Round } from "#steps/calls/make-callbacks.ts";
import { readEndpointKeys } from "#store/secrets.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const MANY = 5_000;

let service: Service;
let world: CallerWorld;
let apart: number[] = [];
before(async () => {
  service = await startService({ roles: ["api"] });
  const secretKeys = await readEndpointKeys(service.db, []);
  const facts = {
    refused: assert.fail,
    missed: assert.fail,
    followedApart: (tenant: number) => void apart.push(tenant),
  };
  world = { pool: service.db, newId: createIds(), retentionDays: 30, secretKeys, facts };
});
after(() => service.stop());
beforeEach(() => {
  apart = [];
});

const newId = createIds();
async function tenantNamed(name: string): Promise<number> {
  const { rows } = await service.db.query("insert into carillon.tenants (name) values ($1) returning id", [name]);
  return rows[0].id;
}
/** Accepted `secondsAgo`, each of which asks to be told of that. */
async function accept(tenant: number, count: number, secondsAgo: number, metadata: unknown = {}): Promise<void> {
  for (let left = count; left > 0; left -= 500) {
    const rows = Array.from({ length: Math.min(500, left) }, () => ({
      i: newId(),
      t: tenant,
      c: "console",
      p: 2,
      r: {
        channel: "console",
        content: {},
        metadata,
        callbackUrl: "https://example.com/",
        callbackEvents: ["accepted"],
      },
    }));
    await service.db.query("select from carillon.accept_calling($1, false, null, false)", [JSON.stringify(rows)]);
  }
  await service.db.query("update carillon.feed set at = at - $2 * interval '1 s' where tenants[1] = $1", [
    tenant,
    secondsAgo,
  ]);
}
/** Others on the same server may have transactions open, which hold up whoever follows. */
const tellable = () =>
  until(async () => {
    const { rows } = await service.db.query(
      "select max(key) < pg_snapshot_xmin(pg_current_snapshot())::text::bigint as is from carillon.feed",
    );
    return rows[0].is ? true : undefined;
  }, 60_000);
const countOf = async (tenant: number): Promise<number> => {
  const { rows } = await service.db.query(
    "select count(*)::int as n, count(distinct request -> 'callback' ->> 'webhookId')::int as ids from carillon.notifications where tenant = $1",
    [-tenant],
  );
  assert.equal(rows[0].n, rows[0].ids, "each once");
  return rows[0].n;
};
const round = async (): Promise<Round> => (await makeCallbacks(world)) ?? assert.fail("somebody else is at it");
const toTheEnd = (tenant: number, count: number) =>
  until(async () => ((await round()).isAtEnd && (await countOf(tenant)) >= count ? true : undefined), 60_000);

test("a tenant with more callbacks than can be made is followed apart, and another's wait for a page of them at most", async () => {
  const [heavy, small] = [await tenantNamed("heavy"), await tenantNamed("small")];
  await accept(heavy, MANY, 60);
  await accept(small, 1, 50);
  await tellable();
  for (let n = 0; n < 3; n++) await round();
  assert.equal(await countOf(small), 1);
  assert.ok((await countOf(heavy)) < MANY);
  assert.deepEqual(apart, [heavy]);

  await toTheEnd(heavy, MANY);
  assert.equal(await countOf(heavy), MANY);
  const { rows } = await service.db.query("select name from carillon.followers");
  assert.deepEqual(rows, [{ name: "callbacks" }], "it has caught up");
  await accept(heavy, 1, 0);
  await toTheEnd(heavy, MANY + 1);
  assert.equal(await countOf(heavy), MANY + 1);
});

test("of several that are followed apart each has its turn", async () => {
  const tenants = [await tenantNamed("first"), await tenantNamed("second"), await tenantNamed("third")];
  for (const tenant of tenants) await accept(tenant, MANY, 60);
  await tellable();
  await until(async () => {
    await round();
    return apart.length >= 3 ? true : undefined;
  });
  const before = await Promise.all(tenants.map(countOf));
  for (let n = 0; n < 3; n++) await round();
  for (const [n, tenant] of tenants.entries())
    assert.ok((await countOf(tenant)) > (before[n] as number), `${n} had a turn`);
  for (const tenant of tenants) await toTheEnd(tenant, MANY);
});

test("of large requests fewer are told at once, and all in the end", async () => {
  const tenant = await tenantNamed("large");
  await accept(tenant, 150, 0, { text: "x".repeat(200_000) });
  await tellable();
  const { made } = await round();
  assert.ok(made < 120, `${made} of 200 kB each were made at once`);
  await toTheEnd(tenant, 150);
  assert.equal(await countOf(tenant), 150);
});
