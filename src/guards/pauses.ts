// What is paused, as a worker knows it: read at its start and every second from then on, so that a pause holds everywhere a
// moment after it was made, and through restarts.
//
// A claim leaves out what is paused, and so knows better than a look that began before it was answered: otherwise what was just resumed
// would be handed back, and claimed, and handed back, while what was accepted after it is sent. While the database does not answer, what
// was read last stands.
//
// State: what was read last, with when each ends, and when that was; on the monotonic clock.

import type { Provider } from "#channels/channel.ts";
import type { Attempt } from "#domain/attempt.ts";
import type { PauseKind } from "#domain/pause.ts";
import type { Admitted, Guard } from "./guard.ts";

/** A tenant by its number. `leftMs`: until it ends by itself; null without an end. */
export type Paused = { kind: PauseKind; name: string; leftMs: number | null };

export type Pauses = {
  /** Whether its channel or its tenant was paused since it was claimed: what has not begun must not. */
  isPaused(attempt: Pick<Attempt, "tenant" | "request" | "lease">): boolean;
  /** How long an account with a provider is paused for; undefined where it is not. */
  leftMs(account: string): number | undefined;
  /** Looks again, unless that was done since then. Never rejects. */
  lookedSince(at: number): Promise<void>;
  /** One look at a time, which all who ask meanwhile share. Never rejects. */
  look(): Promise<void>;
};

export type PausesOptions = {
  read: () => Promise<readonly Paused[]>;
  monotonic: () => number;
  onFailure: (error: unknown) => void;
};

/** A pause without an end. Whoever waits for one is brought back when it is resumed. */
const ENDLESS_MS = 10 * 365 * 86_400_000;
/** The end of a pause brings back who waits for it, in order. By themselves they come this much later. */
const UNCALLED_MS = 10_000;

export function createPauses({ read, monotonic, onFailure }: PausesOptions): Pauses {
  let ends = new Map<string, number>();
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;

  const leftMs = (kind: PauseKind, name: string | number): number | undefined => {
    const left = (ends.get(`${kind} ${name}`) ?? 0) - monotonic();
    return left > 0 ? left : undefined;
  };

  async function readAll(): Promise<void> {
    const startedAt = monotonic();
    try {
      const found = await read();
      ends = new Map(found.map(({ kind, name, leftMs }) => [`${kind} ${name}`, startedAt + (leftMs ?? ENDLESS_MS)]));
      lookedAt = startedAt;
    } catch (error) {
      onFailure(error);
    }
    looking = undefined;
  }

  function look(): Promise<void> {
    looking ??= readAll();
    return looking;
  }

  return {
    isPaused({ tenant, request, lease }) {
      if (ends.size === 0) return false;
      // A tenant's callbacks are its own under a minus.
      if (leftMs("channel", request.channel) === undefined && leftMs("tenant", Math.abs(tenant)) === undefined)
        return false;
      if (lookedAt >= lease.answeredAt) return true;
      // Not resumed after all, or paused since: that is known in a moment.
      void look();
      return false;
    },
    leftMs: (account) => (ends.size === 0 ? undefined : leftMs("provider", account)),
    async lookedSince(at) {
      if (lookedAt >= at) return;
      // One that is under way may have begun before.
      await looking;
      if (lookedAt < at) await look();
    },
    look,
  };
}

/** Keeps sends from accounts that are paused; the next provider of the route may have them. */
export function pausedGuard(guard: Guard, pauses: Pauses, accountOf: (provider: Provider) => string): Guard {
  const admit: Guard["admit"] = (provider, message, turn) =>
    pauses.leftMs(accountOf(provider)) === undefined
      ? guard.admit(provider, message, turn)
      : admitLooking(provider, message, turn);

  /** What a resume brought back is not put aside again by somebody who has not heard of it. */
  async function admitLooking(...[provider, message, turn]: Parameters<Guard["admit"]>): Promise<Admitted> {
    await pauses.lookedSince(turn.lease.answeredAt);
    const account = accountOf(provider);
    const leftMs = pauses.leftMs(account);
    if (leftMs === undefined) return guard.admit(provider, message, turn);
    return {
      kind: "postponed",
      waitMs: Math.ceil(leftMs) + UNCALLED_MS,
      reason: `${provider.name} is paused`,
      isPassedOver: true,
      waitsFor: [account],
    };
  }

  return { ...guard, admit };
}
