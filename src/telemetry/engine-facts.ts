// That an engine could not be asked, in the log: now and then, however often it is tried.

import type { EngineName } from "#domain/handoff.ts";
import type { Logger } from "./log.ts";

const EVERY_MS = 10_000;

export function createEngineFacts(log: Pick<Logger, "warn">, monotonic: () => number) {
  const told = new Map<EngineName, number>();
  return {
    failed(engine: EngineName, error: unknown): void {
      if (monotonic() - (told.get(engine) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) return;
      told.set(engine, monotonic());
      log.warn({ engine, err: error }, "an engine could not be asked: what waits there is not claimed now");
    },
  };
}
