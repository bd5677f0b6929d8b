// What the provider dev kept.

import type { Device } from "#domain/device.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Queryable } from "#store/connection/database.ts";

export type Kept = { tenant: number; notificationId: string; request: NotificationRequest; device?: Device };
export type DevMessage = { id: string; notificationId: string; channel: string; message: unknown; at: Date };

const KEPT = 1_000;

/** Keeps the latest of each tenant; the oldest go, now and then. */
export async function keepDevMessage(db: Queryable, { tenant, notificationId, request, device }: Kept): Promise<void> {
  const { rows } = await db.query<{ id: string }>({
    name: "carillon-dev-keep",
    text: `insert into carillon.dev_messages (tenant, notification_id, channel, message) values ($1, $2, $3, $4)
      returning id`,
    values: [tenant, notificationId, request.channel, JSON.stringify({ ...request, ...(device && { device }) })],
  });
  if (Number(rows[0]?.id) % 100 !== 0) return;
  await db.query(
    `delete from carillon.dev_messages where tenant = $1 and id < (
       select id from carillon.dev_messages where tenant = $1 order by id desc offset $2 limit 1)`,
    [tenant, KEPT],
  );
}

/** The latest first. */
export async function listDevMessages(
  db: Queryable,
  tenant: number,
  filter: { channel?: string; notificationId?: string },
  before: string | undefined,
  limit: number,
): Promise<DevMessage[]> {
  const { rows } = await db.query<DevMessage>(
    `select id, notification_id as "notificationId", channel, message, at from carillon.dev_messages
     where tenant = $1 and ($2::text is null or channel = $2) and ($3::uuid is null or notification_id = $3)
       and ($4::bigint is null or id < $4) order by id desc limit $5`,
    [tenant, filter.channel ?? null, filter.notificationId ?? null, before ?? null, limit],
  );
  return rows;
}

/** Answers with how many there were. */
export async function clearDevMessages(db: Queryable, tenant: number): Promise<number> {
  const { rowCount } = await db.query("delete from carillon.dev_messages where tenant = $1", [tenant]);
  return rowCount ?? 0;
}
