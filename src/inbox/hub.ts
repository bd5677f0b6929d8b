// All open streams of this process.
//
// A reader is known here before its first reading, so that whatever changes during that reading is not missed: it is then
// read once more. From there on it is live: the stream role tells it what is new.

import type { ServerResponse } from "node:http";
import type { Inbox, Position } from "#domain/inbox.ts";
import { Problem } from "#domain/problems.ts";
import type { News, Reading } from "#store/inbox-news.ts";
import { advance, eventText, isCaughtUp, type Reader, type Wire, wireOf, write } from "./reader.ts";

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

/** Readers written to before other work gets its turn. */
const SLICE = 100;
const FROM_NOW_ON = Number.MAX_SAFE_INTEGER;
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

const keyOf = ({ tenant, userId }: Inbox): string => `${tenant} ${userId}`;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function add<Key>(sets: Map<Key, Set<Reader>>, key: Key, reader: Reader): void {
  sets.set(key, (sets.get(key) ?? new Set()).add(reader));
}

function drop<Key>(sets: Map<Key, Set<Reader>>, key: Key, reader: Reader): void {
  const set = sets.get(key);
  set?.delete(reader);
  if (set?.size === 0) sets.delete(key);
}

export function createHub(options: HubOptions): Hub {
  const { read, maxStreams, perUser, now, random, onEnd, onEvents } = options;
  const limits = { ...LIMITS, ...options.limits };
  const topics = new Map<string, Set<Reader>>();
  const readers = new Set<Reader>();
  /** The oldest of a tenant first. */
  const tenants = new Map<number, Set<Reader>>();
  let isDraining = false;
  let lastNo = 0;
  const jittered = (ms: number) => Math.round(ms * (1 + JITTER * (2 * random() - 1)));

  function remove(reader: Reader): boolean {
    if (!readers.delete(reader)) return false;
    reader.isEnded = true;
    drop(topics, keyOf(reader.inbox), reader);
    drop(tenants, reader.inbox.tenant, reader);
    return true;
  }

  /** When all places are taken, whoever has most of them gives one up, for a tenant that has fewer. */
  function makeRoom(tenant: number): boolean {
    if (readers.size < maxStreams) return true;
    const most = [...tenants.values()].reduce((one, other) => (other.size > one.size ? other : one));
    if ((tenants.get(tenant)?.size ?? 0) + 1 >= most.size) return false;
    for (const oldest of most) {
      end(oldest, "crowded");
      return true;
    }
    return false;
  }

  function end(reader: Reader, reason: End): void {
    if (!remove(reader)) return;
    onEnd?.(reason);
    const { out } = reader;
    if (!out || out.destroyed) return;
    // A reader that is stuck would keep its buffer for as long as it likes.
    if (reader.fullSinceMs !== undefined) out.destroy();
    else out.end(`retry: ${Math.round(limits.retryMs * (0.5 + 2 * random()))}\n\n`);
  }

  const readingOf = ({ inbox, position }: Reader): Reading => ({ ...inbox, afterSeq: position.seq });

  /** Reads the table until nothing is missing, no faster than the reader takes it. */
  async function catchUp(reader: Reader): Promise<void> {
    reader.isLive = false;
    try {
      while (!reader.isEnded) {
        if (reader.fullSinceMs !== undefined) await emptied(reader);
        if (reader.isEnded) return;
        reader.isDirty = false;
        reader.readNo = ++lastNo;
        const [news] = await read([readingOf(reader)]);
        if (!news) throw new Error("nothing was read");
        for (const chunk of advance(reader, news, wireOf(news))) write(reader, chunk, now());
        if (isCaughtUp(reader, news) && !reader.isDirty && reader.fullSinceMs === undefined) break;
      }
      reader.isLive = true;
    } catch {
      // The database is away. The client comes back and says what it has.
      end(reader, "failed");
    }
  }

  const emptied = ({ out }: Reader): Promise<void> =>
    new Promise((resolve) => {
      if (!out || out.destroyed) return resolve();
      const done = () => {
        out.off("drain", done).off("close", done);
        resolve();
      };
      out.once("drain", done).once("close", done);
    });

  function push(reader: Reader, news: News, wire: Wire): void {
    for (const chunk of advance(reader, news, wire)) write(reader, chunk, now());
    if (reader.fullSinceMs !== undefined || !isCaughtUp(reader, news)) void catchUp(reader);
  }

  /** In slices, so that no one else waits long while many are served. */
  async function each<One>(all: Iterable<One>, act: (one: One) => boolean): Promise<void> {
    let done = 0;
    for (const one of [...all]) {
      if (act(one) && ++done % SLICE === 0) await turn();
    }
  }

  return {
    admit(inbox, endsAtMs) {
      if (isDraining)
        throw new Problem("SHUTTING_DOWN", "ask again: another replica answers", { retryAfterSeconds: 1 });
      if ((topics.get(keyOf(inbox))?.size ?? 0) >= perUser) {
        throw new Problem("TOO_MANY_STREAMS", `no more than ${perUser} at once`, { retryAfterSeconds: 30 });
      }
      if (!makeRoom(inbox.tenant)) {
        throw new Problem("OVERLOADED", "too many streams are open", { retryAfterSeconds: 5 });
      }
      const reader: Reader = {
        inbox,
        out: undefined,
        position: { epoch: 0, seq: 0 },
        unread: -1,
        isLive: false,
        readNo: 0,
        isDirty: false,
        isEnded: false,
        fullSinceMs: undefined,
        wroteAtMs: now(),
        endsAtMs: Math.min(endsAtMs, now() + jittered(limits.ageMs)),
      };
      add(topics, keyOf(inbox), reader);
      add(tenants, inbox.tenant, reader);
      readers.add(reader);
      return reader;
    },

    async begin(reader, from) {
      reader.readNo = ++lastNo;
      const [news] = await read([{ ...reader.inbox, afterSeq: from?.seq ?? FROM_NOW_ON }]);
      if (!news) throw new Error("nothing was read");
      const chunks: Buffer[] = [Buffer.from(`retry: ${jittered(limits.retryMs)}\n`)];
      if (from) {
        reader.position = from;
        chunks.push(...advance(reader, news, wireOf(news)));
      } else {
        // With an id: a reader that is told nothing more can still say from where on it was there.
        reader.position = { epoch: news.epoch, seq: news.lastSeq };
        reader.unread = news.unread;
        chunks.push(Buffer.from(eventText("unread", String(news.unread), reader.position)));
      }
      reader.isDirty ||= !isCaughtUp(reader, news);
      return Buffer.concat(chunks);
    },

    open(reader, out, first) {
      reader.out = out;
      out.on("drain", () => {
        reader.fullSinceMs = undefined;
      });
      out.once("close", () => {
        if (remove(reader)) onEnd?.("left");
      });
      if (out.destroyed || out.socket?.destroyed) return end(reader, "left");
      // It was let go while it was still reading.
      if (reader.isEnded) return void out.end();
      out.socket?.setNoDelay(true);
      write(reader, first, now());
      if (reader.isDirty || reader.fullSinceMs !== undefined) void catchUp(reader);
      else reader.isLive = true;
    },

    leave: (reader) => end(reader, "left"),
    has: (inbox) => topics.has(keyOf(inbox)),

    readings(inboxes) {
      const no = ++lastNo;
      const keys = inboxes ? inboxes.map(keyOf) : [...topics.keys()];
      return keys.flatMap((key) => {
        const topic = topics.get(key);
        if (!topic) return [];
        let least: Reader | undefined;
        for (const reader of topic) {
          if (!reader.isLive) reader.isDirty = true;
          else if (!least || reader.position.seq < least.position.seq) least = reader;
        }
        return least ? [{ ...readingOf(least), no }] : [];
      });
    },

    async tell(readings, news) {
      let events = 0;
      for (const [n, reading] of readings.entries()) {
        const one = news[n];
        const topic = topics.get(keyOf(reading));
        if (!one || !topic) continue;
        const wire = wireOf(one);
        await each(topic, (reader) => {
          if (reader.isEnded) return false;
          if (!reader.isLive) reader.isDirty = true;
          // It has read for itself since this was asked for, and may be ahead of it or behind: the table knows.
          else if (reader.readNo > reading.no) void catchUp(reader);
          else push(reader, one, wire);
          events++;
          return true;
        });
        if (n % SLICE === SLICE - 1) await turn();
      }
      onEvents?.(events);
    },

    async tick() {
      const nowMs = now();
      await each(readers, (reader) => {
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
      for (const reader of [...readers]) if (reader.out) end(reader, "failed");
    },

    async drain(withinMs) {
      isDraining = true;
      const spreadMs = Math.min(withinMs / 2, (readers.size / limits.drainPerSecond) * 1000);
      await Promise.all(
        [...readers].map(async (reader) => {
          await new Promise((resolve) => setTimeout(resolve, random() * spreadMs));
          end(reader, "drained");
        }),
      );
    },

    size: () => readers.size,
  };
}
