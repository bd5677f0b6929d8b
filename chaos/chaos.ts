// One run: a real PostgreSQL, real processes behind proxies, senders, faults, a drain, and then the history.

import { randomBytes } from "node:crypto";
import { createReadStream, existsSync, rmSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { OWN_RETRY } from "#domain/retry-policy.ts";
import { migrate } from "#store/connection/migrate.ts";
import { seeded } from "../test/support/load.ts";
import { controllableServer } from "../test/support/postgres.ts";
import { openSlot, type Slot } from "./fleet.ts";
import type { Fault, History, LogLine, ProviderCall, Send, Settings } from "./history.ts";
import { countWaiting, installJournal, keepCommitTimes, readTables, setWeight } from "./journal.ts";
import { MUTATED, type Mutant } from "./mutations.ts";
import { startNemesis } from "./nemesis.ts";
import { startProducer } from "./producer.ts";

export type ChaosOptions = {
  seed: number;
  seconds: number;
  workers: number;
  mutant?: Mutant;
  callsPerSecond?: number;
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
const LEASE_MS = 2_000;
const SWEEP_MS = 500;
const POLL_MS = 200;
const SEND_TIMEOUT_MS = 1_000;
const MAX_ATTEMPTS = 8;
const MAX_BACKOFF_MS = 400;
/** As the worker has it. */
const MARGIN_MS = LEASE_MS / 4;
/** A short run deals the whole deck; a long one deals it every so often. */
const LONGEST_DECK_MS = 24_000;
const START_MS = 180_000;
const STOP_MS = 15_000;
/** Beyond lease, sweep and retries: for a slow machine. */
const DRAIN_SLACK_MS = 10_000;

export async function runChaos(options: ChaosOptions): Promise<Ran> {
  const { seed, seconds, workers, mutant, callsPerSecond = 40, say = () => undefined } = options;
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
    retry: { ...OWN_RETRY, maxAttempts: MAX_ATTEMPTS },
    mutant,
  };
  try {
    await mkdir(join(evidence, "home"));
    const server = await controllableServer();
    undo.push(server.remove);
    await keepCommitTimes(server.url);
    await server.stop("fast");
    await server.start();
    await migrate(server.url);
    await installJournal(server.url);

    const fleet = await openFleet({ evidence, url: server.url, seed, workers, mutant, onFault });
    undo.push(fleet.close);
    await fleet.start();
    say(`${workers} workers and an api run; ${seconds} s of faults begin`);

    const tenants = await Promise.all(
      TENANTS.map(async ({ name, flood }) => ({ name, flood, apiKey: await keyFor(name, fleet) })),
    );
    await Promise.all(TENANTS.map(({ name, weight }) => setWeight(server.url, name, weight)));
    const producer = startProducer({
      url: fleet.api.url,
      tenants,
      shaping: seeded(seed + 1),
      random: seeded(seed + 2),
      callsPerSecond,
      maxBackoffMs: MAX_BACKOFF_MS,
    });
    undo.push(() => void producer.stop());
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
    });
    await sleep(seconds * 1000);
    await nemesis.stop();
    await fleet.api.up(START_MS);
    const quietAt = Date.now();
    say("the faults are over; a polite stop under load, then draining");
    await stopPolitely(fleet.workers, onFault);
    await producer.stop();
    const drainBoundMs =
      LEASE_MS + 4 * SWEEP_MS + MAX_ATTEMPTS * (SEND_TIMEOUT_MS + MAX_BACKOFF_MS + POLL_MS) + DRAIN_SLACK_MS;
    const drainedAt = await drain(server.url, quietAt + drainBoundMs);
    await producer.readLedgers();
    await Promise.all(
      [...fleet.workers, fleet.api].map(async (slot) => {
        if (!(await slot.stop(STOP_MS))) onFault({ kind: "did not stop", at: Date.now(), slot: slot.name });
      }),
    );

    const tables = await readTables(server.url);
    const { promised, cancelled, ledgers, counts } = producer;
    const [sends, calls] = [await readLines<Send>(fleet.sendsPath), await readLines<ProviderCall>(fleet.callsPath)];
    const logs = await readLogs(fleet.workers);
    const history: History = {
      ...{ settings, promised, cancelled, ledgers, ...tables, sends, calls, logs },
      ...{ faults: faults.sort((a, b) => a.at - b.at), quietAt, drainedAt, drainBoundMs },
    };
    await writeFile(join(evidence, "history.json"), JSON.stringify(history));
    return { history, evidence, counts, remove: () => rm(evidence, { recursive: true, force: true }) };
  } catch (cause) {
    throw new Error(`the run broke off; what there is of evidence is in ${evidence}`, { cause });
  } finally {
    for (let step = undo.pop(); step; step = undo.pop()) await step();
  }
}

