// One run: a real PostgreSQL, real processes behind proxies, senders, faults, a drain, and then the history.

import { rmSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { OWN_RETRY } from "#domain/retry-policy.ts";
import { migrate } from "#store/connection/migrate.ts";
import { seeded } from "../test/support/load.ts";
import { controllableServer } from "../test/support/postgres.ts";
import { startBystanders } from "./bystanders.ts";
import type { EngineServer } from "./engine.ts";
import { readLines, readLogs } from "./evidence.ts";
import { DRAIN_MS, LEASE_MS, MAX_ATTEMPTS, openFleet, POLL_MS, SEND_TIMEOUT_MS, START_MS, SWEEP_MS } from "./fleet.ts";
import { type Following, startFollowers } from "./followers.ts";
import type { Fault, History, ProviderCall, Send, Settings } from "./history.ts";
import { writeHistory } from "./history-file.ts";
import {
  chooseEngine,
  countWaiting,
  installJournal,
  isTallied,
  prepareServer,
  readTables,
  setWeight,
  withClient,
} from "./journal.ts";
import { isInDatabase, MUTATIONS, type Mutant, mutateRoutine } from "./mutations.ts";
import { startNemesis } from "./nemesis.ts";
import { startProducer } from "./producer.ts";
import { startReceivers } from "./receivers.ts";
import { openRedisServer } from "./redis.ts";
import { watchLocks } from "./rolled-back.ts";
import type { Slot } from "./slot.ts";
import { openSqsServer } from "./sqs.ts";

const OPEN: { [engine in Settings["engine"]]?: () => Promise<EngineServer> } = {
  redis: openRedisServer,
  sqs: openSqsServer,
};

export type ChaosOptions = {
  seed: number;
  seconds: number;
  workers: number;
  mutant?: Mutant;
  callsPerSecond?: number;
  engine?: Settings["engine"];
  say?: (line: string) => void;
};

export type Ran = {
  history: History;
  /** Everything that the history was read from. */
  evidence: string;
  counts: { calls: number; lostAnswers: number; replays: number };
  remove(): Promise<void>;
};

/** The one who floods most has no more turns than the one who floods least; the other has two for each of theirs. */
const TENANTS = [
  { name: "ada", weight: 1, flood: 200 },
  { name: "bela", weight: 2, flood: 80 },
  { name: "cleo", weight: 1, flood: 10 },
];
const MAX_BACKOFF_MS = 400;
/** As the worker has it. */
const MARGIN_MS = LEASE_MS / 4;
/** A short run deals the whole deck; a long one deals it every so often. */
const LONGEST_DECK_MS = 24_000;
const STOP_MS = 60_000;
/** Beyond lease, sweep and retries: for a slow machine. */
const DRAIN_SLACK_MS = 60_000;
/** Until followers have been told what there was. */
const FOLLOWED_MS = 60_000;
/** Until what happened has been counted. */
const COUNTED_MS = 60_000;
/** Until everybody has been called back; on a busy machine they lag behind. */
const CALLED_MS = 90_000;
const ASK_MS = 30_000;

export async function runChaos(options: ChaosOptions): Promise<Ran> {
  const { seed, seconds, workers, mutant, callsPerSecond = 40, engine = "postgres", say = () => undefined } = options;
  const evidence = await mkdtemp(join(tmpdir(), "carillon-chaos-"));
  const removeAtExit = () => rmSync(evidence, { recursive: true, force: true });
  process.once("exit", removeAtExit);
  const undo: (() => unknown)[] = [() => process.off("exit", removeAtExit)];
  const faults: Fault[] = [];
  const onFault = (fault: Fault) => void faults.push(fault);
  const settings: Settings = {
    seed,
    seconds,
    workers,
    leaseMs: LEASE_MS,
    sweepMs: SWEEP_MS,
    marginMs: MARGIN_MS,
    sendTimeoutMs: SEND_TIMEOUT_MS,
    drainMs: DRAIN_MS,
    retry: { ...OWN_RETRY, maxAttempts: MAX_ATTEMPTS },
    engine,
    mutant,
  };
  try {
    await mkdir(join(evidence, "home"));
    const server = await controllableServer();
    undo.push(server.remove);
    await prepareServer(server.url);
    await server.stop("fast");
    await server.start();
    await migrate(server.url);
    if (mutant) await mutateDatabase(server.url, mutant);
    await installJournal(server.url);
    const beside = await OPEN[engine]?.();
    if (beside) undo.push(beside.stop);
    await chooseEngine(server.url, engine);

    const fleet = await openFleet({ evidence, url: server.url, seed, workers, mutant, engine: beside?.env, onFault });
    undo.push(fleet.close);
    await fleet.start();
    say(`${workers} workers and an api run; ${seconds} s of faults begin`);

    const locks = watchLocks(server.url);
    undo.push(() => locks.end().catch(() => undefined));
    const tenants = await Promise.all(
      TENANTS.map(async ({ name, flood }) => ({
        name,
        flood,
        apiKey: await keyFor(name, ["send", "read"], fleet),
        adminKey: await keyFor(name, ["admin"], fleet),
      })),
    );
    await Promise.all(TENANTS.map(({ name, weight }) => setWeight(server.url, name, weight)));
    const receivers = await startReceivers({
      apiUrl: fleet.api.url() ?? "",
      databaseUrl: server.url,
      tenants,
      random: seeded(seed + 8),
    });
    undo.push(receivers.stop);
    const given = (tenant: string) => ({
      maxBackoffMs: MAX_BACKOFF_MS,
      callbackUrl: receivers.callbackUrl(tenant),
    });
    const producer = startProducer({
      url: fleet.api.url,
      tenants,
      shaping: seeded(seed + 1),
      random: seeded(seed + 2),
      callsPerSecond,
      given,
    });
    undo.push(() => void producer.stop());
    const bystanders = startBystanders({
      url: server.url,
      tenants: TENANTS.map(({ name }) => name),
      shaping: seeded(seed + 5),
      random: seeded(seed + 6),
      given,
      onFault,
    });
    undo.push(() => bystanders.stop().catch(() => undefined));
    const followers = startFollowers({
      url: fleet.api.url,
      followings: followingsOf(tenants),
      random: seeded(seed + 7),
    });
    undo.push(followers.stop);
    const nemesis = startNemesis({
      dealing: seeded(seed + 3),
      random: seeded(seed + 4),
      workers: fleet.workers,
      api: fleet.api,
      server,
      leaseMs: LEASE_MS,
      marginMs: MARGIN_MS,
      deckMs: Math.min(LONGEST_DECK_MS, seconds * 1000),
      onFault,
      engine: beside,
      ask: (...asked) => askApi(fleet, ...asked),
    });
    await sleep(seconds * 1000);
    await nemesis.stop();
    await bystanders.stop();
    await fleet.api.up(START_MS);
    const quietAt = Date.now();
    say("the faults are over; a polite stop under load, then draining");
    await stopPolitely(fleet.workers, onFault);
    await producer.stop();
    const drainBoundMs =
      LEASE_MS + 4 * SWEEP_MS + MAX_ATTEMPTS * (SEND_TIMEOUT_MS + MAX_BACKOFF_MS + POLL_MS) + DRAIN_SLACK_MS;
    const drainedAt = await drain(server.url, quietAt + drainBoundMs);
    const feeds = await followers.finish(FOLLOWED_MS);
    await receivers.finish(CALLED_MS);
    await producer.readLedgers();
    for (const deadline = Date.now() + COUNTED_MS; Date.now() < deadline && !(await isTallied(server.url)); )
      await sleep(50);
    await Promise.all(
      [...fleet.workers, fleet.api].map(async (slot) => {
        if (!(await slot.stop(STOP_MS))) onFault({ kind: "did not stop", at: Date.now(), slot: slot.name });
      }),
    );

    const rolledBack = await locks.end();
    const tables = await readTables(server.url);
    const { cancelled, ledgers, counts } = producer;
    const promised = [...producer.promised, ...bystanders.promised];
    const [sends, calls] = [await readLines<Send>(fleet.sendsPath), await readLines<ProviderCall>(fleet.callsPath)];
    const logs = await readLogs(fleet.workers);
    const history: History = {
      ...{ settings, promised, cancelled, ledgers, ...tables, sends, calls, logs, feeds, readings: followers.readings },
      ...{ endpoints: receivers.endpoints, posts: receivers.posts },
      ...{ faults: faults.sort((a, b) => a.at - b.at), rolledBack, quietAt, drainedAt, drainBoundMs },
    };
    await writeHistory(join(evidence, "history.jsonl"), history);
    return { history, evidence, counts, remove: () => rm(evidence, { recursive: true, force: true }) };
  } catch (cause) {
    throw new Error(`the run broke off; what there is of evidence is in ${evidence}`, { cause });
  } finally {
    for (let step = undo.pop(); step; step = undo.pop()) await step();
  }
}

async function mutateDatabase(url: string, mutant: Mutant): Promise<void> {
  const mutation = MUTATIONS[mutant];
  if (!isInDatabase(mutation)) return;
  const migration = await readFile(join(import.meta.dirname, "..", mutation.file), "utf8");
  await withClient(url, (db) => db.query(mutateRoutine(mutation, migration)));
}

/** Everybody is followed by two, for all or for some of what happens. */
function followingsOf(tenants: readonly { name: string; apiKey: string }[]): Following[] {
  return tenants.flatMap(({ name: tenant, apiKey }, n): Following[] => {
    const types = n === 0 ? {} : { types: ["sent", "retrying", "expired", "failed"] };
    return [
      { name: `${tenant} by pages`, tenant, apiKey, kind: "poll", ...(n === 1 && types) },
      { name: `${tenant} by a stream`, tenant, apiKey, kind: "stream", ...(n === 2 && types) },
    ];
  });
}

type Keys = { apiKey: string; api: Slot };

/** As the administrator. */
async function askApi({ api, apiKey }: Keys, method: string, path: string, body?: object) {
  const answer = await fetch(`${api.url()}${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(ASK_MS),
  });
  return { status: answer.status, body: (await answer.json()) as { [name: string]: unknown } };
}

/** The first key of a tenant makes it. */
async function keyFor(name: string, scopes: string[], fleet: Keys): Promise<string> {
  const { status, body } = await askApi(fleet, "POST", "/v1/keys", { name: "chaos", tenant: name, scopes });
  if (status !== 201) throw new Error(`no key for ${name}: ${status}`);
  return body.key as string;
}

/** The way of every deployment: asked to stop while there is work. Nothing else goes wrong meanwhile. */
async function stopPolitely(workers: Slot[], onFault: (fault: Fault) => void): Promise<void> {
  await sleep(LEASE_MS / 2);
  const slot = workers.find((one) => one.pid() !== undefined);
  const pid = slot?.pid();
  if (!slot || pid === undefined) return;
  const at = Date.now();
  const isClean = await slot.stop(STOP_MS);
  onFault({ kind: isClean ? "stop worker" : "did not stop", at, until: Date.now(), slot: slot.name, pid });
  slot.start();
}

/** When nothing waits any more; undefined if that has not come by the deadline. */
async function drain(url: string, deadline: number): Promise<number | undefined> {
  while (Date.now() < deadline) {
    if ((await countWaiting(url, "notifications").catch(() => 1)) === 0) return Date.now();
    await sleep(50);
  }
  return undefined;
}
