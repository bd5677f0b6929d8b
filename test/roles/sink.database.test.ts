// A sink's loop: it rests where there is nothing, waits longer and longer where the other side is away, says so, and says when it goes on.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Registry } from "prom-client";
import { startSink } from "#roles/sink.ts";
import type { Sink } from "#sinks/sink.ts";
import type { SinkRound } from "#steps/brokers/feed-sink.ts";
import { ensureConnector, listConnectors, noteConnectorFailure } from "#store/connectors.ts";
import { ConnectorFacts, createConnectorMetrics } from "#telemetry/connector-facts.ts";
import { createLog } from "#telemetry/log.ts";
import { feed } from "#wiring/sinks.ts";
import { accept, type FeedDatabase, feedDatabase, makeId } from "../support/feed.ts";
import { scriptedSink } from "../support/scripted-sink.ts";
import { until } from "../support/until.ts";

const BUS = { kind: "sink", name: "bus" } as const;
const LONG_MS = 60_000;
const IDLE: SinkRound = { kind: "idle", carried: 0, refused: [] };

function loopOver(rounds: (() => SinkRound | Promise<SinkRound>)[]) {
  const said: string[] = [];
  const at: number[] = [];
  let resigned = 0;
  const running = startSink({
    feeder: {
      async round() {
        at.push(performance.now());
        return (rounds.shift() ?? (() => IDLE))();
      },
      async resign() {
        resigned += 1;
      },
    },
    onCarried: ({ carried }) => void (carried > 0 && said.push(`carried ${carried}`)),
    onFailure: async (error) => void said.push(`failed: ${(error as Error).message}`),
    onGoing: async () => void said.push("going"),
    random: () => 0,
  });
  return { running, said, at, resigned: () => resigned };
}

const fail = (why: string) => () => {
  throw new Error(why);
};

test("after a failure it waits longer and longer, and once a round succeeds it says so, once", async () => {
  const rounds = [fail("a"), fail("b"), fail("c"), () => IDLE, () => ({ ...IDLE, carried: 2 })];
  const { running, said, at, resigned } = loopOver(rounds);
  await until(async () => (at.length > 6 ? true : undefined), LONG_MS);
  await running.stop();
  assert.deepEqual(said, ["failed: a", "failed: b", "failed: c", "going", "carried 2"]);
  const waits = [1, 2, 3].map((n) => (at[n] ?? 0) - (at[n - 1] ?? 0));
  for (const [n, least] of [250, 500, 1_000].entries()) assert.ok((waits[n] ?? 0) > least - 5, `${waits}`);
  assert.equal(resigned(), 1, "nobody waits for its lease");
});

test("of a sink that is paused, or that another process has, nobody says that it goes on", async () => {
  const rounds: (() => SinkRound)[] = [fail("a"), () => ({ kind: "paused" }), () => ({ kind: "taken" }), () => IDLE];
  const { running, said, at } = loopOver(rounds);
  await until(async () => (at.length >= 3 ? true : undefined), LONG_MS);
  assert.deepEqual(said, ["failed: a"]);
  await until(async () => (said.length > 1 ? true : undefined), LONG_MS);
  await running.stop();
  assert.deepEqual(said, ["failed: a", "going"]);
});

test("stopping ends a delivery under way, which is no failure, and resigns", async (t) => {
  const { feeding, db, sink } = await startFeeding(t);
  sink.answer(
    (_facts, signal) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true })),
  );
  await accept(db, [makeId()]);
  await until(async () => (sink.pages.length > 0 ? true : undefined), LONG_MS);
  await feeding.stop();
  const [row] = await listConnectors(db, "sink");
  assert.deepEqual([row?.isRun, row?.error, row?.carried], [false, null, 0]);
});

async function startFeeding(t: TestContext) {
  const database: FeedDatabase = await feedDatabase(t);
  const { db } = database;
  await ensureConnector(db, BUS, "scripted");
  const sink = scriptedSink();
  const registry = new Registry();
  const facts = new ConnectorFacts(createLog("silent"), createConnectorMetrics(registry), BUS);
  const feedWith = (to: Sink, holder: string) =>
    feed({ pool: db, name: "bus", sink: to, types: undefined, holder, monotonic: () => performance.now() }, facts);
  const feeding = feedWith(sink, "one");
  t.after(() => feeding.stop());
  const figure = async (name: string) =>
    ((await registry.getSingleMetric(name)?.get())?.values ?? []).reduce((sum, { value }) => sum + value, 0);
  return { db, sink, feeding, feedWith, figure };
}

const row = async (db: FeedDatabase["db"]) => (await listConnectors(db, "sink"))[0];

test("why a sink does not go on is kept with since when, without passwords, until it does; nothing is lost, and all of it is counted", async (t) => {
  const { db, sink, figure } = await startFeeding(t);
  sink.answer(async () => {
    throw new Error("cannot send", { cause: new Error("connect amqp://user:hush@broker:5672 refused") });
  });
  const all = [makeId(), makeId()];
  await accept(db, all);
  const failing = await until(async () => {
    const found = await row(db);
    return found?.error ? found : undefined;
  }, LONG_MS);
  assert.equal(failing.error, "connect amqp://broker:5672 refused");
  assert.ok(failing.failedAt);
  assert.ok((await figure("connectors_failures_total")) >= 1);
  sink.answer(async (facts) => facts.slice(0, 1).map((told) => ({ told, error: "never" })));
  const going = await until(async () => {
    const found = await row(db);
    return found && found.carried + found.refused === 2 ? found : undefined;
  }, LONG_MS);
  assert.deepEqual([going.error, going.failedAt], [null, null]);
  await until(async () => ((await figure("connectors_carried_total")) === going.carried ? true : undefined), LONG_MS);
  assert.equal(await figure("connectors_refused_total"), going.refused);
  assert.deepEqual(new Set(sink.pages.flat().map(({ fact }) => fact.notificationId)), new Set(all));
});

test("what another process said of its failure is taken back by whoever goes on, also while there is nothing to tell", async (t) => {
  const { db, feeding, feedWith } = await startFeeding(t);
  await feeding.stop();
  await noteConnectorFailure(db, BUS, "its network was away");
  const next = feedWith(scriptedSink(), "two");
  t.after(() => next.stop());
  await until(async () => ((await row(db))?.error === null ? true : undefined), LONG_MS);
});
