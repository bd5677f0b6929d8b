// carillon sources …, carillon sinks … and carillon refusals

import assert from "node:assert/strict";
import { test } from "node:test";
import { CarillonError, createClient } from "#client/client.ts";
import { findFeedEnd } from "#record/feed-places.ts";
import { startFollower } from "#record/followers.ts";
import { ensureConnector, keepRefusals, noteConnectorFailure } from "#store/connectors.ts";
import { commandLine, toldBy } from "../support/command-line.ts";
import { email, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const settings = {
  sources: { orders: { type: "kafka", brokers: ["127.0.0.1:1"], topic: "orders" } },
  sinks: { bus: { type: "rabbitmq", url: "amqp://127.0.0.1:1" } },
} as const;

test("the command line shows sources and sinks and what they refused, pauses and resumes them, and sends a sink back", async (t) => {
  const service = await startService(settings as never);
  t.after(() => service.stop());
  const run = toldBy(commandLine(service));
  const { db } = service;
  assert.equal(await run("sources"), "orders  kafka  idle  0 carried, 0 refused");
  await db.query(
    "insert into carillon.source_offsets (source, topic, partition, next, ends) values ('orders', 'o', 0, 3, 5)",
  );
  assert.equal(await run("sources"), "orders  kafka  idle  0 carried, 0 refused  2 waiting\n  o 0: next 3, 2 waiting");
  assert.equal(await run("sinks"), "bus  rabbitmq  idle  0 carried, 0 refused  up to date");
  assert.match(await run("sinks", "pause", "bus"), /--reason/);
  assert.equal(await run("sinks", "pause", "bus", "--reason", "a release"), "bus is paused");
  assert.match(await run("sinks"), /paused since 20\S+: a release/);
  assert.equal(await run("sinks", "resume", "bus"), "bus goes on: idle");
  assert.equal(await run("sources", "pause", "orders", "--reason", "a release"), "orders is paused");
  assert.equal(await run("sources", "resume", "orders"), "orders goes on: idle");
  await ensureConnector(db, { kind: "sink", name: "gone" }, "kafka");
  await noteConnectorFailure(db, { kind: "sink", name: "gone" }, "nobody is there");
  assert.match(await run("sinks"), /gone {2}kafka {2}failing since 20\S+: nobody is there {2}.*not configured here$/);

  assert.equal((await service.ask("POST", "/v1/notifications", email())).status, 202);
  const end = await until(async () => {
    const position = await findFeedEnd(db);
    return position.key > 0 ? position : undefined;
  });
  await startFollower(db, "sink bus", end);
  assert.match(await run("sinks", "replay", "bus"), /--since/);
  assert.match(await run("sinks", "replay", "bus", "--since", "2020-01-01T00:00:00Z"), /^bus is told again from \d/);
  assert.match(await run("sinks", "replay", "bus", "--since", "2099-01-01T00:00:00Z"), /has not come as far/);

  assert.equal(await run("refusals"), "");
  const refusal = {
    place: "o/0/7",
    code: "VALIDATION_FAILED",
    faults: [{ path: "/channel", message: "must be there" }],
  };
  await keepRefusals(db, { kind: "source", name: "orders" }, [refusal, { ...refusal, place: "o/0/8", tenant: 1 }]);
  assert.match(
    await run("refusals"),
    /^20\S+ {2}source orders {2}default {2}o\/0\/8 {2}VALIDATION_FAILED {2}\/channel must be there\n20\S+ {2}source orders {2}- {2}o\/0\/7/,
  );
  assert.equal((await run("refusals", "--count", "1", "--kind", "source", "--name", "orders")).split("\n").length, 1);
  assert.equal(await run("refusals", "--kind", "sink"), "");
  assert.match(await run("refusals", "--kind", "other"), /--kind must be one of source, sink, not other/);
  await assert.rejects(run("sinks", "pause", "nobody", "--reason", "r"), /NOT_FOUND/);
  assert.match(await run("sinks", "pause"), /sinks pause needs NAME/);
  assert.match(await run("sources", "replay", "orders"), /sources takes no argument replay orders/);
  assert.match(await run("sinks", "bus"), /sinks takes no argument bus/);
  assert.match(await run("refusals", "x"), /refusals takes no argument x/);

  await assert.rejects(run("sinks", "forget", "bus"), /SINK_IN_USE/);
  await ensureConnector(db, { kind: "sink", name: "left" }, "kafka");
  assert.equal(await run("sinks", "forget", "left"), "left is forgotten");

  const client = createClient({ url: service.url, key: service.key });
  assert.deepEqual(
    (await client.sinks.list()).data.map(({ name, state }) => [name, state]),
    [
      ["bus", "idle"],
      ["gone", "failing"],
    ],
  );
  assert.equal((await client.sources.pause("orders", "r")).state, "paused");
  assert.equal((await client.refusals.list({ limit: 1 })).data.length, 1);
  await db.query("update carillon.epochs set forgotten_at = carillon.now()");
  await assert.rejects(
    client.sinks.replay("bus", "2020-01-01T00:00:00Z"),
    (error: unknown) => error instanceof CarillonError && error.code === "RESET" && error.status === 410,
  );
});
