// What a commit hands over to an engine: ready work that waits beside PostgreSQL.

export const ENGINES = ["redis", "sqs"] as const;
export type EngineName = (typeof ENGINES)[number];

/** All of a commit that is of one lane, column by column. Where a column is the same for all, or its numbers follow each other, it is the first of it alone. */
export type Handoff = {
  number: number;
  engine: EngineName;
  rank: number;
  /** How many. */
  size: number;
  seqs: readonly number[];
  tenants: readonly number[];
  pools: readonly number[];
  /** Which of the handoff these are; all of them where it does not say. */
  places?: readonly number[];
};

/** Where ready work waits. */
export const PLACES = ["postgres", ...ENGINES] as const;
export type PlaceName = (typeof PLACES)[number];

/**
 * How it is moved. `live-forward`: new work goes to the target at once, and what waits at the source is taken over. `drain-first`: new work waits in
 * PostgreSQL until workers have emptied the source.
 */
export const MOVE_STRATEGIES = ["drain-first", "live-forward"] as const;
export type MoveStrategy = (typeof MOVE_STRATEGIES)[number];
