// Some jobs at a steady pace beside a flood in the same worker: the case that lanes and tenants have in common.

import { adapterNamed } from "../../adapters/named.ts";
import { startFlood } from "../../flood.ts";
import { type MixedJob, machineNow } from "../../payload.ts";
import type { Prepared, World } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { startWorkers } from "../../worker-pool.ts";
import { measureWaits, pause, SAMPLES } from "./waits.ts";

export type Crowd = {
  name: string;
  /** The few that are measured. */
  few: Omit<MixedJob, "at">;
  /** The many beside them; none for the floor. */
  many?: {
    job: Pick<MixedJob, "takesMs" | "tenant">;
    depth: number;
    /** All become due at one instant, and are not made up for. */
    isDueAtOnce?: boolean;
  };
  samples?: number;
  /** Makes what the store needs besides. */
  furnish?(world: World): Promise<unknown>;
};

/** About twenty a second; no divisor of anybody's polling interval, so that pollers are met at all phases. */
const EVERY_MS = 47;
/** Five seconds, in which the flood takes all slots. */
const WARM_UP = 100;
/** To hand over 200,000 before they are due. */
const LEAD_MS = 60_000;
/** The few begin so long before the many are due. */
const AHEAD_MS = 2_000;

export async function prepareCrowd(world: World, crowd: Crowd): Promise<Prepared> {
  const { name, few, many, samples = SAMPLES, furnish } = crowd;
  const adapter = adapterNamed(name, world);
  await adapter.clear();
  const producer = await adapter.open();
  await producer.batch(0, 1)();
  await furnish?.(world);
  const dueMs = many?.isDueAtOnce ? Date.now() + LEAD_MS : undefined;
  const flood = many && (await startFlood({ name, urls: world, job: { ...many.job, ...(dueMs && { dueMs }) } }));
  await flood?.add(many?.depth ?? 0);
  if (dueMs !== undefined && Date.now() > dueMs - AHEAD_MS) throw new Error("handing over took until they were due");
  await settleStore(world.databaseUrl);
  const pool = await startWorkers(name, "isolation", world, 1);
  const othersBegun = () => pool.count() - pool.measured();

  return {
    processes: { ...pool.processes, ...(flood && { flood: flood.pid }) },
    async measure() {
      await pool.go();
      if (dueMs !== undefined) await pause(Math.max(0, dueMs - AHEAD_MS - Date.now()));
      const kept = dueMs === undefined ? flood?.keep(othersBegun) : undefined;
      const figures = await measureWaits({
        watch: pool,
        everyMs: EVERY_MS,
        samples,
        warmUp: dueMs === undefined ? WARM_UP : Math.ceil(AHEAD_MS / EVERY_MS),
        hand: (_, at) => producer.mixed([{ ...few, at }]),
        ...(flood && { beside: () => pace(othersBegun) }),
      });
      await kept?.stop();
      return figures;
    },
    async finish() {
      await flood?.stop();
      await producer.close();
      await adapter.clear();
    },
  };
}

/** How many of the many begin a second: the proof that the worker was at work. */
function pace(begun: () => number) {
  const [from, startAt] = [begun(), machineNow()];
  return { end: () => ({ manyPerSecond: ((begun() - from) * 1000) / (machineNow() - startAt) }) };
}
