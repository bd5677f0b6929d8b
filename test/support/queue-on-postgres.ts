// A queue on a PostgreSQL of its own, as the conformance suite wants it, with or without an engine beside it.

import type { Handoff } from "#domain/handoff.ts";
import { createIds } from "#domain/ids.ts";
import type { Engine } from "#queue/engine.ts";
import { createPostgresQueue } from "#queue/postgres/engine.ts";
import { bringHome } from "#queue/postgres/handoffs.ts";
import { findHistory } from "#record/events.ts";
import { findRecord } from "#record/notifications.ts";
import { Acceptances, accept } from "#steps/walk/accept.ts";
import { openDatabase, type Queryable } from "#store/connection/database.ts";
import type { QueueHarness } from "../conformance/queue-harness.ts";
import { migratedDatabase } from "./postgres.ts";

/** However busy the machine is; some engines here wait until what was offered has come. */
const PATIENCE_MS = 60_000;
const monotonic = () => performance.now();

type Pair = readonly [Engine, Engine];

export type Beside = {
  /** As each of two processes has it; where one needs the database, made when there is one. */
  engines: Pair | ((db: Queryable) => Pair);
  /** Makes it forget everything. */
  empty(): Promise<void>;
};

export async function setUpQueue(beside?: Beside): Promise<QueueHarness> {
  const database = await migratedDatabase();
  const db = openDatabase({ url: database.url, acceptConnections: 2, connections: 10, onError: () => {} });
  const [engine, another] = (typeof beside?.engines === "function" ? beside.engines(db.own) : beside?.engines) ?? [];
  let offering = Promise.resolve();
  const acceptances = new Acceptances({
    db: db.accept,
    newId: createIds(),
    now: () => new Date(),
    abreast: 1,
    maxWaitingRows: 1e5,
    maxWaitingBytes: 1e9,
    ...(engine && { engines: [engine.name] }),
    onCommit({ handed }) {
      offering = offering.then(() => offer(db.own, engine, handed));
    },
  });
  if (engine) {
    await db.own.query("update carillon.engine set name = $1", [engine.name]);
    await tend(engine, db.own);
  }
  return {
    queue: createPostgresQueue(db.work, monotonic, {
      ...(engine && { engines: [engine] }),
      knownMs: 0,
      patienceMs: PATIENCE_MS,
      onEngineFailed: failed,
    }),
    another: createPostgresQueue(db.work, monotonic, {
      ...(another && { engines: [another] }),
      knownMs: 0,
      patienceMs: PATIENCE_MS,
      onEngineFailed: failed,
    }),
    db: db.own,
    pool: db.own,
    async enqueue(lanes, more = {}, tenant = 1) {
      const outcomes = await accept(
        tenant,
        lanes.map((priority) => ({ channel: "console", content: { body: "b" }, priority, ...more })),
        acceptances,
      );
      await offering;
      return outcomes.map((outcome) => (outcome as { notificationId: string }).notificationId);
    },
    async tenant(name, weight = 1) {
      const { rows } = await db.own.query<{ id: number }>(
        "insert into carillon.tenants (name, weight) values ($1, $2) returning id",
        [name, weight],
      );
      return rows[0]?.id as number;
    },
    async look(id) {
      const { attempts } = await findHistory(db.own, 1, id);
      const { status = "unknown" } = (await findRecord(db.own, 1, id)) ?? {};
      return {
        status,
        outcomes: attempts.map(({ outcome }) => outcome ?? ""),
        attempts: attempts.map(({ number }) => number),
      };
    },
    async postponements(id) {
      const { rows } = await db.own.query(
        "select from carillon.events where notification_id = $1 and type = 'postponed'",
        [id],
      );
      return rows.length;
    },
    async clear() {
      await db.own.query(
        "truncate carillon.ready, carillon.claims, carillon.later, carillon.handoffs, carillon.pauses, carillon.regions, carillon.notifications, carillon.events",
      );
      await beside?.empty();
      if (engine) await tend(engine, db.own);
    },
    async stop() {
      await acceptances.close();
      await db.close();
      await database.drop();
    },
  };
}

const failed = (engine: string, error: unknown) => process.stderr.write(`${engine}: ${error}\n`);

/** What the keeper does, once. */
export async function tend(engine: Engine, db: Queryable, size = 1000): Promise<number> {
  let offered = 0;
  for await (const some of engine.tend(db, size)) offered += some;
  return offered;
}

async function offer(db: Queryable, engine: Engine | undefined, handed: readonly Handoff[]): Promise<void> {
  if (engine) await bringHome(db, await engine.offer(handed));
}
