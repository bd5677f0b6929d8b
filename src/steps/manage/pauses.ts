// Channels, providers and tenants: paused and resumed. What has begun ends; what waits keeps its place and spends nothing.
//
// The default tenant's administrators run the deployment, and may pause all of it. Others may pause what is theirs alone: their
// tenant, and their own accounts with providers. What those who run the deployment have paused, only they resume.

import type pg from "pg";
import type { Providers } from "#channels/providers.ts";
import type { KeyActor } from "#domain/actor.ts";
import { CHANNELS } from "#domain/notification.ts";
import type { PauseKind } from "#domain/pause.ts";
import { invalid, Problem } from "#domain/problems.ts";
import type { Queue, Pausable as Withheld } from "#queue/queue.ts";
import { bringBackSome } from "#steps/planned/end-pauses.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable, readClock } from "#store/connection/database.ts";
import { deletePause, findPause, isPausedByOthers, type PauseRow, putPause } from "#store/pauses.ts";
import { findTenant, lockTenant } from "#store/tenants.ts";
import { isOperator } from "./keys.ts";

export type PauseWorld = {
  pool: pg.Pool;
  queue: Pick<Queue, "pause" | "resume" | "bringBack">;
  providers: Pick<Providers, "find" | "accountOf">;
  /** Something was planned, for that instant of the database's clock. */
  plan: (dueMs: number) => void;
};

export type Pausable = { kind: Exclude<PauseKind, "lane">; name: string };

/** The queue keeps channels and tenants from being claimed; an account stands in the way of whoever wants to send through it. */
type Place = Withheld | { kind: "provider"; name: string };

export async function pause(
  { pool, queue, providers, plan }: PauseWorld,
  actor: KeyActor,
  which: Pausable,
  { reason, until }: { reason: string; until?: string },
): Promise<PauseRow | Problem> {
  const end = until === undefined ? undefined : new Date(until);
  const paused = await inTransaction(pool, async (tx) => {
    const place = await placeOf(tx, providers, actor, which);
    if (place instanceof Problem) return place;
    if (end && !(end > (await readClock(tx)))) return invalid([{ path: "/until", message: "must be in the future" }]);
    const said = { reason, by: actor.keyId, ...(end && { until: end }) };
    const before = shown(await findPause(tx, place));
    if (place.kind === "provider") await putPause(tx, place, said);
    else await queue.pause(tx, place, said);
    const made = await findPause(tx, place);
    if (!made) return new Problem("NOT_FOUND", "its end has come meanwhile");
    await writeAudit(tx, actor, {
      action: `${which.kind}.pause`,
      ...(await objectOf(tx, which)),
      before,
      after: shown(made),
    });
    return made;
  });
  if (end && !(paused instanceof Problem)) plan(end.getTime());
  return paused;
}

/** What is not paused stays so. */
export async function resume(
  { pool, queue, providers }: Omit<PauseWorld, "plan">,
  actor: KeyActor,
  which: Pausable,
): Promise<Problem | undefined> {
  const problem = await inTransaction(pool, async (tx) => {
    const place = await placeOf(tx, providers, actor, which);
    if (place instanceof Problem) return place;
    const paused = await findPause(tx, place);
    if (place.kind === "provider") await deletePause(tx, place);
    else await queue.resume(tx, place);
    const before = shown(paused);
    if (paused) await writeAudit(tx, actor, { action: `${which.kind}.resume`, ...(await objectOf(tx, which)), before });
    return undefined;
  });
  if (!problem && which.kind === "provider") await bringBackSome({ db: pool, queue });
  return problem;
}

/** What is paused, and whose it is where that is not the actor's own. */
async function objectOf(tx: Queryable, { kind, name }: Pausable) {
  const tenant = kind === "tenant" ? await findTenant(tx, name) : undefined;
  return { object: { kind, name }, ...(tenant !== undefined && { tenant }) };
}

const shown = (pause: PauseRow | undefined) => ({ reason: pause?.reason, until: pause?.until });

/** What a pause is known by; or why this actor cannot have it. */
async function placeOf(
  tx: Queryable,
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
      const place = { kind, name };
      // Locked, so that nobody else pauses it between this look and what follows from it.
      if ((await lockTenant(tx, name)) === undefined) return new Problem("NOT_FOUND", `there is no tenant ${name}`);
      if (!operates && (await isPausedByOthers(tx, place, actor.tenant)))
        return new Problem("FORBIDDEN", "it was paused by who runs the deployment: ask them");
      return place;
    }
    case "provider":
      return accountOf(tx, providers, actor, name);
  }
}

async function accountOf(
  tx: Queryable,
  providers: PauseWorld["providers"],
  actor: KeyActor,
  name: string,
): Promise<Place | Problem> {
  const kind = "provider";
  const provider = providers.find(name, actor.tenant);
  // The deployment's account, whatever else its own tenant may use.
  const place = { kind, name: isOperator(actor) ? name : providers.accountOf({ name, owner: actor.tenant }) } as const;
  if (!provider) {
    // One that is no longer configured may still be waited for.
    return (await findPause(tx, place)) ? place : new Problem("NOT_FOUND", `there is no provider ${name}`);
  }
  if (isOperator(actor) || provider.owner === actor.tenant) return place;
  return new Problem("FORBIDDEN", `the account with ${name} is everybody's: ask who runs the deployment`);
}

/** Whether it concerns somebody: all that is everybody's, and their own. */
export function seenBy(actor: KeyActor, { kind, name, owner }: Pick<PauseRow, "kind" | "name" | "owner">): boolean {
  if (isOperator(actor)) return true;
  return kind === "tenant" ? name === actor.tenantName : owner === null || owner === actor.tenantName;
}
