// One notification per call, many calls under way: what an application sees that sends as it goes.

import { inFlight } from "../../in-flight.ts";
import type { Part } from "../../scenario.ts";
import { settleStore } from "../../sql.ts";
import { checkStored, producersIn } from "./peers.ts";

const CALLS = 20_000;
const WARM_UP = 500;
const WIDTHS = [50, 200];

const variantOf = (width: number) => `${width} in flight`;

export const libraryPart: Part = {
  title: `One notification per call from Node, ${CALLS.toLocaleString("en")} calls`,
  figure: { name: "perSecond", unit: "/s" },
  targets: WIDTHS.map(variantOf).flatMap((variant) => [
    { variant, subject: "carillon", against: "pg-boss", atLeast: 12 },
    { variant, subject: "carillon", against: "BullMQ", atLeast: 1.2 },
  ]),
  cases: (world) =>
    WIDTHS.flatMap((width) =>
      producersIn(world).map((adapter) => ({
        variant: variantOf(width),
        subject: adapter.name,
        settings: adapter.settings,
        async prepare() {
          await adapter.clear();
          const producer = await adapter.open();
          await inFlight(WARM_UP, width, (i) => producer.one(i));
          await settleStore(world.databaseUrl);
          return {
            measure: async () => ({ perSecond: await inFlight(CALLS, width, (i) => producer.one(WARM_UP + i)) }),
            async finish() {
              await producer.close();
              await checkStored(adapter, WARM_UP + CALLS);
              await adapter.clear();
            },
          };
        },
      })),
    ),
};
