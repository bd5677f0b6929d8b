// How a user's browser gets at its inbox: a short-lived token that the application asks for, or the same in a cookie.

import { Type } from "typebox";
import { Instant, strict } from "#domain/notification.ts";
import { DEFAULT_TOKEN_SECONDS, MAX_TOKEN_SECONDS } from "#domain/subscriber-token.ts";
import { sessionCookie } from "#http/core/cross-origin.ts";
import { orThrow } from "#http/core/problem.ts";
import { type Route, route } from "#http/core/route.ts";
import { beginSession, giveToken, type TokenWorld } from "#steps/manage/subscriber-tokens.ts";
import { inboxTag, OfUser } from "./inbox.ts";

const TokenBody = Type.Object({ token: Type.String(), userId: Type.String(), expiresAt: Instant });

export type SessionOptions = TokenWorld & { publicUrl: string | undefined };

export function inboxSessionRoutes({ publicUrl, ...world }: SessionOptions): Route[] {
  const mint = route({
    method: "POST",
    path: "/v1/inbox/:userId/tokens",
    summary: "Make a token with which a user's browser can read and mark that user's inbox, and nothing else",
    detail: "It cannot be taken back: keep it short-lived. It goes into the header Authorization, never into a URL.",
    tag: inboxTag,
    scope: "send",
    params: OfUser,
    body: strict({
      expiresInSeconds: Type.Optional(
        Type.Integer({ minimum: 1, maximum: MAX_TOKEN_SECONDS, default: DEFAULT_TOKEN_SECONDS }),
      ),
    }),
    isBodyOptional: true,
    answers: { 201: { description: "The token", schema: TokenBody } },
    async handle({ params: { userId }, body: { expiresInSeconds = DEFAULT_TOKEN_SECONDS }, actor }) {
      const { token, expiresAt } = await giveToken(world, actor, userId, expiresInSeconds);
      return { status: 201, body: { token, userId, expiresAt: expiresAt.toISOString() } };
    },
  });

  const begin = route({
    method: "POST",
    path: "/v1/inbox/:userId/session",
    summary: "Put the token of this request into a cookie that no script can read",
    detail:
      "With a subscriber's token in the header Authorization: the cookie holds the same and lasts as long. With an API key: a " +
      "token is made for it.",
    tag: inboxTag,
    scope: "send",
    isForSubscribers: true,
    params: OfUser,
    answers: { 204: { description: "The cookie is set" } },
    async handle({ params: { userId }, header, actor }) {
      const { token, maxAgeSeconds } = orThrow(await beginSession(world, actor, userId));
      return { status: 204, headers: { "set-cookie": sessionCookie(token, maxAgeSeconds, isSecure(header)) } };
    },
  });

  const end = route({
    method: "DELETE",
    path: "/v1/inbox/:userId/session",
    summary: "Take the cookie away",
    tag: inboxTag,
    scope: "send",
    isForSubscribers: true,
    params: OfUser,
    answers: { 204: { description: "The cookie is gone" } },
    handle: ({ header }) => ({ status: 204, headers: { "set-cookie": sessionCookie("", 0, isSecure(header)) } }),
  });

  const isSecure = (header: (name: string) => string | undefined): boolean =>
    publicUrl?.startsWith("https:") || header("x-forwarded-proto") === "https";

  return [mint, begin, end];
}
