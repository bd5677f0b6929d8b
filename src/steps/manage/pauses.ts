// Channels, providers and tenants: paused and resumed. What has begun ends; what waits keeps its place and spends nothing.
//
// The default tenant's administrators run the deployment, and may pause all of it. Others may pause what is theirs alone: their
// tenant, and their own accounts with providers.

import type { Providers } from "#channels/providers.ts";
import type { KeyActor } from "#domain/actor.ts";
import { CHANNELS } from "#domain/notification.ts";
import type { PauseKind } from "#domain/pause.ts";
import { invalid, Problem } from "#domain/problems.ts";
import type { Queue, Pausable as Withheld } from "#queue/queue.ts";
import { bringBackSome } from "#steps/planned/end-pauses.ts";
import { type Queryable, readClock } from "#store/connection/database.ts";
import { deletePause, findPause, type PauseRow, putPause } from "#store/pauses.ts";
import { findTenant } from "#store/tenants.ts";
import { isOperator } from "./keys.ts";

export type PauseWorld = {
  db: Queryable;
  queue: Pick<Queue, "pause" | "resume" | "bringBack">;
  providers: Pick<Providers, "find" | "accountOf">;
  /** Something was planned, for that instant of the database's clock. */
  plan: (dueMs: number) => void;
};

export type Pausable = { kind: Exclude<PauseKind, "lane">; name: string };

/** The queue keeps channels and tenants from being claimed; an account stands in the way of whoever wants to send through it. */
type Place = Withheld | { kind: "provider"; name: string };

export async function pause(
  { db, queue, providers, plan }: PauseWorld,
  actor: KeyActor,
  which: Pausable,
  { reason, until }: { reason: string; until?: string },
): Promise<PauseRow | Problem> {
  const place = await placeOf(db, providers, actor, which);
  if (place instanceof Problem) return place;
  const end = until === undefined ? undefined : new Date(until);
  if (end && !(end > (await readClock(db)))) return invalid([{ path: "/until", message: "must be in the future" }]);
  const said = { reason, by: actor.keyId, ...(end && { until: end }) };
  if (place.kind === "provider") await putPause(db, place, said);
  else await queue.pause(db, place, said);
  if (end) plan(end.getTime());
  return (await findPause(db, place)) ?? new Problem("NOT_FOUND", "it was resumed meanwhile");
}

/** What is not paused stays so. */
export async function resume(
  { db, queue, providers }: Omit<PauseWorld, "plan">,
  actor: KeyActor,
  which: Pausable,
): Promise<Problem | undefined> {
  const place = await placeOf(db, providers, actor, which);
  if (place instanceof Problem) return place;
  if (place.kind !== "provider") {
    await queue.resume(db, place);
    return undefined;
  }
  await deletePause(db, place);
  await bringBackSome({ db, queue });
  return undefined;
}

/** What a pause is known by; or why this actor cannot have it. */
async function placeOf(
  db: Queryable,
  providers: PauseWorld["providers"],
  actor: KeyActor,
  { kind, name }: Pausable,
): Promise<Place | Problem> {
  const operates = isOperator(actor);
  switch (kind) {
    case "channel": {
      if (!operates) return new Problem("FORBIDDEN", "channels are everybody's: ask who runs the deployment");
      const channel = CHANNELS.find((one) => one === name);
      return channel ? { kind, name: channel } : new Problem("NOT_FOUND", `there is no channel ${name}`);
    }
    case "tenant": {
      if (!operates && name !== actor.tenantName) return new Problem("FORBIDDEN", "that tenant is not yours");
      const found = await findTenant(db, name);
      return found === undefined ? new Problem("NOT_FOUND", `there is no tenant ${name}`) : { kind, name };
    }
    case "provider": {
      const provider = providers.find(name, actor.tenant);
      if (!provider) return new Problem("NOT_FOUND", `there is no provider ${name}`);
      // The deployment's account, whatever else its own tenant may use.
      if (operates) return { kind, name };
      if (provider.owner === actor.tenant) return { kind, name: providers.accountOf(provider) };
      return new Problem("FORBIDDEN", `the account with ${name} is everybody's: ask who runs the deployment`);
    }
  }
}

/** Whether it concerns somebody: all that is everybody's, and their own. */
export function seenBy(actor: KeyActor, { kind, name, owner }: Pick<PauseRow, "kind" | "name" | "owner">): boolean {
  if (isOperator(actor)) return true;
  return kind === "tenant" ? name === actor.tenantName : owner === null || owner === actor.tenantName;
}
