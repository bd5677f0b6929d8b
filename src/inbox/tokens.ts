// Makes and reads subscribers' tokens with the deployment's secret.

import { mintToken, readToken, type Subscriber, tokenKey } from "#domain/subscriber-token.ts";
import type { Queryable } from "#store/connection/database.ts";
import { secretNamed } from "#store/secrets.ts";

export type SubscriberTokens = {
  mint(subscriber: Subscriber): Promise<string>;
  /** Whose it is, expired or not; undefined when we did not sign it. */
  read(token: string): Promise<Subscriber | undefined>;
};

/** A secret that was deleted, to make all tokens worthless at once, is used no longer than this. */
const REMEMBER_MS = 60_000;

export function createSubscriberTokens(db: Queryable, now: () => number): SubscriberTokens {
  let known: { key: Buffer; untilMs: number } | undefined;

  async function key(): Promise<Buffer> {
    if (known && known.untilMs > now()) return known.key;
    try {
      known = { key: tokenKey(await secretNamed(db, "subscribers")), untilMs: now() + REMEMBER_MS };
    } catch (error) {
      // The database is away: what was right a minute ago still is.
      if (!known) throw error;
    }
    return known.key;
  }

  return {
    mint: async (subscriber) => mintToken(await key(), subscriber),
    read: async (token) => readToken(await key(), token),
  };
}
