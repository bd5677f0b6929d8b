// Where users can be pushed to.

import type { Reply } from "#domain/attempt.ts";
import type { Device } from "#domain/device.ts";
import { cut } from "#domain/text.ts";
import type { Queryable } from "#store/connection/database.ts";

export type StoredDevice = Device & {
  userId: string;
  createdAt: Date;
  updatedAt: Date;
  deadAt: Date | null;
  deadReason: string | null;
};
type Row = Omit<StoredDevice, "subscription"> & { subscription: Device["subscription"] | null };

const COLUMNS = `d.token, d.user_id as "userId", platform, subscription, created_at as "createdAt", updated_at as "updatedAt",
  dead_at as "deadAt", dead_reason as "deadReason"`;

function deviceOf({ subscription, ...rest }: Row): StoredDevice {
  return subscription ? { ...rest, subscription } : rest;
}

/** Registering brings a dead token back to life, and moves one that belonged to somebody else. */
export async function putDevice(
  db: Queryable,
  tenant: number,
  userId: string,
  { token, platform, subscription }: Device,
): Promise<StoredDevice> {
  const { rows } = await db.query<Row>(
    `insert into carillon.devices as d (tenant, token, user_id, platform, subscription) values ($1, $2, $3, $4, $5)
     on conflict (tenant, carillon.digest(token)) do update set user_id = $3, platform = $4, subscription = $5,
       updated_at = carillon.now(), dead_at = null, dead_reason = null
     returning ${COLUMNS}`,
    [tenant, token, userId, platform, subscription ? JSON.stringify(subscription) : null],
  );
  return deviceOf(rows[0] as Row);
}

export async function deleteDevice(db: Queryable, tenant: number, userId: string, token: string): Promise<boolean> {
  const { rowCount } = await db.query(
    "delete from carillon.devices where tenant = $1 and user_id = $2 and token = $3",
    [tenant, userId, token],
  );
  return (rowCount ?? 0) > 0;
}

export async function listDevices(db: Queryable, tenant: number, userId: string): Promise<StoredDevice[]> {
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from carillon.devices d where tenant = $1 and user_id = $2 order by created_at limit 500`,
    [tenant, userId],
  );
  return rows.map(deviceOf);
}

/** A claim may be for a thousand users, and a tenant may register devices without end. */
const MOST_DEVICES = 100;

/** The active devices of many users, by `tenant userId`: of each those that were registered last. */
export async function activeDevicesOf(
  db: Queryable,
  users: readonly { tenant: number; userId: string }[],
): Promise<Map<string, Device[]>> {
  type Found = Pick<Row, "token" | "platform" | "subscription"> & { tenant: number; userId: string };
  const { rows } = await db.query<Found>({
    name: "carillon-devices-of-users",
    text: `select w.tenant, w.user_id as "userId", d.token, d.platform, d.subscription from (
        select distinct * from unnest($1::int[], $2::text[]) as u(tenant, user_id)
      ) w cross join lateral (
        select * from carillon.devices d where d.tenant = w.tenant and d.user_id = w.user_id and d.dead_at is null
        order by d.updated_at desc limit ${MOST_DEVICES}
      ) d`,
    values: [users.map(({ tenant }) => tenant), users.map(({ userId }) => userId)],
  });
  const found = new Map<string, Device[]>();
  for (const { tenant, userId, token, platform, subscription } of rows) {
    const key = `${tenant} ${userId}`;
    const devices = found.get(key) ?? [];
    devices.push({ token, platform, ...(subscription && { subscription }) });
    found.set(key, devices);
  }
  return found;
}

/** What is known of these tokens, by `tenant token`. */
export async function devicesNamed(
  db: Queryable,
  tokens: readonly { tenant: number; token: string }[],
): Promise<Map<string, Device>> {
  const { rows } = await db.query<Row & { tenant: number }>({
    name: "carillon-devices-named",
    text: `select d.tenant, ${COLUMNS} from (
        select distinct * from unnest($1::int[], $2::text[]) as u(tenant, token)
      ) w join carillon.devices d on d.tenant = w.tenant and carillon.digest(d.token) = carillon.digest(w.token)`,
    values: [tokens.map(({ tenant }) => tenant), tokens.map(({ token }) => token)],
  });
  return new Map(rows.map(({ tenant, ...row }) => [`${tenant} ${row.token}`, deviceOf(row)]));
}

export async function deactivateDevice(db: Queryable, tenant: number, token: string, reason: string): Promise<void> {
  await db.query(
    `update carillon.devices set dead_at = carillon.now(), dead_reason = $3
     where tenant = $1 and carillon.digest(token) = carillon.digest($2) and dead_at is null`,
    [tenant, token, cut(reason, 300)],
  );
}

/** Dead for so long that nobody will ask. */
export async function purgeDevices(db: Queryable, days: number, batch: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from carillon.devices where ctid = any (array(
       select ctid from carillon.devices where dead_at <= carillon.now() - $1 * interval '1 day' limit $2 for update skip locked))`,
    [days, batch],
  );
  return rowCount ?? 0;
}

const SETTLED = new Set<string>(["accepted", "dead-recipient", "rejected"] satisfies Reply["kind"][]);

/** What earlier attempts at a notification came to, for the tokens that need no more attempts. */
export async function settledDevices(db: Queryable, notificationId: string): Promise<Map<string, Reply["kind"]>> {
  const { rows } = await db.query<{ devices: { token: string; outcome: Reply["kind"] }[] | null }>(
    `select detail -> 'devices' as devices from carillon.events e where notification_id = $1 and type = 'attempt' and not exists (
       select from carillon.events r where r.notification_id = $1 and r.type = 'retried' and (r.seq, r.at) > (e.seq, e.at))`,
    [notificationId],
  );
  const settled = rows.flatMap(({ devices }) => devices ?? []).filter(({ outcome }) => SETTLED.has(outcome));
  return new Map(settled.map(({ token, outcome }) => [token, outcome]));
}

/** All that were last registered by then. */
export async function deleteDevicesOf(tx: Queryable, tenant: number, userId: string, until: Date): Promise<void> {
  await tx.query("delete from carillon.devices where tenant = $1 and user_id = $2 and updated_at <= $3", [
    tenant,
    userId,
    until,
  ]);
}
