// The mailbox: what the provider dev kept.

import type { Device } from "#domain/device.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Queryable } from "#store/connection/database.ts";

/** `wire` as the channel's own provider would have written it. */
export type Kept = {
  tenant: number;
  notificationId: string;
  attempt: number;
  request: NotificationRequest;
  device?: Device;
  wire: { readonly [name: string]: unknown };
};
export type DevMessage = {
  id: string;
  notificationId: string;
  channel: string;
  to: string[];
  message: NotificationRequest & { device?: Device };
  at: Date;
};
export type WholeDevMessage = DevMessage & { wire: { readonly [name: string]: unknown } | null };

/** Of each tenant; the oldest go first. */
export const MOST_KEPT = 1_000;
export const MOST_KEPT_BYTES = 50 * 1024 * 1024;
/** A page is no larger than this, but for a single message that is. */
const PAGE_BYTES = 4 * 1024 * 1024;
const WORDS = 4_000;

export async function keepDevMessages(db: Queryable, kept: readonly Kept[]): Promise<void> {
  const rows = kept.map(({ tenant, notificationId, attempt, request, device, wire }) => {
    const recipients = recipientsOf(request, device);
    const message = { ...request, ...(device && { device }) };
    return {
      ...{ t: tenant, i: notificationId, c: request.channel, m: message, w: { ...wire, attempt } },
      ...{ r: recipients, q: wordsOf(request, recipients) },
    };
  });
  await db.query({
    name: "carillon-dev-keep",
    text: "select carillon.keep_dev_messages($1, $2, $3)",
    values: [storable(rows), MOST_KEPT, MOST_KEPT_BYTES],
  });
}

function recipientsOf({ recipient = {}, content }: NotificationRequest, device: Device | undefined): string[] {
  const { email, phone, slackChannel, webhookUrl, userId } = recipient;
  const named = [email, phone, slackChannel, webhookUrl, ...(content.cc ?? []), ...(content.bcc ?? [])];
  return [...named, device?.token, userId].flatMap((one) => (one === undefined ? [] : one.toLowerCase()));
}

function wordsOf({ content }: NotificationRequest, recipients: readonly string[]): string {
  const { subject, title, body, textBody, htmlBody } = content;
  const said = [subject, title, body, textBody ?? htmlBody].filter((one) => one !== undefined);
  return [...recipients, ...said].join("\n").slice(0, WORDS).toLowerCase();
}

/** Without what PostgreSQL cannot hold in text: NUL, and halves of characters. */
const storable = (value: unknown): string =>
  JSON.stringify(value, (_name, part: unknown) =>
    typeof part === "string" ? part.replaceAll("\0", "").toWellFormed() : part,
  );

export type DevFilter = {
  channel?: string;
  notificationId?: string;
  /** Anybody it went to, whole. */
  to?: string;
  /** Some of its words. */
  search?: string;
  /** Ids beyond this one. */
  after?: string;
  /** Ids below this one. */
  cursor?: string;
};

/** The latest first. */
export async function listDevMessages(
  db: Queryable,
  tenant: number,
  { channel, notificationId, to, search, after, cursor }: DevFilter,
  limit: number,
): Promise<{ data: DevMessage[]; isCut: boolean }> {
  const { rows } = await db.query<DevMessage & { found: number }>({
    name: "carillon-dev-list",
    text: `select id, "notificationId", channel, "to", message, at, found from (
       select *, sum(bytes) over (order by id desc) - bytes as before, count(*) over ()::integer as found from (
         select id, notification_id as "notificationId", channel, recipients as "to", message, at, bytes from carillon.dev_messages
         where tenant = $1 and ($2::text is null or channel = $2) and ($3::uuid is null or notification_id = $3)
           and ($4::text is null or recipients @> array[$4]) and ($5::text is null or position($5 in words) > 0)
           and ($6::bigint is null or id > $6) and ($7::bigint is null or id < $7)
         order by id desc limit $8) latest) page
     where before < ${PAGE_BYTES} order by id desc`,
    values: [
      tenant,
      ...[channel, notificationId, to?.toLowerCase(), search?.toLowerCase(), after, cursor].map((one) => one ?? null),
      limit + 1,
    ],
  });
  const data = rows.slice(0, limit).map(({ found: _, ...row }) => row);
  return { data, isCut: (rows[0]?.found ?? 0) > data.length };
}

export async function findDevMessage(db: Queryable, tenant: number, id: string): Promise<WholeDevMessage | undefined> {
  const { rows } = await db.query<WholeDevMessage>(
    `select id, notification_id as "notificationId", channel, recipients as "to", message, at, wire
     from carillon.dev_messages where tenant = $1 and id = $2`,
    [tenant, id],
  );
  return rows[0];
}

/** Whether it was there. */
export async function deleteDevMessage(db: Queryable, tenant: number, id: string): Promise<boolean> {
  const { rowCount } = await db.query("delete from carillon.dev_messages where tenant = $1 and id = $2", [tenant, id]);
  return rowCount === 1;
}

/** Answers with how many there were. */
export async function clearDevMessages(db: Queryable, tenant: number): Promise<number> {
  const { rowCount } = await db.query("delete from carillon.dev_messages where tenant = $1", [tenant]);
  return rowCount ?? 0;
}
