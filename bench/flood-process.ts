// Hands over jobs as it is told to, from a process of its own: whoever measures beside it is not held up by it.

import { adapterNamed } from "./adapters/named.ts";
import { inBatches } from "./drain.ts";
import type { FloodOptions } from "./flood.ts";

const { name, urls, job }: FloodOptions = JSON.parse(process.argv[2] ?? "{}");
const producer = await adapterNamed(name, urls).open();
const { takesMs, ...rest } = job;

/** From half to one and a half times, so that slots do not all come free at one instant: kind to whoever waits for one. */
const drawn = (): number => takesMs * (0.5 + Math.random());

process.on("message", async ({ add }: { add: number }) => {
  await inBatches(add, (_, size) =>
    producer.mixed(Array.from({ length: size }, () => ({ at: 0, isUrgent: false, takesMs: drawn(), ...rest }))),
  );
  process.send?.({ added: add });
});
process.on("SIGTERM", () => void producer.close().finally(() => process.exit(0)));
process.send?.({ isReady: true });
