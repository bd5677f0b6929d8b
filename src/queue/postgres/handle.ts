// How this engine knows a claim, and what it holds: the handles that are opaque to everybody else. A number and a shared
// object, so that a claim of a thousand makes one object more and not a thousand.

import type { Attempt, Lease } from "#domain/attempt.ts";

/** `token` is greater than that of every claim before: whoever names an older one has lost the lease. */
export type Claim = { token: number; size: number };

export const claimOf = ({ handle }: Pick<Lease, "handle">): Claim => handle as Claim;

/** Which of its claim it is, from 0. */
export const placeOf = ({ handle }: Pick<Attempt, "handle">): number => handle as number;
