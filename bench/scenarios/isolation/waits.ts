// Jobs at a steady pace, and how long each waited from the call that hands it over to the start of its send.

import { machineNow } from "../../payload.ts";
import type { Figures } from "../../scenario.ts";
import { quantile } from "../../statistics.ts";

export type Watch = {
  /** How many of the measured have begun. */
  measured(): number;
  /** Ends what is watched; the wait of each, by the instant it was handed over. */
  leave(): Promise<Map<number, number>>;
};

export type Steady = {
  watch: Watch;
  everyMs: number;
  samples: number;
  /** So many before those that count. */
  warmUp: number;
  /** Hands over number i, which carries the instant along; 0 where it is not measured. */
  hand(i: number, at: number): Promise<unknown>;
  /** All, unless some go where nobody waits for them. */
  isMeasured?(i: number): boolean;
  /** While the samples that count are handed over. */
  beside?(): { end(): Figures };
};

/** 1,000 unless SAMPLES says otherwise: fewer are for trying it out. */
export const SAMPLES = Number(process.env.SAMPLES || 1_000);
/** What has not begun so long after the last was handed over has waited at least until then. */
const PATIENCE_MS = 60_000;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function measureWaits(steady: Steady): Promise<Figures> {
  const { watch, everyMs, samples, warmUp, hand, isMeasured = () => true, beside } = steady;
  const ats: number[] = [];
  const accepting: Promise<number>[] = [];
  let counted: { end(): Figures } | undefined;
  let expected = 0;
  const startAt = machineNow();
  for (let i = 0; i < warmUp + samples; i++) {
    await pause(Math.max(0, startAt + i * everyMs - machineNow()));
    if (i === warmUp) counted = beside?.();
    const at = machineNow();
    const accepted = hand(i, isMeasured(i) ? at : 0).then(() => machineNow() - at);
    accepted.catch(() => undefined);
    if (isMeasured(i)) expected++;
    if (isMeasured(i) && i >= warmUp) {
      ats.push(at);
      accepting.push(accepted);
    }
  }
  const more = counted?.end() ?? {};
  const accepted = await Promise.all(accepting);
  const until = machineNow() + PATIENCE_MS;
  while (watch.measured() < expected && machineNow() < until) await pause(5);
  const endAt = machineNow();
  const waits = await watch.leave();
  const each = ats.map((at) => waits.get(at) ?? endAt - at);
  return {
    p50Ms: quantile(each, 0.5),
    p99Ms: quantile(each, 0.99),
    maxMs: Math.max(...each),
    acceptP99Ms: quantile(accepted, 0.99),
    samples: each.length,
    unbegun: ats.filter((at) => !waits.has(at)).length,
    ...more,
  };
}
