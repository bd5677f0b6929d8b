// Sources and sinks as they stand: what they carried, whether they are paused, why they do not go on. What they are is in the configuration.

import type { ConnectorKind } from "#domain/connector.ts";
import type { Fault } from "#domain/problems.ts";
import type { Queryable } from "#store/connection/database.ts";

export type ConnectorOf = { kind: ConnectorKind; name: string };
export type ConnectorRow = ConnectorOf & {
  type: string;
  carried: number;
  refused: number;
  movedAt: Date | null;
  error: string | null;
  failedAt: Date | null;
  pausedAt: Date | null;
  pausedBy: string | null;
  reason: string | null;
};
/** `isRun`: some process runs it. */
export type ListedConnector = ConnectorRow & { isRun: boolean };
/** `ends`: where the partition ended when it was last moved, where that was known. */
export type SourceOffset = {
  source: string;
  topic: string;
  partition: number;
  next: number;
  ends: number | null;
  movedAt: Date;
};
/** Of something that was refused for good. `place` is where it came from, in words of its kind. */
export type NewRefusal = { tenant?: number | undefined; place: string; code: string; faults: readonly Fault[] };
export type Untold = Pick<RefusalRow, "id" | "place" | "code" | "faults">;
export type RefusalRow = ConnectorOf & {
  id: number;
  tenant: string | null;
  place: string;
  code: string;
  faults: readonly Fault[];
  at: Date;
};

/** Whoever runs a source and says nothing for so long is gone. */
const SILENT_S = 30;
const COLUMNS = `kind, name, type, carried::float8 as carried, refused::float8 as refused, moved_at as "movedAt", error, failed_at as "failedAt",
  paused_at as "pausedAt", paused_by as "pausedBy", reason`;

/** A row for it, if there is none. */
export async function ensureConnector(db: Queryable, { kind, name }: ConnectorOf, type: string): Promise<void> {
  await db.query(
    `insert into carillon.connectors as c (kind, name, type) values ($1, $2, $3)
     on conflict (kind, name) do update set type = excluded.type where c.type <> excluded.type`,
    [kind, name, type],
  );
}

/** A source is run by whoever said so lately, a sink by whoever has its lease: `sink` and its name. */
const RUNS = `case kind when 'source' then coalesce(seen_at > clock_timestamp() - interval '${SILENT_S} s', false)
  else exists (select from carillon.leaders l where l.name = 'sink ' || c.name and l.until > clock_timestamp()) end`;

/** By kind and name; of one kind, or of both. */
export async function listConnectors(db: Queryable, kind?: ConnectorKind): Promise<ListedConnector[]> {
  const { rows } = await db.query<ListedConnector>(
    `select ${COLUMNS}, ${RUNS} as "isRun" from carillon.connectors c where $1::text is null or kind = $1 order by kind, name`,
    [kind ?? null],
  );
  return rows;
}

/** How far each partition has come, of all sources. */
export async function listOffsets(db: Queryable): Promise<SourceOffset[]> {
  const { rows } = await db.query<SourceOffset>(
    `select source, topic, partition, next::float8 as next, ends::float8 as ends, moved_at as "movedAt" from carillon.source_offsets
     order by source, topic, partition`,
  );
  return rows;
}

/** A process says that it runs a source, every few seconds. */
export async function touchConnector(db: Queryable, { kind, name }: ConnectorOf): Promise<void> {
  await db.query("update carillon.connectors set seen_at = clock_timestamp() where kind = $1 and name = $2", [
    kind,
    name,
  ]);
}

export async function lockConnector(tx: Queryable, { kind, name }: ConnectorOf): Promise<ConnectorRow | undefined> {
  const { rows } = await tx.query<ConnectorRow>(
    `select ${COLUMNS} from carillon.connectors where kind = $1 and name = $2 for update`,
    [kind, name],
  );
  return rows[0];
}

export async function isConnectorPaused(db: Queryable, { kind, name }: ConnectorOf): Promise<boolean> {
  const { rowCount } = await db.query({
    name: "carillon-connector-paused",
    text: "select from carillon.connectors where kind = $1 and name = $2 and paused_at is not null",
    values: [kind, name],
  });
  return rowCount === 1;
}

/** Its lease goes with it. What it refused is forgotten in its own time. */
export async function deleteConnector(tx: Queryable, { kind, name }: ConnectorOf): Promise<void> {
  await tx.query("delete from carillon.connectors where kind = $1 and name = $2", [kind, name]);
  await tx.query("delete from carillon.leaders where name = $1 || ' ' || $2 and until <= clock_timestamp()", [
    kind,
    name,
  ]);
}

