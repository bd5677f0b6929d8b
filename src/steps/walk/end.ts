// What an attempt came to becomes what is written of it: where it goes from here, and its line of the record.

import type { Attempt, Ended, Settlement } from "#domain/attempt.ts";
import { dependsOnDoubts, RESENDS, settlementFor } from "#domain/retry.ts";
import { policyOf } from "#domain/retry-policy.ts";
import { cut } from "#domain/text.ts";
import { countDoubts } from "#record/doubts.ts";
import type { Result } from "./send.ts";
import type { World } from "./world.ts";

export type EndWorld = Pick<World, "db" | "retry" | "facts" | "random">;

/** At once, unless it depends on what is in the record of the attempts before. Never rejects. */
export function end(attempt: Attempt, result: Result, latencyMs: number, world: EndWorld): Ended | Promise<Ended> {
  const policy = policyOf(attempt, world.retry);
  const random = world.random();
  const { outcome } = result;
  if (!dependsOnDoubts(attempt, outcome, policy))
    return endedBy(attempt, result, settlementFor(attempt, outcome, policy, random, 0), latencyMs);
  return doubtsOf(attempt, world).then((doubts) =>
    endedBy(attempt, result, settlementFor(attempt, outcome, policy, random, doubts), latencyMs),
  );
}

/** Where that cannot be read it counts as spent: rather held for a person than sent for the tenth time. */
async function doubtsOf(attempt: Attempt, { db, facts }: EndWorld): Promise<number> {
  try {
    const { id } = attempt;
    return (await countDoubts(db, [id])).get(id) ?? 0;
  } catch (error) {
    facts.doubtsUnread(attempt, error);
    return RESENDS;
  }
}

/** The line of the record. A claim that is handed back or postponed never was an attempt and leaves none. */
export function endedBy(
  attempt: Attempt,
  { outcome, provider, passedOver = [], devices, exchange }: Result,
  settlement: Settlement,
  latencyMs: number,
): Ended {
  const ended: Ended = { attempt, settlement };
  if (outcome.kind === "released" || outcome.kind === "postponed") return ended;
  const line: NonNullable<Ended["line"]> = { outcome: outcome.kind };
  // Whoever was not asked has not taken its time.
  if (outcome.kind !== "unanswered") line.latencyMs = Math.round(latencyMs * 100) / 100;
  ended.line = line;
  if (provider) line.provider = provider.name;
  if ("reason" in outcome) line.error = cut(outcome.reason, 1000);
  const note = (name: string, value: unknown) => {
    line.detail ??= {};
    line.detail[name] = value;
  };
  if ("code" in outcome && outcome.code !== undefined) note("code", outcome.code);
  if ("category" in outcome && outcome.category !== undefined) note("category", outcome.category);
  if ("answer" in outcome && outcome.answer !== undefined) note("answer", outcome.answer);
  if (passedOver.length > 0) note("passedOver", passedOver);
  if (devices) note("devices", devices);
  if (exchange) note("exchange", exchange);
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
