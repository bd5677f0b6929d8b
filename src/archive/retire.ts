// Ends the keeping of what is older than the retention, after it was archived.
//
// A week is written part by part, each noted once it is in the store: whoever is killed leaves a part half done at the most, and the next
// goes on after the last that was noted. Nothing holds a transaction open: pages are statements of a moment, and what happens to a
// notification meanwhile is noted by a trigger on its week (migration 0035). Once manifest and parts were read back, the week is dropped,
// and what waits or has changed since moves on to the default partition. There it is archived when it is over, as a late archive of its
// week.
//
// An archive that is away ends it for now, with everything kept; the keeper tries again, ever more rarely.

import {
  beginArchive,
  deleteArchived,
  endTrouble,
  forgetArchive,
  listParts,
  notePart,
  noteTrouble,
  noteWritten,
  type Page,
  readLatePage,
  readOrigin,
  readWeekPage,
  type Week,
} from "#store/archiving.ts";
import type { Queryable } from "#store/connection/database.ts";
import { BEFORE_ALL, dropWeek, eachAlone, findOldWeeks, type Steps, thin } from "#store/housekeeping.ts";
import { type Manifest, manifestOf, newName, type Part, putManifest } from "./manifest.ts";
import { faultOf, packPart, putPart } from "./part.ts";
import { ArchiveError, type ArchiveStore } from "./store.ts";

export type ArchiveFacts = {
  archived(manifest: Manifest): void;
  archivePostponed(part: string, error: Error): void;
};
export type ArchiveWorld = { db: Queryable; store: ArchiveStore; facts: ArchiveFacts };

const NOTHING: Page = { lines: "", ids: [], tenants: [], seqs: [], events: 0 };
/** Read at a time: a moment's work, and little memory however long the lines are. */
const PAGE_ROWS = 250;
const PAGE_BYTES = 1024 * 1024;

export async function* retireArchived(world: ArchiveWorld, days: number, batch: number): Steps {
  const { db } = world;
  const { before, weeks } = await findOldWeeks(db, days);
  const each = weeks.map((week) => postponing(world, week, retireWeek(world, week, before, batch)));
  const late = postponing(world, "default", archiveLate(world, "default", before, batch));
  // Where the archive is away nothing else can be done either.
  yield* eachAlone([...each, late], (error) => error instanceof ArchiveError);
  await endTrouble(db);
}

async function* postponing({ db, facts }: ArchiveWorld, part: string, steps: Steps): Steps {
  try {
    yield* steps;
  } catch (error) {
    if (error instanceof ArchiveError) {
      await noteTrouble(db, part, error.message);
      facts.archivePostponed(part, error);
    }
    throw error;
  }
}

async function* retireWeek(world: ArchiveWorld, week: string, before: Date, batch: number): Steps {
  yield* archiveWeek(world, week, batch);
  if (await dropWeek(world.db, week, batch)) {
    yield 1;
    return;
  }
  yield* thin(world.db, week, before, batch);
  yield* archiveLate(world, week, before, batch);
}

/** To the end: what is begun already goes on, and what is written, or was brought back from there, is not written again. */
async function* archiveWeek(world: ArchiveWorld, of: string, batch: number): Steps {
  const { db, store, facts } = world;
  const name = newName(of);
  let week = await beginArchive(db, of, name);
  while (week.state === "begun") week = await beginArchive(db, of, name);
  if (week.state !== "writing") return;
  yield* writeParts(world, week, batch);
  const parts = (await listParts<Part>(db, of)).map(({ part }) => part);
  const manifest = await describe(db, week, "week", parts);
  await putManifest(store, manifest);
  for (const part of parts) {
    const fault = await faultOf(store, part);
    if (fault !== undefined) {
      await forgetArchive(db, week);
      throw new ArchiveError(`what was archived does not read back: ${fault}`);
    }
    yield 0;
  }
  const { notifications, events } = manifest;
  await noteWritten(db, week, { notifications, events });
  facts.archived(manifest);
}

/** A part is read while the one before it is sent. */
async function* writeParts({ db, store }: ArchiveWorld, week: Week, batch: number): Steps {
  const written = await listParts<Part>(db, week.week);
  let number = written.length;
  let place = written.at(-1)?.last ?? BEFORE_ALL;
  let sending: Promise<void> = Promise.resolve();
  for (;;) {
    const reading = packPart(week.name, number + 1, place, (after) =>
      readWeekPage(db, week.week, after, Math.min(batch, PAGE_ROWS), PAGE_BYTES),
    );
    const [packed] = await Promise.all([reading, sending]);
    if (!packed) return;
    number += 1;
    place = packed.last;
    sending = send(number, packed);
    // Awaited with the next part; whoever stops in between leaves it unnoted.
    sending.catch(() => undefined);
    yield packed.part.notifications;
  }

  async function send(at: number, packed: NonNullable<Awaited<ReturnType<typeof packPart>>>): Promise<void> {
    await putPart(store, packed);
    if (!(await notePart(db, week, at, packed.last, packed.part))) {
      throw new Error(`somebody else archives the week ${week.week}`);
    }
  }
}

/** What is over in a partition that is not dropped, a page after the other: in the archive first, then out of the record. */
async function* archiveLate(world: ArchiveWorld, partition: string, before: Date, batch: number): Steps {
  const { db, store, facts } = world;
  for (;;) {
    const page = await readLatePage(db, partition, before, batch, PAGE_BYTES);
    if (!page) return;
    const name = newName(page.week);
    const pages: Page[] = [page];
    const packed = await packPart(name, 1, BEFORE_ALL, async () => pages.shift() ?? NOTHING);
    if (!packed) return;
    await putPart(store, packed);
    const begunAt = new Date();
    const manifest = await describe(db, { week: page.week, name, begunAt }, "late", [packed.part]);
    await putManifest(store, manifest);
    const fault = await faultOf(store, packed.part);
    if (fault !== undefined) throw new ArchiveError(`what was archived does not read back: ${fault}`);
    facts.archived(manifest);
    yield await deleteArchived(db, partition, page);
  }
}

async function describe(
  db: Queryable,
  { name, begunAt }: Pick<Week, "week" | "name" | "begunAt">,
  kind: Manifest["kind"],
  parts: readonly Part[],
): Promise<Manifest> {
  const numbers = parts.flatMap(({ firstTenant, lastTenant }) => [Math.abs(firstTenant), Math.abs(lastTenant)]);
  const isMixed = parts.some(({ firstTenant, lastTenant }) => firstTenant < 0 && lastTenant > 0);
  const { schema, tenants } = await readOrigin(db, isMixed ? 1 : Math.min(...numbers), Math.max(...numbers));
  return manifestOf({ name, kind, schema, createdAt: begunAt.toISOString(), tenants }, parts);
}
