// The guards of a worker, wired: limits, and breakers that tell each other.

import { leaseMarginMs } from "#domain/attempt.ts";
import { createExchange } from "#guards/exchange.ts";
import { createGates } from "#guards/gates.ts";
import type { Guard } from "#guards/guard.ts";
import { forgetIdleLimits } from "#store/limits.ts";
import type { Base } from "./base.ts";
import type { Channels } from "./channels.ts";
import type { Member } from "./member.ts";
import type { Stop } from "./undo.ts";

const FORGET_MS = 600_000;

export function openGuards(
  { config, database, limit, redis, monotonic, figures, facts }: Base,
  { providers }: Channels,
  member: Member,
  undo: Stop[],
): Guard {
  const db = database.own;
  const missed = (error: unknown) => facts.guardHintsMissed(error);
  const exchange = createExchange(db, member.id, missed);
  const gates = createGates({
    accountOf: providers.accountOf,
    limits: config.limits,
    limit,
    leaseMarginMs: leaseMarginMs(config.leaseMs),
    monotonic,
    random: Math.random,
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    tell(fact) {
      facts.guarded(fact);
      exchange.tell(fact);
    },
  });
  exchange.hear(gates.adopt);
  figures.watchBreakers(gates.states, gates.receivers);
  // Redis forgets them by itself.
  const forgetting = redis ? undefined : setInterval(() => void forgetIdleLimits(db).catch(missed), FORGET_MS);
  undo.push(async () => {
    clearInterval(forgetting);
    await exchange.stop();
  });
  return gates;
}
