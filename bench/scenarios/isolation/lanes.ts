// How soon an urgent one begins on a worker that is full of normal ones, beside the same on an idle worker.

import { PEERS } from "../../adapters/named.ts";
import type { Part, World } from "../../scenario.ts";
import { SLOTS } from "../../workers/worker.ts";
import { prepareCrowd } from "./crowd.ts";

export const IDLE = "idle";
export const DURATIONS: Readonly<Record<string, number>> = { "1 ms": 1, "50 ms": 50, "1 s": 1_000, "10 s": 10_000 };
/** Ready at any time, made up for as they begin. */
const DEPTH = 20_000;
/** What the urgent ones take themselves: little, so that they fit anybody's reserve. */
const URGENT_MS = 1;
const MOST_ABOVE_IDLE_MS = 50;

export const SETTINGS: Readonly<Record<string, string>> = {
  carillon: "defaults (200 at once for a tenant, 92 kept for others) but a send may take 30 s; all roles, full record",
  "graphile-worker": `${SLOTS} jobs without local queue, pool 25; priority -10 before 0`,
  "pg-boss": `${SLOTS} slots, 26 of them for urgent jobs alone (minPriority), LISTEN/NOTIFY; priority 10 before 0`,
  BullMQ: `concurrency ${SLOTS}; priority 1 before 10`,
};

export const peersIn = ({ redisUrl }: World): string[] => PEERS.filter((name) => redisUrl || name !== "BullMQ");

export const lanes: Part = {
  title: `How long urgent ones, about twenty a second, wait for their start while normal ones take all the slots they can get, 99th percentile`,
  figure: { name: "p99Ms", unit: " ms" },
  targets: Object.keys(DURATIONS).map((variant) => ({
    variant,
    subject: "carillon",
    above: { variant: IDLE, atMost: MOST_ABOVE_IDLE_MS },
  })),
  cases: (world) =>
    ["carillon", ...peersIn(world)].flatMap((name) =>
      [IDLE, ...Object.keys(DURATIONS)].map((variant) => ({
        variant,
        subject: name,
        settings: SETTINGS[name] ?? "",
        isOnce: true,
        prepare() {
          const takesMs = DURATIONS[variant];
          return prepareCrowd(world, {
            name,
            few: { takesMs: URGENT_MS, isUrgent: true },
            ...(takesMs !== undefined && { many: { job: { takesMs }, depth: DEPTH } }),
          });
        },
      })),
    ),
};
