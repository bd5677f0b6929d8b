// Senders that never rest, and a record of what each of their calls was promised.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Answered, Service } from "./service.ts";

/** One request over HTTP: a single notification or a batch. */
export type Call = { name: string; requests: NotificationRequest[]; isBatch: boolean; isKeyed: boolean };

export type Exchange = {
  call: Call;
  /** On the clock of performance.now(). */
  startedAt: number;
  endedAt: number;
  /** Undefined when the connection was refused or broke. */
  answer: Answered | undefined;
  failure?: string;
};

export type Load = {
  /** Every notification that got a 2xx, by its id. */
  acknowledged: Map<string, NotificationRequest>;
  outcomes: Exchange[];
  /** Resolves as soon as it holds; looked at after each outcome. Rejects if the last sender ends before. */
  until(holds: (latest: Exchange | undefined) => boolean): Promise<void>;
  /** Resolves when every sender has ended. */
  ended: Promise<void>;
  /** Lets what is under way end, and nothing new begin. */
  stop(): Promise<void>;
};

export type LoadOptions = {
  ask: Service["ask"];
  senders: number;
  random: () => number;
  name: string;
  /** Goes on also where nobody answers. */
  isStubborn?: boolean;
  /** Of every request. */
  retryPolicy?: NotificationRequest["retryPolicy"];
};

/** Between a refusal and the next call of the same sender. */
const PAUSE_MS = 20;

/** The same numbers from 0 to 1 for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A sender goes on at every answer, whatever it is, and ends when it gets none, unless it is stubborn. */
export function startLoad({ ask, senders, random, name, isStubborn = false, retryPolicy }: LoadOptions): Load {
  const acknowledged: Load["acknowledged"] = new Map();
  const outcomes: Exchange[] = [];
  const watchers = new Set<(latest: Exchange | undefined, isOver: boolean) => void>();
  let calls = 0;
  let isStopped = false;

  async function keepSending(): Promise<void> {
    for (let goesOn = true; goesOn && !isStopped; ) {
      const call = makeCall(`${name}, call ${calls++}`, random, retryPolicy);
      const outcome = await perform(ask, call);
      outcomes.push(outcome);
      for (const [id, request] of acknowledgedBy(outcome)) acknowledged.set(id, request);
      for (const watcher of watchers) watcher(outcome, false);
      goesOn = outcome.answer !== undefined || isStubborn;
      // Not to wait for anything, but because a sender that is told to wait and does not takes all of the processor.
      if ((outcome.answer?.status ?? 503) === 503) await sleep(PAUSE_MS);
    }
  }
  const ended = Promise.all(Array.from({ length: senders }, keepSending)).then(() => {
    for (const watcher of watchers) watcher(undefined, true);
  });

  return {
    acknowledged,
    outcomes,
    ended,
    until: (holds) =>
      new Promise((resolve, reject) => {
        const watcher = (latest: Exchange | undefined, isOver: boolean) => {
          if (holds(latest)) resolve();
          else if (isOver) reject(new Error(`the load ended first: ${outcomes.at(-1)?.failure}`));
          else return;
          watchers.delete(watcher);
        };
        watchers.add(watcher);
        watcher(undefined, false);
      }),
    stop() {
      isStopped = true;
      return ended;
    },
  };
}

export async function perform(ask: Service["ask"], call: Call): Promise<Exchange> {
  const startedAt = performance.now();
  try {
    const answer = call.isBatch
      ? await ask("POST", "/v1/notifications/batch", { notifications: call.requests })
      : await ask("POST", "/v1/notifications", call.requests[0]);
    return { call, startedAt, endedAt: performance.now(), answer };
  } catch (error) {
    const failure = error instanceof Error ? `${error.message}: ${describe(error.cause)}` : String(error);
    return { call, startedAt, endedAt: performance.now(), answer: undefined, failure };
  }
}

/** The ids that an answer promises, with what was sent under them. */
export function acknowledgedBy({ call, answer }: Exchange): [id: string, request: NotificationRequest][] {
  if (!answer || answer.status > 299) return [];
  const results: { notificationId?: string }[] = call.isBatch ? answer.body.results : [answer.body];
  return call.requests.flatMap((request, index): [string, NotificationRequest][] => {
    const id = results[index]?.notificationId;
    return id === undefined ? [] : [[id, request]];
  });
}

/** All that the database holds, by id. */
export async function readStored(db: Pick<pg.Client, "query">): Promise<Map<string, NotificationRequest>> {
  const { rows } = await db.query<{ id: string; request: NotificationRequest }>(
    "select id, request from carillon.notifications",
  );
  return new Map(rows.map(({ id, request }) => [id, request]));
}

/** Each is there, with the content that was sent. */
export function assertKept(
  acknowledged: ReadonlyMap<string, NotificationRequest>,
  stored: ReadonlyMap<string, NotificationRequest>,
): void {
  const lost = [...acknowledged.keys()].filter((id) => !stored.has(id));
  assert.deepEqual(lost, [], `${lost.length} of ${acknowledged.size} acknowledged notifications are lost`);
  for (const [id, request] of acknowledged) {
    // Far faster than deepEqual, which is left to explain a difference.
    if (JSON.stringify(stored.get(id)) !== JSON.stringify(request)) assert.deepEqual(stored.get(id), request, id);
  }
}

/** How many of a call's notifications are stored. */
export function countStored(stored: ReadonlyMap<string, NotificationRequest>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { metadata } of stored.values()) {
    const name = String(metadata?.call);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

function makeCall(name: string, random: () => number, retryPolicy: LoadOptions["retryPolicy"]): Call {
  const isBatch = random() < 0.08;
  const isKeyed = random() < 0.4;
  const size = isBatch ? 2 + Math.floor(random() * 30) : 1;
  const requests = Array.from({ length: size }, (_, index): NotificationRequest => {
    const isLarge = random() < 0.02;
    const isLater = random() < 0.1;
    return {
      channel: "email",
      recipient: { email: "ada@example.com" },
      content: { subject: `${name}, number ${index}`, textBody: isLarge ? "long ".repeat(4_000) : "Hello" },
      ...(isLater && { scheduledFor: "2099-01-01T00:00:00.000Z" }),
      ...(isKeyed && { idempotencyKey: `${name}, number ${index}` }),
      ...(retryPolicy && { retryPolicy }),
      metadata: { call: name },
    };
  });
  return { name, requests, isBatch, isKeyed };
}

const describe = (cause: unknown): string =>
  cause instanceof Error ? `${"code" in cause ? cause.code : ""} ${cause.message}` : String(cause);
