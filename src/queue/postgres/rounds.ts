// Whose turn is next, in each lane: a claim goes on where the one before it ended.
//
// Every process goes round by itself, and each of its claims gives shares by weight; so over all of them it is by weight, too.

/** `spent` is what that tenant has had of its turn. */
export type Turn = { tenant: number; spent: number };

/** A claim ended in this lane with one of this tenant; to have spent nothing is to have had its turn. */
export type Ended = Turn & { rank: number };

const FIRST: Turn = { tenant: 0, spent: 0 };

export type Rounds = {
  next(rank: number): Turn;
  ended(turn: Ended): void;
};

export function createRounds(): Rounds {
  const turns = new Map<number, Turn>();
  return {
    next: (rank) => turns.get(rank) ?? FIRST,
    ended({ rank, tenant, spent }) {
      turns.set(rank, spent > 0 ? { tenant, spent } : { tenant: tenant + 1, spent });
    },
  };
}
