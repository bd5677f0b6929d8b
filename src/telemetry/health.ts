// How this process and what it needs are, for whoever runs it.
//
// Anybody may ask, as often as they like: one look at a time, which all who ask meanwhile share. State: the looks under way, and
// when it was last tried to write.

import type { ConnectorState } from "#domain/connector.ts";
import { cut } from "#domain/text.ts";
import type { FeedStanding } from "#record/feed-standing.ts";
import type { Trouble } from "#store/archiving.ts";
import { ASTRAY_MS, type Clock } from "#store/connection/clock.ts";
import { isOutage, type Queryable } from "#store/connection/database.ts";
import { probeWrite, readMajorVersion } from "#store/connection/probe.ts";
import type { RedisStanding } from "#wire/redis.ts";
import type { ConnectorFigures } from "./connector-facts.ts";
import type { Standing } from "./siblings.ts";
import type { Stalls } from "./stalls.ts";

export type HealthOptions = {
  db: Queryable;
  clock: Pick<Clock, "aheadMs" | "movedMs">;
  isDevelopment: boolean;
  /** Whether anything in the queue may be claimed now. */
  hasReady: () => Promise<boolean>;
  /** Sends were refused a moment ago, for want of a database that stores them. */
  areSendsRefused: () => boolean;
  /** Where several processes serve behind one port. */
  standing?: (() => Standing) | undefined;
  /** What is paused, and what nobody takes. */
  stalls: () => Promise<Stalls>;
  /** What waits for an archive that is away; undefined where there is no archive. */
  archive?: (() => Promise<Trouble>) | undefined;
  /** Undefined where nothing is kept there. */
  redis?: (() => Promise<RedisStanding>) | undefined;
  /** How long ago that happened which callbacks tell next. */
  callbackLagMs: () => Promise<number>;
  /** What holds up those who follow, and who of them is behind. */
  feed: () => Promise<FeedStanding>;
  /** How sources and sinks stand; undefined where none is configured. */
  connectors?: (() => Promise<ConnectorFigures>) | undefined;
};

/** `degraded`: it works, and yet somebody should look. */
export type Finding = { name: string; healthy: boolean; degraded?: true; latencyMs: number; detail: string };

export type Health = {
  all(): Promise<Finding[]>;
  /** Why requests should go elsewhere; undefined when they should not. */
  whyNotReady(): Promise<string | undefined>;
};

/** `isMinor`: what it finds, or that it fails, is no reason to go elsewhere. */
type Look = { name: string; look: () => Promise<string | Degraded>; isMinor?: true };
type Degraded = { degraded: string };

const LOOK_MS = 2_000;
/** However often it is asked for, no more than one write in this time. */
const WRITE_MS = 1_000;

export function createHealth(options: HealthOptions): Health {
  const {
    db,
    clock,
    isDevelopment,
    hasReady,
    areSendsRefused,
    stalls,
    callbackLagMs,
    feed,
    connectors,
    standing,
    archive,
    redis,
  } = options;
  let wroteAt = Number.NEGATIVE_INFINITY;
  const database = shared("database", async () => `PostgreSQL ${await readMajorVersion(db)}`);
  const writes = shared("writes", async () => {
    // A full disk, a standby, a commit that waits for one: it answers, and stores nothing.
    if (areSendsRefused()) throw new Error("sends are refused");
    if (performance.now() - wroteAt > WRITE_MS) {
      await probeWrite(db);
      wroteAt = performance.now();
    }
    return "stores what is sent";
  });
  const queue = shared("queue", async () =>
    (await hasReady()) ? "postgres, notifications are waiting" : "postgres, empty",
  );
  // Healthy all the same: the database's clock decides, and nothing depends on this machine's.
  const clocks: Look = {
    ...shared("clock", async () => toldOfClock(clock.aheadMs(), clock.movedMs(), isDevelopment)),
    isMinor: true,
  };

  // A tenant that names a region which nobody serves must not take the service out.
  const workers: Look = { ...shared("workers", async () => wordsOf(await stalls())), isMinor: true };
  const callbacks: Look = { ...shared("callbacks", async () => toldOfLag(await callbackLagMs())), isMinor: true };
  const facts: Look = { ...shared("feed", async () => toldOfFeed(await feed())), isMinor: true };
  const brokers = connectors && [
    { ...shared("connectors", async () => toldOfConnectors(await connectors())), isMinor: true as const },
  ];
  const archives = archive && [
    { ...shared("archive", async () => toldOfArchive(await archive())), isMinor: true as const },
  ];
  // Acceptance goes on without it, and what is under no limit is sent.
  const limits = redis && [{ ...shared("redis", async () => toldOfRedis(await redis())), isMinor: true as const }];
  const processes = standing && [shared("processes", async () => toldOfProcesses(standing()))];
  const more = [...(brokers ?? []), ...(archives ?? []), ...(limits ?? []), ...(processes ?? [])];
  const parts = [database, writes, queue, workers, callbacks, facts, clocks, ...more];

  return {
    all: () => Promise.all(parts.map(perform)),
    async whyNotReady() {
      const [answers, stores] = await Promise.all([perform(database), perform(writes)]);
      if (!answers.healthy) return "the database does not answer";
      return stores.healthy ? undefined : "the database stores nothing";
    },
  };
}

