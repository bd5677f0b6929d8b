// Everybody who waits for what happens, in this process: the open streams of GET /v1/events.
//
// A stream reads the feed for itself, page by page, whenever something has happened to its tenant, and no faster than it is read from: one that
// does not keep up costs one full buffer, and is cut off when it takes nothing for too long. One whose tenant is quiet reads nothing: it is moved
// on past what happened to others, and tells its client so with the heartbeat, that it need not be looked through when the client comes back.
// State: the streams, and whether they are being let go.

import type { ServerResponse } from "node:http";
import { comparePositions, type Position, writtenPosition } from "#domain/fact.ts";
import type { FactBody } from "#domain/fact-body.ts";
import { Problem } from "#domain/problems.ts";
import { LIMITS } from "#inbox/hub.ts";
import { emptied, type Written, write } from "#inbox/reader.ts";

export type FactPage = { data: FactBody[]; next: Position; isAtEnd: boolean };

export type Follower = Written & {
  tenant: number;
  position: Position;
  endsAtMs: number;
  checkedAtMs: number;
  /** The page after a position, or the problem thrown. */
  read: (after: Position) => Promise<FactPage>;
  /** Whether the key that opened it still may. */
  isAllowed: () => Promise<boolean>;
  isReading: boolean;
  hasNews: boolean;
};

export type Admitted = Pick<Follower, "tenant" | "position" | "read" | "isAllowed">;

export type EventStreams = {
  /** Takes a place, or throws the problem. */
  admit(admitted: Admitted): Follower;
  open(follower: Follower, out: ServerResponse): void;
  /** Up to here something has happened to these tenants, and to no others since the last time that this was said. */
  tell(tenants: ReadonlySet<number>, upTo: Position): void;
  /** Something may have happened to anybody. */
  wake(): void;
  /** Heartbeats, ages, stalls, and keys that were revoked; called a few times a second. */
  tick(): void;
  drain(): void;
  size(): number;
};

const PER_TENANT = 20;
const MOST = 1_000;
const CHECK_MS = 5_000;

/** Those who came at once do not come back at once. */
const JITTER = 0.2;

export function createEventStreams(now: () => number, random: () => number): EventStreams {
  const all = new Set<Follower>();
  let isDraining = false;
  const jittered = (ms: number) => Math.round(ms * (1 + JITTER * (2 * random() - 1)));

  function end(follower: Follower): void {
    if (!all.delete(follower)) return;
    follower.isEnded = true;
    const { out } = follower;
    if (!out || out.destroyed) return;
    if (follower.fullSinceMs !== undefined) out.destroy();
    else out.end(`retry: ${Math.round(LIMITS.retryMs * (0.5 + random()))}\n\n`);
  }

  async function advance(follower: Follower): Promise<void> {
    follower.hasNews = true;
    if (follower.isReading) return;
    follower.isReading = true;
    try {
      while (follower.hasNews && !follower.isEnded) await tellPage(follower, now);
    } catch (error) {
      // Of anything but a reset the client knows no more than that it ended: it comes back and says how far it has come.
      if (error instanceof Problem && error.next !== undefined) {
        write(follower, `event: reset\ndata: ${JSON.stringify({ next: error.next })}\n\n`, now());
      }
      end(follower);
    } finally {
      follower.isReading = false;
    }
  }

  async function check(follower: Follower): Promise<void> {
    follower.checkedAtMs = now();
    // While the database is away nobody can say.
    if (!(await follower.isAllowed().catch(() => true))) end(follower);
  }

  return {
    admit(admitted) {
      if (isDraining)
        throw new Problem("SHUTTING_DOWN", "ask again: another replica answers", { retryAfterSeconds: 1 });
      findRoom(all, admitted.tenant);
      const times = { wroteAtMs: now(), checkedAtMs: now(), endsAtMs: now() + jittered(LIMITS.ageMs) };
      const follower: Follower = { ...admitted, ...times, ...FRESH };
      all.add(follower);
      return follower;
    },

    open(follower, out) {
      follower.out = out;
      out.on("drain", () => {
        follower.fullSinceMs = undefined;
      });
      out.once("close", () => end(follower));
      if (out.destroyed || out.socket?.destroyed) return end(follower);
      if (follower.isEnded) return void out.end();
      out.socket?.setNoDelay(true);
      write(follower, `retry: ${LIMITS.retryMs}\n${placeOf(follower)}`, now());
      void advance(follower);
    },

    tell(tenants, upTo) {
      for (const follower of all) {
        const { tenant, out, isReading } = follower;
        if (!out) continue;
        if (tenants.has(tenant)) void advance(follower);
        else if (!isReading) moveOn(follower, upTo);
      }
    },

    wake() {
      for (const follower of all) if (follower.out) void advance(follower);
    },

    tick() {
      const nowMs = now();
      for (const follower of [...all]) {
        if (!follower.out) continue;
        if (isOver(follower, nowMs)) end(follower);
        else if (follower.fullSinceMs === undefined && nowMs - follower.wroteAtMs >= LIMITS.heartbeatMs)
          write(follower, `:\n${placeOf(follower)}`, nowMs);
        if (nowMs - follower.checkedAtMs >= CHECK_MS) void check(follower);
      }
    },

    drain() {
      isDraining = true;
      for (const follower of [...all]) end(follower);
    },

    size: () => all.size,
  };
}

/** Throws the problem where there is none. */
function findRoom(all: ReadonlySet<Follower>, of: number): void {
  if ([...all].filter(({ tenant }) => tenant === of).length >= PER_TENANT) {
    throw new Problem("TOO_MANY_STREAMS", `no more than ${PER_TENANT} at once`, { retryAfterSeconds: 30 });
  }
  if (all.size >= MOST) throw new Problem("OVERLOADED", "too many streams are open", { retryAfterSeconds: 5 });
}

async function tellPage(follower: Follower, now: () => number): Promise<void> {
  if (follower.fullSinceMs !== undefined) await emptied(follower);
  follower.hasNews = false;
  const page = await follower.read(follower.position);
  follower.position = page.next;
  write(follower, page.data.map(textOf).join(""), now());
  follower.hasNews ||= !page.isAtEnd;
}

/** It is old, or nobody has read from it for too long. */
const isOver = ({ endsAtMs, fullSinceMs }: Follower, nowMs: number): boolean =>
  nowMs >= endsAtMs || (fullSinceMs !== undefined && nowMs - fullSinceMs >= LIMITS.stallMs);

/** One that is at rest has seen all that was its own before. */
function moveOn(follower: Follower, upTo: Position): void {
  const { position } = follower;
  if (position.epoch === upTo.epoch && comparePositions(position, upTo) < 0) follower.position = upTo;
}

const FRESH = { out: undefined, isEnded: false, fullSinceMs: undefined, isReading: false, hasNews: false };

/** Without data it is no event, and says how far the stream has come all the same. */
const placeOf = ({ position }: Follower): string => `id: ${writtenPosition(position)}\n\n`;

const textOf = (fact: FactBody): string => `id: ${fact.position}\nevent: fact\ndata: ${JSON.stringify(fact)}\n\n`;
