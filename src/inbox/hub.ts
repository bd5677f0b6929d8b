// All open streams of this process.
//
// A reader is known here before its first reading, so that whatever changes during that reading is not missed: it is then
// read once more. From there on it is live: the stream role tells it what is new.
// State: the readers, the number of the last reading, and whether everybody is being let go.

import type { ServerResponse } from "node:http";
import type { Inbox, Position } from "#domain/inbox.ts";
import { Problem } from "#domain/problems.ts";
import type { News, Reading } from "#store/inbox-news.ts";
import { createFollow } from "./follow.ts";
import { newReader, type Reader, write } from "./reader.ts";
import { createReaders } from "./readers.ts";
import { inSlices } from "./slices.ts";

export type HubOptions = {
  /** What is new, for many readings at once. */
  read: (readings: Reading[]) => Promise<News[]>;
  maxStreams: number;
  perUser: number;
  now: () => number;
  random: () => number;
  onEnd?: (reason: End) => void;
  onEvents?: (count: number) => void;
  limits?: Partial<typeof LIMITS>;
};

/** Why a stream ended. */
export type End = "left" | "age" | "slow" | "crowded" | "drained" | "failed";

export const LIMITS = {
  /** Proxies cut what is silent: nginx after 60 s, others sooner. */
  heartbeatMs: 24_000,
  /** New connections find new replicas, and old ones can be let go. */
  ageMs: 600_000,
  /** A full buffer that nobody reads from for so long. */
  stallMs: 10_000,
  /** How soon a client comes back. */
  retryMs: 2_000,
  /** Readers that are let go in a second when the process ends. */
  drainPerSecond: 500,
};

const JITTER = 0.2;

/** Readings are numbered as they are asked for. */
export type Numbered = Reading & { no: number };

export type Hub = {
  /** Takes a place for a stream until `endsAtMs` at most, or throws the problem. */
  admit(inbox: Inbox, endsAtMs: number): Reader;
  /** Reads what the reader missed since `from`, or where it stands; answers with the first thing to write. */
  begin(reader: Reader, from: Position | undefined): Promise<Buffer>;
  open(reader: Reader, out: ServerResponse, first: Buffer): void;
  leave(reader: Reader): void;
  has(inbox: Inbox): boolean;
  /** Those of the inboxes that somebody reads, each from the least that a live reader of it has; all without a list. */
  readings(inboxes?: readonly Inbox[]): Numbered[];
  tell(readings: readonly Numbered[], news: readonly News[]): Promise<void>;
  /** Heartbeats, ages and stalls; called a few times a second, for everybody. */
  tick(): Promise<void>;
  /** Lets everybody go at once: what they have was never so. */
  cutAll(): void;
  /** Lets everybody go, spread out, within `withinMs`. Nobody is admitted any more. */
  drain(withinMs: number): Promise<void>;
  size(): number;
};

export function createHub(options: HubOptions): Hub {
  const { maxStreams, perUser, now, random, onEnd } = options;
  const limits = { ...LIMITS, ...options.limits };
  const readers = createReaders();
  let isDraining = false;
  const jittered = (ms: number) => Math.round(ms * (1 + JITTER * (2 * random() - 1)));

  function end(reader: Reader, reason: End): void {
    if (!readers.remove(reader)) return;
    reader.isEnded = true;
    onEnd?.(reason);
    const { out } = reader;
    if (!out || out.destroyed) return;
    // A reader that is stuck would keep its buffer for as long as it likes.
    if (reader.fullSinceMs !== undefined) out.destroy();
    else out.end(`retry: ${Math.round(limits.retryMs * (0.5 + 2 * random()))}\n\n`);
  }

  /** When all places are taken, whoever has most of them gives one up. */
  function makeRoom(tenant: number): boolean {
    if (readers.size() < maxStreams) return true;
    const goes = readers.givingWayTo(tenant);
    if (goes) end(goes, "crowded");
    return goes !== undefined;
  }

  const follow = createFollow({ ...options, readers, end, retryMs: () => jittered(limits.retryMs) });

  return {
    ...follow,
    admit(inbox, endsAtMs) {
      if (isDraining)
        throw new Problem("SHUTTING_DOWN", "ask again: another replica answers", { retryAfterSeconds: 1 });
      if (readers.of(inbox).size >= perUser) {
        throw new Problem("TOO_MANY_STREAMS", `no more than ${perUser} at once`, { retryAfterSeconds: 30 });
      }
      if (!makeRoom(inbox.tenant)) {
        throw new Problem("OVERLOADED", "too many streams are open", { retryAfterSeconds: 5 });
      }
      const reader = newReader(inbox, now(), Math.min(endsAtMs, now() + jittered(limits.ageMs)));
      readers.add(reader);
      return reader;
    },

    leave: (reader) => end(reader, "left"),
    has: (inbox) => readers.of(inbox).size > 0,

    async tick() {
      const nowMs = now();
      await inSlices(readers.all(), (reader) => {
        const { endsAtMs, fullSinceMs, wroteAtMs, isEnded, out } = reader;
        if (isEnded || !out) return false;
        if (nowMs >= endsAtMs) end(reader, "age");
        else if (fullSinceMs !== undefined) {
          if (nowMs - fullSinceMs >= limits.stallMs) end(reader, "slow");
        } else if (nowMs - wroteAtMs >= limits.heartbeatMs) write(reader, ":\n\n", nowMs);
        else return false;
        return true;
      });
    },

    cutAll() {
      for (const reader of [...readers.all()]) if (reader.out) end(reader, "failed");
    },

    async drain(withinMs) {
      isDraining = true;
      const spreadMs = Math.min(withinMs / 2, (readers.size() / limits.drainPerSecond) * 1000);
      await Promise.all(
        [...readers.all()].map(async (reader) => {
          await new Promise((resolve) => setTimeout(resolve, random() * spreadMs));
          end(reader, "drained");
        }),
      );
    },

    size: readers.size,
  };
}
