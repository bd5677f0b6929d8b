// A whole Carillon whose ready work waits in SQS, on each server that speaks like it.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import pg from "pg";
import { migrate } from "#store/connection/migrate.ts";
import { createCarillon } from "../../src/index.ts";
import { freshDatabase } from "../support/postgres.ts";
import { NO_ELASTICMQ, startElasticMQ } from "../support/servers/elasticmq.ts";
import { SQS_KEYS, startSqs } from "../support/servers/sqs.ts";
import { startService } from "../support/service.ts";
import { openQueues, REGION } from "../support/sqs-engine.ts";
import { until } from "../support/until.ts";

const [fauxqs, elasticmq] = await Promise.all([startSqs(), startElasticMQ()]);
after(() => Promise.all([fauxqs.stop(), elasticmq?.stop()]));

for (const [name, server] of Object.entries({ fauxqs, elasticmq })) {
  const words = `${name}: what is accepted goes by SQS, each is sent once, and the queues are empty in the end`;
  test(words, { skip: server ? false : NO_ELASTICMQ }, async (t) => {
    assert.ok(server);
    const service = await startService({
      roles: ["api", "worker", "scheduler", "keeper"],
      // Whoever is not woken finds nothing for long.
      pollMs: { urgent: 60_000, high: 60_000, normal: 60_000, low: 60_000 },
      sqs: { endpoint: server.endpoint, region: REGION, prefix: "service", credentials: SQS_KEYS },
    });
    t.after(() => service.stop());
    const moved = await service.ask("POST", "/v1/queue/migration", { to: "sqs", strategy: "live-forward" });
    assert.ok(moved.status < 300, JSON.stringify(moved.body));
    let accepted = 0;
    for (const priority of ["normal", "urgent", "low"]) {
      const one = { channel: "console", content: { body: "b" }, priority };
      const { body } = await service.ask("POST", "/v1/notifications/batch", { notifications: Array(120).fill(one) });
      accepted += body.summary.succeeded;
    }
    assert.equal(accepted, 360);
    const counted = () =>
      service.db.query<{ sent: number; bySqs: number }>(
        `select count(*) filter (where r.status = 'sent')::integer as sent,
           (select count(*)::integer from carillon.events where engine = 'sqs') as "bySqs" from carillon.records r`,
      );
    const { bySqs } = await until(async () => {
      const { rows } = await counted();
      return rows[0]?.sent === accepted ? rows[0] : undefined;
    });
    assert.equal(bySqs, accepted, "each attempt says where it came from");
    const { counts, close } = openQueues(server.endpoint, "service");
    t.after(close);
    for (const rank of [0, 2, 3]) {
      await until(async () => {
        const { visible, held } = await counts(rank);
        return visible + held === 0 ? true : undefined;
      });
    }
  });
}

test("a library that is closed has offered what it accepted, and noted that", async (t) => {
  const database = await freshDatabase();
  await migrate(database.url);
  const db = new pg.Client({ connectionString: database.url });
  await db.connect();
  t.after(async () => {
    await db.end();
    await database.drop();
  });
  await db.query("select carillon.queue_choose('sqs')");
  const { counts, queues, close } = openQueues(fauxqs.endpoint, "library");
  t.after(close);
  await queues.check();
  const { keys } = SQS_KEYS as { keys: { accessKeyId: string; secretAccessKey: string } };
  const variables = {
    CARILLON_SQS_ENDPOINT: fauxqs.endpoint,
    CARILLON_SQS_PREFIX: "library",
    CARILLON_SQS_ACCESS_KEY_ID: keys.accessKeyId,
    CARILLON_SQS_SECRET_ACCESS_KEY: keys.secretAccessKey,
  };
  Object.assign(process.env, variables);
  t.after(() => {
    for (const name of Object.keys(variables)) delete process.env[name];
  });
  const carillon = createCarillon({ databaseUrl: database.url });
  await carillon.send({ channel: "console", content: { body: "b" } });
  await carillon.close();
  assert.deepEqual(await counts(2), { visible: 1, held: 0 });
  const { rows } = await db.query("select offered_at is not null as is_offered from carillon.handoffs");
  assert.deepEqual(rows, [{ is_offered: true }]);
});
