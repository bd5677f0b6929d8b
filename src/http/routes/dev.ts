// /v1/dev/messages: the mailbox, with what would have gone out, for a developer without credentials and for tests that wait for a mail.

import { type Static, Type } from "typebox";
import { CHANNELS, Instant, oneOf, strict } from "#domain/notification.ts";
import type { Waits } from "#following/waits.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id, pageBody } from "#http/core/schemas.ts";
import type { RequestTurns } from "#http/core/turns.ts";
import { type DevWorld, forgetDevMessages } from "#steps/manage/dev-messages.ts";
import type { Queryable } from "#store/connection/database.ts";
import { type DevMessage, listDevMessages } from "#store/dev-messages.ts";

export const DEV_TAG = "Development";
export const MessageId = Type.String({ pattern: "^[0-9]{1,18}$", "x-expects": "a message's id" });

export const KeptBody = Type.Object({
  id: MessageId,
  notificationId: Id,
  channel: oneOf(CHANNELS),
  to: Type.Array(Type.String(), { description: "Everybody it would have gone to, in lower case" }),
  message: Type.Unknown({ description: "The request, with its template filled in; for push with the device" }),
  at: Instant,
});

const ListQuery = strict({
  channel: Type.Optional(oneOf(CHANNELS)),
  notificationId: Type.Optional(Id),
  to: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
  search: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  after: Type.Optional(MessageId),
  wait: Type.Optional(
    Type.String({ pattern: "^([1-9]|[1-5][0-9]|60)s$", "x-expects": "seconds from 1s to 60s, such as 10s" }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
  cursor: Type.Optional(MessageId),
});

export type DevOptions = DevWorld & { large: Queryable; turns: RequestTurns; waits: Pick<Waits, "wait"> };
type Found = Awaited<ReturnType<typeof listDevMessages>>;

export function devRoutes({ pool, large, turns, waits }: DevOptions): Route[] {
  const list = route({
    method: "GET",
    path: "/v1/dev/messages",
    summary: "The mailbox: what the provider dev kept instead of sending it",
    detail:
      "The latest thousand messages of the tenant, and no more than 50 MB of them, the newest first, with templates filled in. " +
      "`to` is any of a message's recipients, whole; `search` some of its words; `after` the id of a message that is known already. " +
      "With `wait` it answers as soon as something fits, and with none when that time is over: for tests that send and look for what arrived.",
    tag: DEV_TAG,
    scope: "read",
    // Who waits takes a turn for each look.
    turn: "none",
    query: ListQuery,
    answers: {
      200: { description: "One page", schema: pageBody(KeptBody) },
      429: { description: "Too many of the tenant wait already" },
    },
    async handle({ query: { wait, limit = 50, ...filter }, actor: { tenant }, gone }) {
      if (wait === undefined) {
        return pageOf(await turns.large(tenant, () => listDevMessages(large, tenant, filter, limit)));
      }
      const forMs = Number.parseInt(wait, 10) * 1000;
      const look = async () => {
        const found = await turns.small(tenant, () => listDevMessages(pool, tenant, filter, limit));
        return found.data.length > 0 ? found : undefined;
      };
      return pageOf((await waits.wait({ tenant, forMs, gone, look })) ?? { data: [], isCut: false });
    },
  });

  const clear = route({
    method: "DELETE",
    path: "/v1/dev/messages",
    summary: "Forget the kept messages",
    tag: DEV_TAG,
    scope: "send",
    answers: { 204: { description: "None are left" } },
    async handle({ actor }) {
      await forgetDevMessages({ pool }, actor);
      return { status: 204 };
    },
  });

  return [list, clear];
}

const pageOf = ({ data, isCut }: Found) => ({
  status: 200,
  body: { data: data.map(bodyOfKept), nextCursor: isCut ? (data.at(-1)?.id ?? null) : null },
});

export const bodyOfKept = ({ id, notificationId, channel, to, message, at }: DevMessage) => ({
  ...{ id, notificationId, channel: channel as Static<typeof KeptBody>["channel"], to, message },
  at: at.toISOString(),
});
