// Who is at work: a row per worker process, with a heartbeat.

import type { EngineName } from "#domain/handoff.ts";
import type { WorkerTakes } from "#domain/worker-takes.ts";
import type { Queryable } from "#store/connection/database.ts";

export type WorkerRow = {
  name: string;
  startedAt: Date;
  seenAt: Date;
  stoppedAt: Date | null;
  isAlive: boolean;
  /** Null where it does not say: everything. */
  takes: WorkerTakes | null;
  /** What it takes from besides PostgreSQL; null where it does not say. */
  engines: readonly EngineName[] | null;
  stats: { [name: string]: number };
};

const IS_ALIVE = "stopped_at is null and seen_at > now() - $1 * interval '1 ms'";

export async function registerWorker(
  db: Queryable,
  { name, takes, engines }: Pick<WorkerRow, "name" | "engines"> & { takes: WorkerTakes },
): Promise<number> {
  const { rows } = await db.query<{ id: number }>(
    "insert into carillon.workers (name, takes, engines) values ($1, $2, $3) returning id",
    [name, JSON.stringify(takes), engines],
  );
  return rows[0]?.id as number;
}

export async function beat(db: Queryable, id: number, stats: { [name: string]: number }): Promise<void> {
  await db.query("update carillon.workers set seen_at = now(), stats = $2 where id = $1", [id, JSON.stringify(stats)]);
}

export async function signOff(db: Queryable, id: number): Promise<void> {
  await db.query("update carillon.workers set stopped_at = now(), seen_at = now() where id = $1", [id]);
}

/** The living, and those that went during the last hour. */
export async function listWorkers(db: Queryable, silentMs: number): Promise<WorkerRow[]> {
  const { rows } = await db.query<WorkerRow>(
    `select name, started_at as "startedAt", seen_at as "seenAt", stopped_at as "stoppedAt", takes, engines, stats,
       ${IS_ALIVE} as "isAlive"
     from carillon.workers where seen_at > now() - interval '1 hour' order by id desc limit 1000`,
    [silentMs],
  );
  return rows;
}

/** Workers that fell silent without a word, a batch at a time; returns how many. */
export async function buryWorkers(db: Queryable, silentMs: number, batch: number): Promise<number> {
  const { rowCount } = await db.query(
    `update carillon.workers set stopped_at = seen_at where id = any (array(
       select id from carillon.workers where stopped_at is null and seen_at < now() - $1 * interval '1 ms'
       limit $2 for update skip locked))`,
    [silentMs, batch],
  );
  return rowCount ?? 0;
}

/** What those take that have a fresh heartbeat and take anything at all. */
export async function listTakes(db: Queryable, silentMs: number): Promise<WorkerTakes[]> {
  const { rows } = await db.query<{ takes: WorkerTakes }>({
    name: "carillon-takes",
    text: `select coalesce(takes, '{}') as takes from carillon.workers where ${IS_ALIVE}`,
    values: [silentMs],
  });
  return rows.map(({ takes }) => takes).filter(({ lanes }) => lanes?.length !== 0);
}

/** From where those take that have a fresh heartbeat and take notifications at all. */
export async function listEngines(
  db: Queryable,
  silentMs: number,
): Promise<{ name: string; engines: readonly EngineName[] }[]> {
  const { rows } = await db.query<{ name: string; takes: WorkerTakes; engines: EngineName[] }>(
    `select name, coalesce(takes, '{}') as takes, coalesce(engines, '{}') as engines from carillon.workers where ${IS_ALIVE}`,
    [silentMs],
  );
  return rows.filter(({ takes }) => takes.lanes?.length !== 0);
}
