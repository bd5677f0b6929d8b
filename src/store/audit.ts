// The audit log: who did what to what. A line is written in the change's own transaction, so that neither is there without the other.

import type { Actor } from "#domain/actor.ts";
import { changeOf, type Deed, type Fields, PEOPLE } from "#domain/audit.ts";
import type { Queryable } from "#store/connection/database.ts";

/** Where a line stands, for a change that goes on in further transactions. */
export type AuditPlace = { at: string; seq: string };

/**
 * Says who did it, with the transaction `tx` that makes the change: if the line cannot be written the change is not made either.
 * Writes nothing, and answers with undefined, where nothing is other than before.
 */
export async function writeAudit(tx: Queryable, actor: Actor, deed: Deed): Promise<AuditPlace | undefined> {
  const change = changeOf(deed);
  if (!change) return undefined;
  const { action, object, tenant, about } = deed;
  const line = {
    ...columnsOf(actor),
    ...{ action, tenant, about, objectKind: object.kind, objectName: object.name, isPerson: PEOPLE.has(object.kind) },
    before: change.before && storable(change.before),
    after: change.after && storable(change.after),
  };
  const { rows } = await tx.query<AuditPlace>("select at::text, seq from carillon.write_audit($1)", [storable(line)]);
  return rows[0];
}

/** One change, one line, also where it takes many transactions: with each of them its line tells what was done so far. */
export async function amendAudit(tx: Queryable, { at, seq }: AuditPlace, after: Fields): Promise<void> {
  await tx.query("update carillon.audit set after = coalesce(after, '{}') || $3::jsonb where at = $1 and seq = $2", [
    at,
    seq,
    storable(after),
  ]);
}

function columnsOf(actor: Actor) {
  switch (actor.kind) {
    case "key": {
      const { keyId, keyName, session, tenant, from } = actor;
      return { actorKind: actor.kind, actor: keyId, actorName: keyName, session, byTenant: tenant, ...from };
    }
    case "user":
      return { actorKind: actor.kind, actor: actor.userId, byTenant: actor.tenant, ...actor.from };
    case "provider":
      return { actorKind: actor.kind, actor: actor.provider, byTenant: actor.owner === 0 ? undefined : actor.owner };
    case "process":
      return { actorKind: actor.kind, actor: actor.what };
    case "command-line":
      return { actorKind: actor.kind, actor: actor.command, actorName: actor.user };
  }
}

/** What PostgreSQL cannot hold in JSON must not undo what was done: NUL, and halves of characters. */
const storable = (value: unknown): string =>
  JSON.stringify(value, (_name, part: unknown) =>
    typeof part === "string" ? part.replaceAll("\0", "").toWellFormed() : part,
  );

const MONTHS_AHEAD = 2;

/** Partitions for the months to come. */
export async function* makeAuditMonths(db: Queryable): AsyncGenerator<number, void> {
  const { rows } = await db.query<{ made: number }>("select carillon.make_audit_months($1) as made", [MONTHS_AHEAD]);
  yield rows[0]?.made ?? 0;
}

/** Ends the keeping of what is older: a month, or so many lines outside of one. As many as asked for means that there is more. */
export async function forgetAudit(db: Queryable, days: number, most: number): Promise<number> {
  const { rows } = await db.query<{ gone: number }>(
    "select carillon.forget_audit(carillon.now() - $1 * interval '1 day', $2) as gone",
    [days, most],
  );
  return rows[0]?.gone ?? 0;
}
