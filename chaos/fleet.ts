// All processes of a run: workers and an api, each in a slot of its own, and what they are set to.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Fault } from "./history.ts";
import { isInDatabase, MUTATED, MUTATIONS, type Mutant } from "./mutations.ts";
import { behindProxies, openSlot, type Variables } from "./slot.ts";

export const LEASE_MS = 2_000;
export const SWEEP_MS = 500;
export const POLL_MS = 200;
export const SEND_TIMEOUT_MS = 1_000;
export const DRAIN_MS = 3_000;
export const MAX_ATTEMPTS = 8;
export const START_MS = 180_000;

type FleetOptions = {
  evidence: string;
  url: string;
  seed: number;
  workers: number;
  mutant: Mutant | undefined;
  /** To reach where ready work waits. */
  engine: Variables | undefined;
  onFault: (fault: Fault) => void;
};

export async function openFleet({ evidence, url, seed, workers, mutant, engine, onFault }: FleetOptions) {
  const apiKey = randomBytes(16).toString("hex");
  const secretKeys = randomBytes(32).toString("base64");
  const callsPath = join(evidence, "calls.jsonl");
  const sendsPath = join(evidence, "sends.jsonl");
  const shared = { directory: evidence, ...behindProxies(url), onFault };
  const delivery = {
    ...engine,
    CARILLON_API_KEY: apiKey,
    CARILLON_ROLES: "worker,scheduler,keeper",
    CARILLON_CONFIG: join(import.meta.dirname, "worker-config.ts"),
    CARILLON_LEASE_MS: String(LEASE_MS),
    CARILLON_SWEEP_MS: String(SWEEP_MS),
    CARILLON_POLL_MS: String(POLL_MS),
    CARILLON_SEND_TIMEOUT_MS: String(SEND_TIMEOUT_MS),
    CARILLON_MAX_ATTEMPTS: String(MAX_ATTEMPTS),
    // Few at once, so that a claim of many leaves some waiting for their turn on a lease that runs; not so few that nobody waits behind others.
    CARILLON_CONCURRENCY: "10",
    CARILLON_BATCH_SIZE: "100",
    CARILLON_DATABASE_CONNECTIONS: "4",
    CARILLON_DRAIN_MS: String(DRAIN_MS),
    CARILLON_CALLBACK_CONCURRENCY: "20",
    CARILLON_ALLOW_ADDRESSES: "127.0.0.1",
    CARILLON_SECRET_KEYS: secretKeys,
    CHAOS_CALLS: callsPath,
    CHAOS_SENDS: sendsPath,
  };
  const isLoaded = mutant && !isInDatabase(MUTATIONS[mutant]);
  const mutation = isLoaded ? { CHAOS_MUTANT: mutant } : {};
  const nodeOptions = isLoaded ? ["--import", join(import.meta.dirname, "mutate.ts")] : [];
  const slots = await Promise.all(
    Array.from({ length: workers }, (_, index) =>
      openSlot({
        ...shared,
        name: `worker-${index + 1}`,
        nodeOptions,
        ...(isLoaded && { mustSay: MUTATED }),
        env: (incarnation) => ({
          ...delivery,
          ...mutation,
          CHAOS_SEED: String(seed * 1_000 + index * 100 + incarnation),
        }),
      }),
    ),
  );
  const api = await openSlot({
    ...shared,
    name: "api",
    nodeOptions,
    env: () => ({
      ...mutation,
      ...engine,
      CARILLON_API_KEY: apiKey,
      CARILLON_ROLES: "api",
      CARILLON_DATABASE_CONNECTIONS: "4",
      CARILLON_ALLOW_ADDRESSES: "127.0.0.1",
      CARILLON_SECRET_KEYS: secretKeys,
    }),
  });
  const all = [...slots, api];
  return {
    apiKey,
    callsPath,
    sendsPath,
    workers: slots,
    api,
    async start() {
      for (const slot of all) slot.start();
      await Promise.all(all.map((slot) => slot.up(START_MS)));
    },
    async close() {
      for (const slot of all) slot.kill();
      await Promise.all(all.map(({ proxy }) => proxy.close()));
    },
  };
}