/** Null for both: it goes on. */
export async function setConnectorPause(
  tx: Queryable,
  { kind, name }: ConnectorOf,
  { reason, by }: { reason: string | null; by: string | null },
): Promise<void> {
  await tx.query(
    `update carillon.connectors set reason = $3, paused_by = $4, paused_at = case when $3::text is not null then coalesce(paused_at, carillon.now()) end
     where kind = $1 and name = $2`,
    [kind, name, reason, by],
  );
}

/** In the transaction that keeps how far it has come. */
export async function countCarried(
  tx: Queryable,
  { kind, name }: ConnectorOf,
  { carried, refused }: { carried: number; refused: number },
): Promise<void> {
  await tx.query({
    name: "carillon-connector-carried",
    text: `update carillon.connectors set carried = carried + $3, refused = refused + $4, moved_at = carillon.now(), error = null, failed_at = null
      where kind = $1 and name = $2`,
    values: [kind, name, carried, refused],
  });
}

/** Undefined: it goes on. The first instant counts. */
export async function noteConnectorFailure(
  db: Queryable,
  { kind, name }: ConnectorOf,
  error: string | undefined,
): Promise<void> {
  await db.query(
    `update carillon.connectors set error = $3, failed_at = case when $3::text is not null then coalesce(failed_at, carillon.now()) end
     where kind = $1 and name = $2 and error is distinct from $3`,
    [kind, name, error ?? null],
  );
}

/** In the transaction that goes past them. `isToTell`: a topic of refusals is to have them, too. In the order that they were given. */
export async function keepRefusals(
  tx: Queryable,
  { kind, name }: ConnectorOf,
  refusals: readonly NewRefusal[],
  isToTell = false,
): Promise<number[]> {
  if (refusals.length === 0) return [];
  const { rows } = await tx.query<{ id: number; place: string }>(
    `insert into carillon.refusals (kind, name, tenant, place, code, faults, is_untold)
     select $1, $2, r.tenant, r.place, r.code, r.faults, $4
     from json_to_recordset($3) as r(tenant integer, place text, code text, faults json)
     returning id::float8 as id, place`,
    [kind, name, JSON.stringify(refusals), isToTell],
  );
  const ids = new Map(rows.map(({ id, place }) => [place, id]));
  return refusals.map(({ place }) => ids.get(place) as number);
}

/** What a topic of refusals should have and does not, the oldest first; of those that came a while ago, as the others are being told. */
export async function listUntold(
  db: Queryable,
  { kind, name }: ConnectorOf,
  { sinceSeconds, limit }: { sinceSeconds: number; limit: number },
): Promise<Untold[]> {
  const { rows } = await db.query<Untold>(
    `select id::float8 as id, place, code, faults from carillon.refusals
     where kind = $1 and name = $2 and is_untold and at <= carillon.now() - $3 * interval '1 second' order by id limit $4`,
    [kind, name, sinceSeconds, limit],
  );
  return rows;
}

export async function markTold(db: Queryable, ids: readonly number[]): Promise<void> {
  await db.query("update carillon.refusals set is_untold = false where id = any ($1::bigint[])", [ids]);
}

/** The latest first, from before `beforeId`; of one tenant, or of all. */
export async function listRefusals(
  db: Queryable,
  {
    tenant,
    kind,
    name,
    beforeId,
    limit,
  }: { tenant?: number; kind?: string; name?: string; beforeId?: number; limit: number },
): Promise<RefusalRow[]> {
  const { rows } = await db.query<RefusalRow>(
    `select r.id::float8 as id, r.kind, r.name, t.name as tenant, r.place, r.code, r.faults, r.at
     from carillon.refusals r left join carillon.tenants t on t.id = r.tenant
     where ($1::integer is null or r.tenant = $1) and ($2::text is null or r.kind = $2) and ($3::text is null or r.name = $3)
       and ($4::bigint is null or r.id < $4)
     order by r.id desc limit $5`,
    [tenant ?? null, kind ?? null, name ?? null, beforeId ?? null, limit],
  );
  return rows;
}

/** Forgets the oldest, a batch at a time; answers with how many. */
export async function forgetRefusals(db: Queryable, days: number, batch: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from carillon.refusals where id = any (array(
       select id from carillon.refusals where at <= carillon.now() - $1 * interval '1 day' order by at limit $2 for update skip locked))`,
    [days, batch],
  );
  return rowCount ?? 0;
}
