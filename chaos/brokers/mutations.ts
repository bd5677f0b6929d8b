// Broken versions of what stands between brokers and the record; see ../mutations.ts.

import type { Mutation } from "../mutations.ts";

export const BROKER_MUTATIONS = {
  // How far a partition has come is kept in a transaction of its own: what ends before the next one is never accepted.
  "offset-before-accept": {
    file: "src/steps/brokers/keep-batch.ts",
    from: /(?=const \w+ = rows\.length === 0 \? \[\] : await storeEach)/,
    to: 'await tx.query("commit"); await tx.query("begin"); ',
    expected: "G23",
  },
  "confirm-not-awaited": {
    file: "src/sinks/rabbitmq.ts",
    from: /await confirmed\(channel, ended, cut, messages\);/,
    to: "confirmed(channel, ended, cut, messages).catch(() => undefined);",
    expected: "G24",
  },
  "cursor-before-insert": {
    file: "src/steps/brokers/feed-sink.ts",
    from: /(?=const refused = hasSome \? await this\.#holding)/,
    to: "await this.#move(term, after, (tx) => moveFollower(tx, this.#follower, next)); ",
    expected: "G24",
  },
} as const satisfies { [name: string]: Mutation };

export type BrokerMutant = keyof typeof BROKER_MUTATIONS;
export const BROKER_MUTANTS = Object.keys(BROKER_MUTATIONS) as BrokerMutant[];
