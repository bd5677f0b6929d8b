// Batches of a thousand, beside the fastest way there is to get the same rows into the same tables.

import type { Adapter, BulkProducer } from "../../adapters/adapter.ts";
import { copyAdapter } from "../../adapters/copy.ts";
import { inFlight } from "../../in-flight.ts";
import type { Part } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { checkStored, producersIn } from "./peers.ts";

const ROWS = 50_000;
const SIZE = 1_000;
const WARM_UP_BATCHES = 2;
const WIDTHS = [1, 2];

const variantOf = (width: number) => `${width} in flight`;

export const batchPart: Part = {
  title: `Batches of ${SIZE.toLocaleString("en")} from Node, ${ROWS.toLocaleString("en")} rows`,
  figure: { name: "perSecond", unit: "/s" },
  targets: WIDTHS.map((width) => ({
    variant: variantOf(width),
    subject: "carillon",
    against: "COPY",
    atLeast: 0.6,
  })),
  cases: (world) => {
    const adapters: Adapter<BulkProducer>[] = [copyAdapter(world.databaseUrl), ...producersIn(world)];
    return WIDTHS.flatMap((width) =>
      adapters.map((adapter) => ({
        variant: variantOf(width),
        subject: adapter.name,
        settings: adapter.settings,
        async prepare() {
          await adapter.clear();
          const producer = await adapter.open();
          const calls = Array.from({ length: WARM_UP_BATCHES + ROWS / SIZE }, (_, k) => producer.batch(k * SIZE, SIZE));
          const warmUp = calls.splice(0, WARM_UP_BATCHES);
          await inFlight(warmUp.length, width, async (k) => warmUp[k]?.());
          await settleStore(world.databaseUrl);
          return {
            measure: async () => ({
              perSecond: SIZE * (await inFlight(calls.length, width, async (k) => calls[k]?.())),
            }),
            async finish() {
              await producer.close();
              await checkStored(adapter, WARM_UP_BATCHES * SIZE + ROWS);
              await adapter.clear();
            },
          };
        },
      })),
    );
  },
};