type Keys = { apiKey: string; api: Slot };

/** The first key of a tenant makes it. */
async function keyFor(name: string, { api, apiKey }: Keys): Promise<string> {
  const answer = await fetch(`${api.url()}/v1/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "chaos", tenant: name, scopes: ["send", "read"] }),
  });
  if (answer.status !== 201) throw new Error(`no key for ${name}: ${answer.status}`);
  return ((await answer.json()) as { key: string }).key;
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
    if ((await countWaiting(url).catch(() => 1)) === 0) return Date.now();
    await sleep(50);
  }
  return undefined;
}

type FleetOptions = {
  evidence: string;
  url: string;
  seed: number;
  workers: number;
  mutant: Mutant | undefined;
  onFault: (fault: Fault) => void;
};

async function openFleet({ evidence, url, seed, workers, mutant, onFault }: FleetOptions) {
  const apiKey = randomBytes(16).toString("hex");
  const callsPath = join(evidence, "calls.jsonl");
  const sendsPath = join(evidence, "sends.jsonl");
  const [, password = "", directory = ""] = /:([^:@]+)@.*host=([^&]+)/.exec(url) ?? [];
  const shared = {
    directory: evidence,
    target: join(decodeURIComponent(directory), ".s.PGSQL.5432"),
    databaseUrl: (port: number) => `postgresql://carillon:${password}@127.0.0.1:${port}/carillon`,
    onFault,
  };
  const delivery = {
    CARILLON_API_KEY: apiKey,
    CARILLON_ROLES: "worker,scheduler,keeper",
    CARILLON_CONFIG: join(import.meta.dirname, "worker-config.ts"),
    CARILLON_LEASE_MS: String(LEASE_MS),
    CARILLON_SWEEP_MS: String(SWEEP_MS),
    CARILLON_POLL_MS: String(POLL_MS),
    CARILLON_SEND_TIMEOUT_MS: String(SEND_TIMEOUT_MS),
    CARILLON_MAX_ATTEMPTS: String(MAX_ATTEMPTS),
    // Few at once, so that a claim of many leaves some waiting for their turn on a lease that runs.
    CARILLON_CONCURRENCY: "6",
    CARILLON_BATCH_SIZE: "100",
    CARILLON_DATABASE_CONNECTIONS: "4",
    CARILLON_DRAIN_MS: "3000",
    CHAOS_CALLS: callsPath,
    CHAOS_SENDS: sendsPath,
    ...(mutant && { CHAOS_MUTANT: mutant }),
  };
  const nodeOptions = mutant ? ["--import", join(import.meta.dirname, "mutate.ts")] : [];
  const slots = await Promise.all(
    Array.from({ length: workers }, (_, index) =>
      openSlot({
        ...shared,
        name: `worker-${index + 1}`,
        nodeOptions,
        ...(mutant && { mustSay: MUTATED }),
        env: (incarnation) => ({ ...delivery, CHAOS_SEED: String(seed * 1_000 + index * 100 + incarnation) }),
      }),
    ),
  );
  const api = await openSlot({
    ...shared,
    name: "api",
    nodeOptions: [],
    env: () => ({ CARILLON_API_KEY: apiKey, CARILLON_ROLES: "api", CARILLON_DATABASE_CONNECTIONS: "4" }),
  });
  const all = [...slots, api];
  return {
    apiKey,
    callsPath,
    sendsPath,
    workers: slots,
    api,
    async start() {
      for (const slot of all) slot.start();
      await Promise.all(all.map((slot) => slot.up(START_MS)));
    },
    async close() {
      for (const slot of all) slot.kill();
      await Promise.all(all.map(({ proxy }) => proxy.close()));
    },
  };
}

/** Every line that is JSON; a trace on standard error is not. */
async function readLines<Line>(path: string): Promise<Line[]> {
  const lines: Line[] = [];
  if (!existsSync(path)) return lines;
  for await (const text of createInterface({ input: createReadStream(path) })) {
    if (text.startsWith('{"')) lines.push(JSON.parse(text) as Line);
  }
  return lines;
}

type PinoLine = {
  level: string;
  time: string;
  msg?: string;
  err?: { message: string };
  notificationId?: string;
  attempt?: number;
};

async function readLogs(slots: Slot[]): Promise<LogLine[]> {
  const logs: LogLine[] = [];
  for (const { name: slot, logs: files } of slots) {
    for (const { pid, path } of files()) {
      const lines = await readLines<PinoLine>(path);
      for (const { level, time, msg: message = "", err, notificationId: id, attempt } of lines) {
        const about = { ...(err && { error: err.message }), ...(id && { id }), ...(attempt && { attempt }) };
        logs.push({ slot, pid, at: Date.parse(time), level, message, ...about });
      }
    }
  }
  return logs;
}
