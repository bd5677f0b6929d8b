// A source without a broker does what every source must; and with the real keeper, on a database whose connections break, each message is accepted once.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import type { Keeping } from "#sources/source.ts";
import { sourceConformance } from "../conformance/source.ts";
import { flakyPool } from "../support/flaky-pool.ts";
import { acceptedBodies, keeperOn, request } from "../support/keeping.ts";
import { scriptedTopic } from "../support/scripted-source.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

sourceConformance("scripted", { create: async (partitions) => scriptedTopic("scripted", partitions) });

/** Each connection breaks at some statement, before it is sent or after its answer. */
function breaking(pool: pg.Pool): pg.Pool {
  let n = 0;
  const next = () => {
    n += 1;
    return flakyPool(pool, { at: 1 + (n % 11), when: n % 2 === 0 ? "before" : "after" }).pool;
  };
  return {
    connect: () => next().connect(),
    query: pool.query.bind(pool),
  } as unknown as pg.Pool;
}

test("two that read the same on connections that break accept each message once", async () => {
  const topic = scriptedTopic("breaking", 2);
  const count = 200;
  for (let n = 0; n < count; n++) await topic.write(n % 2, [n % 10 === 9 ? "poison" : JSON.stringify(request(n))]);
  const keeper = await keeperOn(breaking(service.db), "breaking");
  let failures = 0;
  const keeping: Keeping = {
    offsets: (name) => keeper.offsets(name),
    read: (batch) => keeper.read(batch),
    untold: () => keeper.untold(),
    told: (refusals) => keeper.told(refusals),
    missed: (what) => assert.fail(what),
    failed() {
      failures += 1;
    },
  };
  const both = [await topic.open(keeping), await topic.open(keeping)];
  try {
    const good = Array.from({ length: count }, (_, n) => n).filter((n) => n % 10 !== 9);
    await until(async () => {
      const offsets = await keeper.offsets("breaking").catch(() => new Map());
      return offsets.get(0) === count / 2 && offsets.get(1) === count / 2 ? true : undefined;
    }, 120_000);
    const accepted = (await acceptedBodies(service.db)).map((body) => Number(body.split(" ")[1]));
    assert.deepEqual(
      accepted.sort((a, b) => a - b),
      good,
    );
    assert.ok(failures > 0, "connections did break");
    const { rows } = await service.db.query(
      "select carried::int, refused::int from carillon.connectors where name = 'breaking'",
    );
    assert.deepEqual(rows[0], { carried: good.length, refused: count - good.length });
  } finally {
    for (const source of both) await source.stop();
  }
});
