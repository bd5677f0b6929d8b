// Whether the memory of a Carillon process grows with what waits.

import { carillonAdapter } from "../../adapters/carillon.ts";
import type { Part, World } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { startWorkers } from "../../worker-pool.ts";
import { residentMiB } from "../mix.ts";
import { fillFarLater, pause } from "./later.ts";

const FEW = 10_000;
const MANY = 1_000_000;
const SAMPLES = 20;
const EVERY_MS = 500;

/** The most that a fresh process held in its first ten seconds. */
async function mostResidentMiB(world: World): Promise<number> {
  await settleStore(world.databaseUrl);
  const pool = await startWorkers("carillon", "punctuality", world, 1);
  await pool.go();
  let most = 0;
  for (let i = 0; i < SAMPLES; i++) {
    await pause(EVERY_MS);
    for (const pid of Object.values(pool.processes)) most = Math.max(most, residentMiB(pid));
  }
  await pool.stop();
  return most;
}

export const memory: Part = {
  title: `Resident memory of a process with ${MANY.toLocaleString("en")} waiting, as a multiple of that with ${FEW.toLocaleString("en")}`,
  figure: { name: "ratio", unit: " ×" },
  targets: [],
  cases: (world) => {
    const adapter = carillonAdapter(world.databaseUrl);
    return [
      {
        variant: "resident",
        subject: "carillon",
        settings: "defaults, all roles",
        async prepare() {
          await adapter.clear();
          const producer = await adapter.open();
          await fillFarLater(producer, 0, FEW);
          return {
            async measure() {
              const fewMiB = await mostResidentMiB(world);
              await fillFarLater(producer, FEW, MANY);
              const manyMiB = await mostResidentMiB(world);
              return { ratio: manyMiB / fewMiB, fewMiB, manyMiB };
            },
            async finish() {
              await producer.close();
              await adapter.clear();
            },
          };
        },
      },
    ];
  },
};
