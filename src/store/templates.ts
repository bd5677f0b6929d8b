// Templates and their versions.

import type { Queryable } from "#store/connection/database.ts";

/** `Content` is what the templates layer stores and reads; here it is only JSON. */
export type TemplateVersion<Content = unknown> = {
  id: string;
  version: number;
  channel: string;
  name: string;
  content: Content;
  engine: string;
  strict: boolean;
  createdAt: Date;
};
export type StoredTemplate = TemplateVersion & { activeVersion: number; latestVersion: number };
export type NewVersion = Pick<TemplateVersion, "id" | "channel" | "name" | "content" | "engine" | "strict">;

const COLUMNS = `v.id, v.version, v.channel, v.name, v.content, v.engine, v.strict, v.created_at as "createdAt",
  t.active_version as "activeVersion", t.latest_version as "latestVersion"`;
const BOTH = "carillon.templates t join carillon.template_versions v on v.tenant = t.tenant and v.id = t.id";

/**
 * Stores the next version, with the latest before it; the latest one as it is when it says the same already. The first is active whatever `isActivated` says, for
 * a template without an active version could not be sent. Undefined when the template exists for another channel.
 */
export async function putVersion(
  tx: Queryable,
  tenant: number,
  given: NewVersion,
  isActivated: boolean,
): Promise<{ before: StoredTemplate | undefined; stored: StoredTemplate } | undefined> {
  const { id, channel, name, content, engine, strict } = given;
  await tx.query(
    `insert into carillon.templates (tenant, id, channel, latest_version) values ($1, $2, $3, 0) on conflict do nothing`,
    [tenant, id, channel],
  );
  // Before anything is compared: whoever holds the row may be storing the very same text.
  await tx.query("select from carillon.templates where tenant = $1 and id = $2 for update", [tenant, id]);
  const { rows } = await tx.query<{ version: number; isMine: boolean; isSame: boolean }>(
    `select t.latest_version as version, t.channel = $3 or t.active_version is null as "isMine",
       (v.channel, v.name, v.content::jsonb, v.engine, v.strict) is not distinct from ($3, $4, $5::jsonb, $6, $7::boolean) as "isSame"
     from carillon.templates t
     left join carillon.template_versions v on v.tenant = t.tenant and v.id = t.id and v.version = t.latest_version
     where t.tenant = $1 and t.id = $2`,
    [tenant, id, channel, name, JSON.stringify(content), engine, strict],
  );
  const [latest] = rows;
  if (!latest?.isMine) return undefined;
  const before = await findTemplate(tx, tenant, id, latest.version);
  const version = latest.isSame ? latest.version : latest.version + 1;
  if (!latest.isSame) await insertVersion(tx, tenant, version, given);
  await tx.query(
    `update carillon.templates set channel = $3, latest_version = $4,
       active_version = case when $5 or active_version is null then $4 else active_version end
     where tenant = $1 and id = $2`,
    [tenant, id, channel, version, isActivated],
  );
  const stored = await findTemplate(tx, tenant, id, version);
  return stored && { before, stored };
}

async function insertVersion(
  tx: Queryable,
  tenant: number,
  version: number,
  { id, channel, name, content, engine, strict }: NewVersion,
): Promise<void> {
  await tx.query(
    `insert into carillon.template_versions (tenant, id, version, channel, name, content, engine, strict)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [tenant, id, version, channel, name, JSON.stringify(content), engine, strict],
  );
}

/** The given version, or the active one. */
export async function findTemplate(
  db: Queryable,
  tenant: number,
  id: string,
  version?: number,
): Promise<StoredTemplate | undefined> {
  const { rows } = await db.query<StoredTemplate>(
    `select ${COLUMNS} from ${BOTH} where t.tenant = $1 and t.id = $2 and v.version = coalesce($3, t.active_version)`,
    [tenant, id, version ?? null],
  );
  return rows[0];
}

/** Their active versions, those that exist. */
export async function findPartials(db: Queryable, tenant: number, ids: string[]): Promise<StoredTemplate[]> {
  const { rows } = await db.query<StoredTemplate>(
    `select ${COLUMNS} from ${BOTH}
     where t.tenant = $1 and t.id = any($2) and t.channel = 'partial' and v.version = t.active_version`,
    [tenant, ids],
  );
  return rows;
}

/** The active versions, in order of their ids, from after `afterId`. */
export async function listTemplates(
  db: Queryable,
  tenant: number,
  afterId: string,
  limit: number,
): Promise<StoredTemplate[]> {
  const { rows } = await db.query<StoredTemplate>(
    `select ${COLUMNS} from ${BOTH}
     where t.tenant = $1 and t.id > $2 and v.version = t.active_version order by t.id limit $3`,
    [tenant, afterId, limit],
  );
  return rows;
}

/** The latest first, from before `beforeVersion`. */
export async function listVersions(
  db: Queryable,
  tenant: number,
  id: string,
  beforeVersion: number | undefined,
  limit: number,
): Promise<StoredTemplate[]> {
  const { rows } = await db.query<StoredTemplate>(
    `select ${COLUMNS} from ${BOTH}
     where t.tenant = $1 and t.id = $2 and ($3::integer is null or v.version < $3) order by v.version desc limit $4`,
    [tenant, id, beforeVersion ?? null, limit],
  );
  return rows;
}

export type ActivatedTemplate = StoredTemplate & { activeBefore: number };

/** Undefined when there is no such version. */
export async function activateVersion(
  db: Queryable,
  tenant: number,
  id: string,
  version: number,
): Promise<ActivatedTemplate | undefined> {
  const { rows } = await db.query<ActivatedTemplate>(
    `with old as (select active_version from carillon.templates where tenant = $1 and id = $2 for update)
     update carillon.templates t set active_version = v.version from carillon.template_versions v, old
     where t.tenant = $1 and t.id = $2 and v.tenant = t.tenant and v.id = t.id and v.version = $3
     returning ${COLUMNS}, old.active_version as "activeBefore"`,
    [tenant, id, version],
  );
  return rows[0];
}

/** How many versions went. Two statements, so that the second also sees one that was stored while the first waited for the row. */
export async function deleteTemplate(tx: Queryable, tenant: number, id: string): Promise<number> {
  await tx.query("update carillon.templates set active_version = null where tenant = $1 and id = $2", [tenant, id]);
  const { rowCount } = await tx.query("delete from carillon.template_versions where tenant = $1 and id = $2", [
    tenant,
    id,
  ]);
  return rowCount ?? 0;
}
