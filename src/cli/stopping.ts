// How a process that serves comes to its end: asked by a signal, and then within its time.

import type { Config } from "#config/read.ts";
import type { Running } from "#main.ts";
import type { Logger } from "#telemetry/log.ts";

/** Together with the drain less than the 30 s after which Kubernetes kills. */
const FAREWELL_MS = 3_000;

/** Who asks for a stop: a signal, or somebody `other`. */
export function stopSignal(other?: Promise<string>): { asked: Promise<string>; stopping: AbortSignal } {
  const stopping = new AbortController();
  const asked = new Promise<string>((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve(signal));
    void other?.then(resolve);
  });
  void asked.then(() => stopping.abort());
  return { asked, stopping: stopping.signal };
}

/**
 * A second signal, or a stop that takes too long, ends it at once; what was accepted is stored already, and what was being sent is
 * left to its lease. A database that hangs does not even answer a goodbye.
 */
export async function stopInTime({ stop }: Running, { drainMs }: Pick<Config, "drainMs">, log: Logger): Promise<void> {
  process.once("SIGTERM", () => process.exit(1)).once("SIGINT", () => process.exit(1));
  const leave = () => {
    log.warn("not everything has ended in time");
    process.exit(0);
  };
  setTimeout(leave, drainMs + FAREWELL_MS).unref();
  await stop();
}
