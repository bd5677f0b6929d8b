// Hints between processes: "something may be ready", "something is due at …". A hint may be lost; looking is the truth.
//
// NOTIFY takes a lock on the whole database through its commit, so it is never part of our transactions: it is sent
// after the commit, on its own, at most once every few milliseconds.

import type { Lanes } from "#domain/priority.ts";
import type { Queryable } from "./database.ts";
import { type Listening, type ListenTiming, listenOn, type OnLost } from "./listen.ts";

const READY = "carillon_ready";
const DUE = "carillon_due";
const LEAST_MS = 5;
/** Triggers say nothing of lanes, and no more do other versions. */
const LOWER: Lanes = "lower";

/** Tells the other processes that something is ready, soon. Calls in between are one call. Whoever does not say of what lanes means any. */
export function createReadyHint(db: Queryable): (lanes?: Lanes) => void {
  let isLower = true;
  const ring = createPaced(() => {
    tell(db, READY, isLower ? LOWER : "");
    isLower = true;
  });
  return (lanes = "any") => {
    isLower &&= lanes === "lower";
    ring();
  };
}

/** Tells the schedulers when the earliest of several will be due, in milliseconds on the database's clock. */
export function createDueHint(db: Queryable): (dueMs: number) => void {
  let earliest = Number.POSITIVE_INFINITY;
  const plan = createPaced(() => {
    tell(db, DUE, String(Math.floor(earliest)));
    earliest = Number.POSITIVE_INFINITY;
  });
  return (dueMs) => {
    earliest = Math.min(earliest, dueMs);
    plan();
  };
}

function tell(db: Queryable, channel: string, payload: string): void {
  db.query("select pg_notify($1, $2)", [channel, payload]).catch(() => {
    // Whoever sleeps looks by itself.
  });
}

function createPaced(act: () => void): () => void {
  let isPlanned = false;
  let lastAt = Number.NEGATIVE_INFINITY;
  const run = () => {
    isPlanned = false;
    lastAt = performance.now();
    act();
  };
  return () => {
    if (isPlanned) return;
    isPlanned = true;
    const waitMs = lastAt + LEAST_MS - performance.now();
    if (waitMs <= 0) setImmediate(run);
    else setTimeout(run, waitMs);
  };
}

export type Listener = {
  onReady?: (lanes: Lanes) => void;
  /** Undefined when hints may have been missed. */
  onDue?: (dueMs: number | undefined) => void;
  /** Hints are missed until it listens again. */
  onLost?: OnLost;
  timing?: ListenTiming;
};

/** Calls back for every hint, through reconnects; also after one, since something may have been missed. */
export function listen(url: string, { onReady, onDue, onLost, timing }: Listener): Listening {
  return listenOn(url, {
    name: "listen",
    channels: [...(onReady ? [READY] : []), ...(onDue ? [DUE] : [])],
    onHeard({ channel, payload }) {
      if (channel === READY) onReady?.(payload === LOWER ? LOWER : "any");
      else onDue?.(payload ? Number(payload) : undefined);
    },
    onConnected() {
      onReady?.("any");
      onDue?.(undefined);
    },
    onLost,
    timing,
  });
}
