// How this process and what it needs are, for whoever runs it.
//
// Anybody may ask, as often as they like: one look at a time, which all who ask meanwhile share. State: the looks under way, and
// when it was last tried to write.

import { ASTRAY_MS, type Clock } from "#store/connection/clock.ts";
import { isOutage, type Queryable } from "#store/connection/database.ts";
import { probeWrite, readMajorVersion } from "#store/connection/probe.ts";
import type { Standing } from "./siblings.ts";

export type HealthOptions = {
  db: Queryable;
  clock: Pick<Clock, "aheadMs">;
  /** Whether anything in the queue may be claimed now. */
  hasReady: () => Promise<boolean>;
  /** Sends were refused a moment ago, for want of a database that stores them. */
  areSendsRefused: () => boolean;
  /** Where several processes serve behind one port. */
  standing?: (() => Standing) | undefined;
};

export type Finding = { name: string; healthy: boolean; latencyMs: number; detail: string };

export type Health = {
  all(): Promise<Finding[]>;
  /** Why requests should go elsewhere; undefined when they should not. */
  whyNotReady(): Promise<string | undefined>;
};

type Look = { name: string; look: () => Promise<string> };

const LOOK_MS = 2_000;
/** However often it is asked for, no more than one write in this time. */
const WRITE_MS = 1_000;

export function createHealth({ db, clock, hasReady, areSendsRefused, standing }: HealthOptions): Health {
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
  const clocks = shared("clock", async () => toldOf(clock.aheadMs()));

  const processes = standing && [shared("processes", async () => toldOfProcesses(standing()))];

  return {
    all: () => Promise.all([database, writes, queue, clocks, ...(processes ?? [])].map(perform)),
    async whyNotReady() {
      const [answers, stores] = await Promise.all([perform(database), perform(writes)]);
      if (!answers.healthy) return "the database does not answer";
      return stores.healthy ? undefined : "the database stores nothing";
    },
  };
}

function shared(name: string, look: Look["look"]): Look {
  let underWay: Promise<string> | undefined;
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

async function perform({ name, look }: Look): Promise<Finding> {
  const startedAt = performance.now();
  const tooLong = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error("timeout")), LOOK_MS).unref();
  });
  const latencyMs = () => Math.round((performance.now() - startedAt) * 10) / 10;
  try {
    const detail = await Promise.race([look(), tooLong]);
    return { name, healthy: true, latencyMs: latencyMs(), detail };
  } catch (error) {
    const detail = isOutage(error) ? "does not answer" : "answers with an error";
    return { name, healthy: false, latencyMs: latencyMs(), detail };
  }
}

function toldOf(aheadMs: number): string {
  if (Math.abs(aheadMs) <= ASTRAY_MS) return "as the database's";
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  return `${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} the database's`;
}

/** Healthy all the same: those that serve take all there is. */
const toldOfProcesses = ({ of, up }: Standing): string =>
  up === of ? `all ${of} serve` : `${up} of ${of} serve, the others are being replaced`;
