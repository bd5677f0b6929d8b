// One run with brokers: real servers behind proxies, processes with a source and sinks, a writer, members that come and go, faults, a drain, and then what is
// there.

import { rmSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { migrate } from "#store/connection/migrate.ts";
import { seeded } from "../../test/support/load.ts";
import { controllableServer } from "../../test/support/postgres.ts";
import { until } from "../../test/support/until.ts";
import type { Fault } from "../history.ts";
import { arrivedInQueue, arrivedInTable, arrivedInTopic, makeQueue, readTopic } from "./arrivals.ts";
import { drain } from "./drain.ts";
import { openBrokerFleet } from "./fleet.ts";
import type { BrokerHistory } from "./history.ts";
import { startMembers } from "./members.ts";
import type { BrokerMutant } from "./mutations.ts";
import { FACTS, groupOf, PARTITIONS, topicsOf } from "./names.ts";
import { startNeighbour } from "./neighbour.ts";
import { startBrokerNemesis } from "./nemesis.ts";
import { readRecord } from "./record.ts";
import { openStage, type Stage } from "./stage.ts";
import { startWriter } from "./writer.ts";

export type BrokerOptions = {
  seed: number;
  seconds: number;
  processes: number;
  /** Each with a source and a group of its own. */
  topics: number;
  perSecond: number;
  mutant?: BrokerMutant;
  say?: (line: string) => void;
};

export type BrokerRan = { history: BrokerHistory; evidence: string; remove(): Promise<void> };

/** For a short run in which Kafka was away most of the time. */
const MEET_MS = 120_000;
const STOP_MS = 60_000;
const START_MS = 180_000;
/** Leases, sessions and waits of half a minute, one after another; and a slow machine. */
const DRAIN_MS = 240_000;
/** From here on there is time for more than to show every fault once. */
const LONG_RUN_SECONDS = 60;

/** Undefined where there is no Kafka or no RabbitMQ. */
export async function runBrokers(options: BrokerOptions): Promise<BrokerRan | undefined> {
  const evidence = await mkdtemp(join(tmpdir(), "carillon-chaos-brokers-"));
  const removeAtExit = () => rmSync(evidence, { recursive: true, force: true });
  process.once("exit", removeAtExit);
  const undo: (() => unknown)[] = [() => process.off("exit", removeAtExit)];
  try {
    await mkdir(join(evidence, "home"));
    const [stage, server] = await Promise.all([openStage(), controllableServer()]);
    undo.push(server.remove);
    const remove = () => rm(evidence, { recursive: true, force: true });
    if (!stage) return void (await remove());
    undo.push(stage.close);
    const history = await play(options, stage, server.url, evidence, undo);
    await writeFile(join(evidence, "history.json"), JSON.stringify(history));
    return { history, evidence, remove };
  } catch (cause) {
    throw new Error(`the run broke off; what there is of evidence is in ${evidence}`, { cause });
  } finally {
    for (let step = undo.pop(); step; step = undo.pop()) await step();
  }
}

async function play(
  { seed, seconds, processes, topics: count, perSecond, mutant, say = () => undefined }: BrokerOptions,
  stage: Stage,
  url: string,
  evidence: string,
  undo: (() => unknown)[],
): Promise<BrokerHistory> {
  const faults: Fault[] = [];
  const onFault = (fault: Fault) => void faults.push(fault);
  const topics = topicsOf(count);
  await migrate(url);
  for (const topic of [...topics, FACTS]) await stage.createTopic(topic, PARTITIONS);
  await makeQueue(stage.amqp, FACTS);
  const fleet = await openBrokerFleet({ evidence, url, stage, topics, processes, mutant, onFault });
  undo.push(fleet.close);
  await fleet.start(START_MS);
  say(`${processes} processes run; ${seconds} s of faults begin`);

  const { bootstrap } = stage;
  const writer = startWriter({ bootstrap, topics, partitions: PARTITIONS, random: seeded(seed), perSecond });
  undo.push(writer.stop);
  const neighbour = startNeighbour(url);
  undo.push(neighbour.stop);
  const members = startMembers({
    bootstrap,
    groups: new Map(topics.map((topic) => [topic, groupOf(topic)])),
    random: seeded(seed + 1),
  });
  undo.push(members.stop);
  const { slots } = fleet;
  const isLong = seconds >= LONG_RUN_SECONDS;
  const dealing = (deck: number) => seeded(seed + 3 + deck);
  const nemesis = startBrokerNemesis({
    ...{ slots, places: stage.places, random: seeded(seed + 2), dealing, isLong, onFault },
  });
  await sleep(seconds * 1000);
  await nemesis.stop();
  await until(async () => members.rebalances() > 0 || undefined, MEET_MS).catch(() => undefined);
  await members.stop();
  await writer.stop();
  await neighbour.stop();
  const quietAt = Date.now();
  say(`the faults are over: ${faults.length}, and ${members.rebalances()} rebalances; draining`);
  const { drainedAt, failing } = await drain(url, stage, topics, quietAt + DRAIN_MS);
  for (const slot of slots) {
    if (!(await slot.stop(STOP_MS))) onFault({ kind: "did not stop", at: Date.now(), slot: slot.name });
  }
  const written = (await Promise.all(topics.map((topic) => readTopic(bootstrap, topic)))).flat();
  const arrivals = await Promise.all([
    arrivedInQueue(stage.amqp, FACTS),
    arrivedInTopic(bootstrap, FACTS),
    ...(stage.clickhouse ? [arrivedInTable(stage.clickhouse.direct)] : []),
  ]);
  return {
    ...{ seed, seconds, mutant, sent: writer.sent },
    written: written.map(({ headers: _, ...message }) => message),
    ...(await readRecord(url)),
    ...{ arrivals, faults, rebalances: members.rebalances(), quietAt, drainedAt, failing },
  };
}
