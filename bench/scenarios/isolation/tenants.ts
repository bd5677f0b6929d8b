// How soon tenant B's begin while tenant A has 200,000 ready in the same lane, for the same provider.

import { makeTenants } from "../../adapters/carillon.ts";
import type { Part } from "../../scenario.ts";
import { type Crowd, prepareCrowd } from "./crowd.ts";
import { peersIn, SETTINGS } from "./lanes.ts";
import { SAMPLES } from "./waits.ts";

export const ALONE = "B alone";
export const READY = "A's take 50 ms";
export const SLOW = "A's take 10 s";
export const AT_ONCE = "A's become due at once";
const DEPTH = 200_000;
const [A, B] = ["a", "b"];
const MOST_MS = 500;
/** First in, first out makes B wait for all of A's: a few show it as well as many. */
const PEER_SAMPLES = Math.min(SAMPLES, 200);

const MANY: Readonly<Record<string, Crowd["many"]>> = {
  [ALONE]: undefined,
  [READY]: { job: { takesMs: 50, tenant: A }, depth: DEPTH },
  [SLOW]: { job: { takesMs: 10_000, tenant: A }, depth: DEPTH },
  [AT_ONCE]: { job: { takesMs: 50, tenant: A }, depth: DEPTH, isDueAtOnce: true },
};

/** What each has for tenants. */
const PEER_SETTINGS: Readonly<Record<string, string>> = {
  "graphile-worker": "one line for all; its named queues run one job at a time",
  "pg-boss": "a group per tenant, which may have 50 jobs under way (localGroupConcurrency)",
  BullMQ: "one line for all; groups are of BullMQ Pro",
};

export const tenants: Part = {
  title: `How long tenant B's, about twenty a second, wait for their start beside ${DEPTH.toLocaleString("en")} of tenant A's in the same lane, 99th percentile`,
  figure: { name: "p99Ms", unit: " ms" },
  targets: [READY, SLOW, AT_ONCE].map((variant) => ({ variant, subject: "carillon", limits: { p99Ms: MOST_MS } })),
  cases: (world) => [
    ...Object.entries(MANY).map(([variant, many]) => ({
      variant,
      subject: "carillon",
      settings: SETTINGS.carillon ?? "",
      isOnce: true,
      prepare: () =>
        prepareCrowd(world, {
          name: "carillon",
          few: { takesMs: 50, isUrgent: false, tenant: B },
          ...(many && { many }),
          furnish: ({ databaseUrl }) => makeTenants(databaseUrl, `values ('${A}'), ('${B}')`),
        }),
    })),
    ...peersIn(world).flatMap((name) =>
      [ALONE, READY].map((variant) => ({
        variant,
        subject: name,
        settings: `${SETTINGS[name]}; ${PEER_SETTINGS[name]}`,
        isOnce: true,
        prepare() {
          const many = MANY[variant];
          const few = { takesMs: 50, isUrgent: false, tenant: B };
          return prepareCrowd(world, { name, few, samples: PEER_SAMPLES, ...(many && { many }) });
        },
      })),
    ),
  ],
};
