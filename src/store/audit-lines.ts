// Reads the audit log, for whom it concerns: those whose thing was changed, and those who did it.

import { PEOPLE } from "#domain/audit.ts";
import type { Queryable } from "#store/connection/database.ts";
import { lowered } from "./suppressions.ts";

export type AuditLine = {
  seq: string;
  at: Date;
  /** Whose it is that was changed. */
  tenant: string;
  actorKind: string;
  actor: string;
  actorName: string | null;
  session: string | null;
  action: string;
  object: string;
  before: unknown;
  after: unknown;
  address: string | null;
  requestId: string | null;
};

export type AuditFilter = { since?: string; until?: string; actor?: string; action?: string; object?: string };

const COLUMNS = `a.seq, a.at, t.name as tenant, a.actor_kind as "actorKind", a.actor, a.actor_name as "actorName", a.session, a.action, a.object,
  a.before, a.after, a.address, a.request_id as "requestId"`;

/**
 * The newest first, from below `beforeSeq`. Only whom it concerns and the time have an index: with other filters it looks at no more than
 * `maxScanned` lines, and `nextSeq` says where to go on.
 */
export async function listAudit(
  db: Queryable,
  tenant: number,
  filter: AuditFilter,
  { beforeSeq, limit, maxScanned }: { beforeSeq: string | undefined; limit: number; maxScanned: number },
): Promise<{ lines: AuditLine[]; nextSeq: string | undefined }> {
  const values: unknown[] = [tenant];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const narrow = ["true"];
  if (beforeSeq !== undefined) narrow.push(`seq < ${bind(beforeSeq)}`);
  if (filter.since !== undefined) narrow.push(`at >= ${bind(filter.since)}`);
  if (filter.until !== undefined) narrow.push(`at < ${bind(filter.until)}`);
  const keep = ["true"];
  if (filter.actor !== undefined) keep.push(`${bind(filter.actor)} in (actor, actor_name)`);
  if (filter.action !== undefined) keep.push(`action = ${bind(filter.action)}`);
  if (filter.object !== undefined) keep.push(named(filter.object, bind));

  const most = bind(maxScanned);
  const of = (column: string) => `(select at, seq, actor, actor_name, action, object from carillon.audit
    where ${column} = $1 and ${narrow.join(" and ")} order by seq desc limit ${most})`;
  const { rows } = await db.query<AuditLine & { scanned: number; lastSeq: string | null }>(
    `with scanned as materialized (
       select * from (${of("tenant")} union all ${of("by_tenant")}) concerned order by seq desc limit ${most}
     ), extent as (
       select count(*)::int as scanned, min(seq) as "lastSeq" from scanned
     ), found as materialized (
       select at, seq from scanned where ${keep.join(" and ")} order by seq desc limit ${bind(limit + 1)}
     )
     select ${COLUMNS}, extent.* from extent left join found on true
     left join carillon.audit a on a.at = found.at and a.seq = found.seq left join carillon.tenants t on t.id = a.tenant
     order by found.seq desc`,
    values,
  );
  const { scanned = 0, lastSeq = null } = rows[0] ?? {};
  const found = rows.filter(({ seq }) => seq !== null);
  const lines = found.slice(0, limit);
  const nextSeq =
    found.length > limit ? lines.at(-1)?.seq : scanned === maxScanned ? (lastSeq ?? undefined) : undefined;
  return { lines, nextSeq };
}

/** A kind alone is everything of it. Who asks for somebody by name finds what is kept under their pseudonym. */
function named(object: string, bind: (value: unknown) => string): string {
  const [kind = "", ...rest] = object.split(":");
  const name = rest.join(":");
  if (name === "") return `split_part(object, ':', 1) = ${bind(kind)}`;
  if (!PEOPLE.has(kind) || name.startsWith("~")) return `object = ${bind(object)}`;
  const known = kind === "suppression" ? lowered(name) : name;
  return `object = ${bind(`${kind}:`)} || (select carillon.pseudonym($1, ${bind(known)}))`;
}
