// What a commit hands over to an engine: ready work that waits beside PostgreSQL.

export const ENGINES = ["redis", "sqs"] as const;
export type EngineName = (typeof ENGINES)[number];

/** All of a commit that is of one lane, column by column. */
export type Handoff = {
  number: number;
  rank: number;
  seqs: readonly number[];
  tenants: readonly number[];
  ids: readonly string[];
  pools: readonly number[];
  /** In milliseconds; null where none of them expires. */
  expiries: readonly (number | null)[] | null;
  /** Which of the handoff these are; all of them where it does not say. */
  places?: readonly number[];
};
