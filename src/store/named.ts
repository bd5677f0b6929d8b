// Notices that name a user: in schedules, in reminders, and in what is under way of them.

import type { Notice } from "#domain/notice.ts";
import type { Queryable } from "#store/connection/database.ts";

export type NoticeTable = "schedules" | "reminders" | "broadcasts";
export type NamedNotice = { key: string; notice: Notice; reached: number };

/** What each is known by, in an order. */
export const KEYS = { schedules: "key", reminders: "key", broadcasts: "lpad(id::text, 20, '0')" };
/** Whether a notice names the user $2. */
export const NAMES = `(notice #>> '{recipient,userId}' = $2 or exists (select from json_array_elements(
  case json_typeof(notice -> 'recipients') when 'array' then notice -> 'recipients' else '[]' end) r where r ->> 'userId' = $2))`;

/**
 * Looks at so many of a tenant's, from after `reached` in the order of their keys. Those that name the user are locked until the transaction
 * ends. `next` says where to go on, undefined at the end.
 */
export async function findNamed(
  tx: Queryable,
  table: NoticeTable,
  { tenant, userId }: { tenant: number; userId: string },
  reached: string,
  limit: number,
): Promise<{ named: NamedNotice[]; next: string | undefined }> {
  const key = KEYS[table];
  const { rows: seen } = await tx.query<{ key: string; names: boolean }>(
    `select ${key} as key, ${NAMES} as names from carillon.${table} where tenant = $1 and ${key} > $3 order by 1 limit $4`,
    [tenant, userId, reached, limit],
  );
  const keys = seen.filter(({ names }) => names).map((one) => one.key);
  const count = table === "broadcasts" ? "reached" : "0 as reached";
  const { rows: named } = await tx.query<NamedNotice>(
    `select ${key} as key, notice, ${count} from carillon.${table} where tenant = $1 and ${key} = any ($2) order by 1 for update`,
    [tenant, keys],
  );
  return { named, next: seen.length === limit ? seen.at(-1)?.key : undefined };
}

/** Without the user in it. The rest goes on where it stands. */
export async function changeNotice(
  tx: Queryable,
  table: NoticeTable,
  tenant: number,
  { key, notice, reached }: NamedNotice,
): Promise<void> {
  const also = table === "broadcasts" ? ", reached = $4" : "";
  await tx.query(`update carillon.${table} set notice = $3${also} where tenant = $1 and ${KEYS[table]} = $2`, [
    tenant,
    key,
    JSON.stringify(notice),
    ...(table === "broadcasts" ? [reached] : []),
  ]);
}

export async function deleteNotice(tx: Queryable, table: NoticeTable, tenant: number, key: string): Promise<void> {
  await tx.query(`delete from carillon.${table} where tenant = $1 and ${KEYS[table]} = $2`, [tenant, key]);
}

/** What one of them has sent to the user since. */
export async function sentSince(
  tx: Queryable,
  table: Exclude<NoticeTable, "broadcasts">,
  { tenant, userId, requestedAt }: { tenant: number; userId: string; requestedAt: Date },
  keys: readonly string[],
): Promise<string[]> {
  const from = { schedules: "runs", reminders: "reminder_plan" }[table];
  const { rows } = await tx.query<{ id: string }>(
    `select n.id from carillon.${from} r, unnest(r.notifications) as sent(id)
     join carillon.notifications n on n.tenant = $1 and n.id = sent.id
     where r.tenant = $1 and r.key = any ($2) and n.user_id = $3 and n.accepted_at > $4`,
    [tenant, keys, userId, requestedAt],
  );
  return rows.map(({ id }) => id);
}
