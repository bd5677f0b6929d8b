// One leased attempt, start to finish. Read this file first.
//
// A provider answers with a Reply whatever happened on the wire. Only bugs and a lost database throw; the
// lease then runs out and the sweep takes over. A message may go out twice, but it never disappears
// quietly.
//
// Each step takes the type of the one before it: claimed, prepared, ended, settled. What is not prepared cannot be sent.

import { heardBy } from "#wire/heard.ts";
import { end } from "./end.ts";
import { exchangeOf, isToldOf } from "./exchange.ts";
import { guard } from "./guard.ts";
import { hold } from "./hold.ts";
import type { Prepared } from "./prepare.ts";
import { type Result, send } from "./send.ts";
import { settle } from "./settle.ts";
import { tell } from "./tell.ts";
import type { Slot, World } from "./world.ts";

/** A provider that answers at once costs no promise more than its settlement does. */
export function deliver(prepared: Prepared, slot: Slot, world: World): Promise<void> {
  const answer = guard(prepared, slot.startedAt, world) ?? send(prepared, slot, world);
  return answer instanceof Promise
    ? answer.then((result) => answered(prepared, result, slot, world))
    : answered(prepared, answer, slot, world);
}

function answered(prepared: Prepared, result: Result, slot: Slot, world: World): Promise<void> {
  const latencyMs = world.monotonic() - slot.startedAt;
  if (!isToldOf(world.exchanges, result)) {
    slot.free();
    return conclude(prepared, result, latencyMs, world);
  }
  const heard = heardBy(slot.signal);
  slot.free();
  return exchangeOf(result, heard).then((exchange) => conclude(prepared, { ...result, exchange }, latencyMs, world));
}

/** Writes what an attempt came to, also one that was never begun. */
export async function conclude(prepared: Prepared, result: Result, latencyMs: number, world: World): Promise<void> {
  const { outcome } = result;
  const came = outcome.kind === "postponed" ? await hold(prepared, outcome, result, world) : result;
  const ending = end(prepared, came, latencyMs, world);
  const ended = ending instanceof Promise ? await ending : ending;
  const settling = settle(ended, world.settlements);
  const settled = await (world.traces?.settling(ended, settling) ?? settling);
  if (settled) tell(settled, world);
  else world.facts.leaseLost(ended, came.outcome.kind);
}
