// Lets a user's browser at that user's inbox, for a while: with a token that the application asks for, or the same in a cookie.

import type { Caller, KeyActor } from "#domain/actor.ts";
import { Problem } from "#domain/problems.ts";
import { DEFAULT_TOKEN_SECONDS } from "#domain/subscriber-token.ts";
import type { SubscriberTokens } from "#inbox/tokens.ts";

export type TokenWorld = { tokens: Pick<SubscriberTokens, "mint">; now: () => Date };

export async function giveToken(
  { tokens, now }: TokenWorld,
  { tenant }: KeyActor,
  userId: string,
  seconds: number,
): Promise<{ token: string; expiresAt: Date }> {
  const expiresAtMs = Math.floor(now().getTime() / 1000 + seconds) * 1000;
  const token = await tokens.mint({ tenant, userId, expiresAtMs });
  return { token, expiresAt: new Date(expiresAtMs) };
}

/** A session lasts as long as the token that it is begun with; begun with a key, as long as a token does by default. */
export async function beginSession(
  { tokens, now }: TokenWorld,
  actor: Caller,
  userId: string,
): Promise<{ token: string; maxAgeSeconds: number } | Problem> {
  const nowMs = now().getTime();
  const expiresAtMs = actor.kind === "user" ? actor.expiresAtMs : nowMs + DEFAULT_TOKEN_SECONDS * 1000;
  const maxAgeSeconds = Math.floor((expiresAtMs - nowMs) / 1000);
  if (maxAgeSeconds < 1) return new Problem("UNAUTHENTICATED", "the token has expired");
  return { token: await tokens.mint({ tenant: actor.tenant, userId, expiresAtMs }), maxAgeSeconds };
}
