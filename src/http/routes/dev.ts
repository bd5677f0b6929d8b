// /v1/dev/messages: what would have gone out, for a developer without credentials.

import { Type } from "typebox";
import { CHANNELS, Instant, oneOf, strict } from "#domain/notification.ts";
import { type Route, route } from "#http/core/route.ts";
import { Id, pageBody } from "#http/core/schemas.ts";
import { type DevWorld, forgetDevMessages } from "#steps/manage/dev-messages.ts";
import { listDevMessages } from "#store/dev-messages.ts";

const tag = "Development";

export function devRoutes({ pool }: DevWorld): Route[] {
  const list = route({
    method: "GET",
    path: "/v1/dev/messages",
    summary: "Messages that the provider dev kept instead of sending them",
    detail: "The latest thousand of the tenant, the newest first, with templates filled in.",
    tag,
    scope: "read",
    turn: "large",
    query: strict({
      channel: Type.Optional(oneOf(CHANNELS)),
      notificationId: Type.Optional(Id),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 50 })),
      cursor: Type.Optional(Type.String({ pattern: "^[0-9]{1,18}$" })),
    }),
    answers: {
      200: {
        description: "One page",
        schema: pageBody(
          Type.Object({ notificationId: Id, channel: oneOf(CHANNELS), message: Type.Unknown(), at: Instant }),
        ),
      },
    },
    async handle({ query: { limit = 50, cursor, ...filter }, actor }) {
      const found = await listDevMessages(pool, actor.tenant, filter, cursor, limit + 1);
      const page = found.slice(0, limit);
      const data = page.map(({ notificationId, channel, message, at }) => ({
        notificationId,
        channel,
        message,
        at: at.toISOString(),
      }));
      return { status: 200, body: { data, nextCursor: found.length > limit ? (page.at(-1)?.id ?? null) : null } };
    },
  });

  const clear = route({
    method: "DELETE",
    path: "/v1/dev/messages",
    summary: "Forget the kept messages",
    tag,
    scope: "send",
    answers: { 204: { description: "None are left" } },
    async handle({ actor }) {
      await forgetDevMessages({ pool }, actor);
      return { status: 204 };
    },
  });

  return [list, clear];
}
