// Brings back what was archived, to be read: into a partition of its week that is kept for some days and then goes again.
//
// A batch of lines is a transaction, notifications with their events; what is there already stays as it is. So whoever is killed leaves
// whole notifications, and the next goes through all of it again. Archives of a week come the youngest first: of a notification that
// is in several, that one has it as it ended.

import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { CommandLineActor } from "#domain/actor.ts";
import { beginRestore, findTenantNumbers, type Restored, readOrigin, restoreLines } from "#store/archiving.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction } from "#store/connection/database.ts";
import { linesOf } from "./lines.ts";
import type { Manifest } from "./manifest.ts";
import { ArchiveError, type ArchiveStore, DamageError } from "./store.ts";

export type RestoreWorld = { pool: pg.Pool; store: ArchiveStore; waitMs?: number };

/** All of these archives of one week, or one line of the youngest of them. */
export type Wanted = { manifests: readonly Manifest[]; only?: { id: string; line: string } };

/** `present`: were there before. `strangers` are tenants that this database does not have, `faults` what is damaged and was passed over. */
export type Restoration = Restored & { present: number; strangers: string[]; faults: string[] };

const MOST_LINES = 500;
const MOST_CHARACTERS = 4 * 1024 * 1024;

export async function restore(
  world: RestoreWorld,
  actor: CommandLineActor,
  { manifests, only }: Wanted,
  days: number,
): Promise<Restoration> {
  const youngestFirst = [...manifests].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
  const [youngest] = youngestFirst;
  if (!youngest) throw new ArchiveError("there is no such archive");
  await refuseNewer(world, manifests);
  await begin(world, actor, youngest, { days, ...(only && { notification: only.id }) });
  const total: Restoration = { restored: 0, forgotten: 0, foreign: 0, present: 0, strangers: [], faults: [] };
  for (const manifest of youngestFirst) {
    const { numbers, strangers } = await matchTenants(world, manifest);
    total.strangers = [...new Set([...total.strangers, ...strangers])];
    const lines = only ? [only.line] : linesOfAll(world.store, manifest, (fault) => total.faults.push(fault));
    for await (const batch of batchesOf(lines)) {
      const { restored, forgotten, foreign } = await restoreLines(world.pool, manifest.week, batch, numbers);
      total.restored += restored;
      total.forgotten += forgotten;
      total.foreign += foreign;
      total.present += batch.length - restored - forgotten - foreign;
    }
  }
  return total;
}

async function refuseNewer({ pool }: RestoreWorld, manifests: readonly Manifest[]): Promise<void> {
  const { schema } = await readOrigin(pool, 1, 0);
  const newer = manifests.find((manifest) => manifest.schema > schema);
  if (newer) {
    throw new ArchiveError(
      `${newer.name} was written by a newer Carillon (schema ${newer.schema}, here ${schema}): upgrade first`,
    );
  }
}

const LOCK_NOT_AVAILABLE = "55P03";
const TRIES = 30;
const WAIT_MS = 1_000;

/** It needs the default partition for a moment, and asks again where somebody has it for longer. */
async function begin(
  { pool, waitMs = WAIT_MS }: RestoreWorld,
  actor: CommandLineActor,
  { week, name }: Manifest,
  after: { days: number; notification?: string },
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      const isBegun = await inTransaction(pool, async (tx) => {
        if (!(await beginRestore(tx, week, name, after.days))) return false;
        await writeAudit(tx, actor, { action: "archive.restore", object: { kind: "archive", name }, after });
        return true;
      });
      if (isBegun) return;
      throw new ArchiveError(`the week ${week} is in the record: nothing of it is brought back`);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === LOCK_NOT_AVAILABLE)) throw error;
      if (tries === TRIES) throw new ArchiveError("the record was in use all the time: try again", { cause: error });
      await sleep(waitMs);
    }
  }
}

/** By name: the numbers of another database are other tenants'. */
async function matchTenants(
  { pool }: RestoreWorld,
  { tenants }: Manifest,
): Promise<{ numbers: { [number: string]: number }; strangers: string[] }> {
  const today = new Map(Object.entries(await findTenantNumbers(pool, Object.values(tenants))));
  const numbers: { [number: string]: number } = {};
  const strangers: string[] = [];
  for (const [number, name] of Object.entries(tenants)) {
    const found = today.get(name);
    if (found === undefined) strangers.push(name);
    else {
      numbers[number] = found;
      // Their callbacks.
      numbers[`-${number}`] = -found;
    }
  }
  return { numbers, strangers };
}

async function* linesOfAll(
  store: ArchiveStore,
  { parts }: Manifest,
  damaged: (fault: string) => void,
): AsyncGenerator<string> {
  for (const part of parts) {
    try {
      yield* linesOf(store, part);
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      damaged(error.message);
    }
  }
}

async function* batchesOf(lines: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string[]> {
  let batch: string[] = [];
  let size = 0;
  for await (const line of lines) {
    batch.push(line);
    size += line.length;
    if (batch.length < MOST_LINES && size < MOST_CHARACTERS) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}
