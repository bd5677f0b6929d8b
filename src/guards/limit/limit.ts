// The contract of a limit engine. test/conformance/limit.ts holds every engine to it.
//
// What was granted stays granted: whoever dies before using it has used it. Never more than the limits, in any stretch of
// time, whatever the number of processes; the engine's clock decides, not theirs.

import type { LimitState, Rate } from "#domain/gcra.ts";

/** What one send needs of a key: `n` of them, under all these rates. */
export type Demand = { key: string; rates: readonly Rate[]; n: number };

/** Who demands, so that those who wait come in order: by rank, then by seq. */
export type Standing = { seq: number; rank: number };

export type Taken =
  /** From `afterMs` on. Not `isFull`: one of each only. */
  | { isGranted: true; afterMs: number; isFull: boolean }
  /** Nothing was taken. To come back after `waitMs`, an instant given to nobody else; `key` is what was short. */
  | { isGranted: false; waitMs: number; key: string };

export type Limit = {
  /** From all keys or none. A wait of up to `patienceMs` is granted ahead. Rejects when the engine is away: then nobody may. */
  take(demands: readonly Demand[], standing: Standing, patienceMs: number): Promise<Taken>;
  /** Nothing more from this key for so long: the provider has said so. */
  delay(key: string, ms: number): Promise<void>;
  /** How they stand, for people: nothing is taken. Those of which nothing is to say are left out. */
  look(keys: readonly string[]): Promise<LimitState[]>;
};