function shared(name: string, look: Look["look"]): Look {
  let underWay: ReturnType<Look["look"]> | undefined;
  return {
    name,
    look() {
      underWay ??= look().finally(() => {
        underWay = undefined;
      });
      return underWay;
    },
  };
}

async function perform({ name, look, isMinor }: Look): Promise<Finding> {
  const startedAt = performance.now();
  const tooLong = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error("timeout")), LOOK_MS).unref();
  });
  const latencyMs = () => Math.round((performance.now() - startedAt) * 10) / 10;
  try {
    const found = await Promise.race([look(), tooLong]);
    const told = typeof found === "string" ? { detail: found } : { degraded: true as const, detail: found.degraded };
    return { name, healthy: true, latencyMs: latencyMs(), ...told };
  } catch (error) {
    const detail = isOutage(error) ? "does not answer" : "answers with an error";
    const told = isMinor ? { healthy: true, degraded: true as const } : { healthy: false };
    return { name, ...told, latencyMs: latencyMs(), detail };
  }
}

/** Whose it is, only those may know who have a key. */
function wordsOf({ workers, untaken, paused }: Stalls): string | Degraded {
  const pauses = Object.entries(paused).filter(([, count]) => count > 0);
  const told = pauses.length > 0 ? `; paused: ${pauses.map(([kind, count]) => `${count} ${kind}`).join(", ")}` : "";
  if (workers === 0) return { degraded: `no worker is alive${told}` };
  const alive = `${workers} alive`;
  return untaken.length > 0 ? { degraded: `${alive}, and none takes some of what waits${told}` } : alive + told;
}

/** They give way while notifications are sent; for so long only when nobody makes them, or cannot. */
const LATE_MS = 300_000;

function toldOfLag(lagMs: number): string | Degraded {
  const told = lagMs < 1_000 ? "up to date" : `${seconds(lagMs)} s behind`;
  return lagMs > LATE_MS ? { degraded: told } : told;
}

/** Longer than anything of ours is open. */
const HELD_MS = 60_000;
const GID_LENGTH = 64;
const DAY_MS = 86_400_000;

/** Which process or prepared transaction it is, for whoever has to end it; what it does, and whose it is, is nobody's business here. */
function toldOfFeed({ heldMs, holder, followers }: FeedStanding): string | Degraded {
  const told: string[] = [];
  if (heldMs > HELD_MS) {
    const { pid = null, gid = null, ageMs = null } = holder ?? {};
    const who = gid !== null ? ` prepared as ${cut(gid, GID_LENGTH)}` : pid !== null ? ` of process ${pid}` : "";
    const age = ageMs === null ? "" : `, open for ${seconds(ageMs)} s`;
    told.push(`held up for ${seconds(heldMs)} s by a transaction${who}${age}`);
  }
  for (const { name, lagMs, missedMs } of followers) {
    if (lagMs > LATE_MS) told.push(`${name} is ${seconds(lagMs)} s behind`);
    if (missedMs !== null && missedMs < DAY_MS) told.push(`${name} has missed something: it was behind what is kept`);
  }
  return told.length > 0 ? { degraded: told.join("; ") } : "nothing holds it up";
}

/** Why one fails, only those may know who run the deployment. How far a sink is behind is the feed's to tell. */
function toldOfConnectors(all: ConnectorFigures): string | Degraded {
  const named = (state: ConnectorState) =>
    all.filter((one) => one.state === state).map(({ kind, name }) => `${kind} ${name}`);
  const said = (state: ConnectorState, words: string) => {
    const names = named(state);
    return names.length > 0 ? [`${words}: ${names.join(", ")}`] : [];
  };
  const wrong = [...said("failing", "failing"), ...said("idle", "run by no process")];
  const told = [...wrong, ...said("paused", "paused"), ...said("running", "running")].join("; ");
  return wrong.length > 0 ? { degraded: told } : told;
}

const seconds = (ms: number): number => Math.round(ms / 1_000);

/** A clock that was moved where nobody may move it is a database that was meant for something else. */
function toldOfClock(aheadMs: number, movedMs: number, isDevelopment: boolean): string | Degraded {
  if (movedMs === 0) return toldOf(aheadMs);
  const told = `${toldOf(aheadMs)}; it was moved by ${seconds(movedMs)} s`;
  return isDevelopment ? told : { degraded: told };
}

function toldOf(aheadMs: number): string {
  if (Math.abs(aheadMs) <= ASTRAY_MS) return "as the database's";
  const apart = (Math.abs(aheadMs) / 1000).toFixed(1);
  return `${apart} s ${aheadMs > 0 ? "ahead of" : "behind"} the database's`;
}

/** The keeper's log says why. */
const toldOfArchive = ({ parts, since }: Trouble): string | Degraded =>
  parts === 0 || since === null
    ? "nothing waits for it"
    : { degraded: `away: ${parts} old weeks are kept until it is back, the first since ${since.toISOString()}` };

const toldOfRedis = ({ version, evicts }: RedisStanding): string | Degraded =>
  evicts === undefined
    ? version
    : { degraded: `${version} drops keys when its memory is full: maxmemory-policy is ${evicts}, not noeviction` };

/** Those that serve take all there is meanwhile. */
const toldOfProcesses = ({ of, up }: Standing): string | Degraded =>
  up === of ? `all ${of} serve` : { degraded: `${up} of ${of} serve, the others are being replaced` };
