// A priority is a lane of the queue. The database stores its rank, so that an index
// in rank order is an index in claim order.

export const PRIORITIES = ["urgent", "high", "normal", "low"] as const;
export type Priority = (typeof PRIORITIES)[number];

/** Of all that a request can ask for. */
export const RANKS: readonly number[] = PRIORITIES.map((_, rank) => rank);
/** The lane of callbacks, below all of these; no request can ask for it, and workers of its own take it. */
export const CALLBACK_RANK = PRIORITIES.length;

export const rankOf: Readonly<Record<Priority, number>> = { urgent: 0, high: 1, normal: 2, low: 3 };

export function priorityOf(rank: number): Priority {
  const priority = PRIORITIES[rank];
  if (!priority) throw new RangeError(`no priority has the rank ${rank}`);
  return priority;
}

/** Urgent and high: for these something is kept wherever others might have taken all. */
export const isHigh = (rank: number): boolean => rank <= rankOf.high;

/** Of what lanes something has come: of lower ones only, or of any. */
export type Lanes = "any" | "lower";
