// What an attempt came to becomes what is written of it: where it goes from here, and its line of the record.

import type { Attempt, Ended, Settlement } from "#domain/attempt.ts";
import { policyOf, settlementFor } from "#domain/retry.ts";
import { cut } from "#domain/text.ts";
import type { Result } from "./send.ts";
import type { World } from "./world.ts";

export function end(
  attempt: Attempt,
  result: Result,
  latencyMs: number,
  { retry, random }: Pick<World, "retry" | "random">,
): Ended {
  const settlement = settlementFor(attempt, result.outcome, policyOf(attempt, retry), random());
  return endedBy(attempt, result, settlement, latencyMs);
}

/** The line of the record. A claim that is handed back or postponed never was an attempt and leaves none. */
export function endedBy(
  attempt: Attempt,
  { outcome, provider, passedOver = [], devices }: Result,
  settlement: Settlement,
  latencyMs: number,
): Ended {
  const ended: Ended = { attempt, settlement };
  if (outcome.kind === "released" || outcome.kind === "postponed") return ended;
  const line: NonNullable<Ended["line"]> = {
    outcome: outcome.kind,
    latencyMs: Math.round(latencyMs * 100) / 100,
  };
  ended.line = line;
  if (provider) line.provider = provider.name;
  if ("reason" in outcome) line.error = cut(outcome.reason, 1000);
  const note = (name: string, value: unknown) => {
    line.detail ??= {};
    line.detail[name] = value;
  };
  if ("code" in outcome && outcome.code !== undefined) note("code", outcome.code);
  if ("category" in outcome && outcome.category !== undefined) note("category", outcome.category);
  if (passedOver.length > 0) note("passedOver", passedOver);
  if (devices) note("devices", devices);
  if (outcome.kind === "accepted") {
    if (outcome.cost !== undefined) line.cost = outcome.cost;
    if (outcome.receipt !== undefined) {
      note("receipt", outcome.receipt);
      if (provider?.capabilities.tracking) {
        line.receipt = outcome.receipt;
        if (provider.owner !== undefined) line.owner = provider.owner;
      }
    }
  }
  return ended;
}
