// Looking something up in the archive, without a database.

import { madeAtMs } from "#domain/ids.ts";
import { linesOf, parseLine } from "./lines.ts";
import { listManifests, type Manifest } from "./manifest.ts";
import type { ArchiveStore } from "./store.ts";

/** A notification as an archive has it. */
export type Archived = { manifest: Manifest; line: string };

/**
 * As it ended: from the youngest archive that has it. An id tells its week, and parts tell which ids they have, so that few are read;
 * where nothing is found all of the week's archives could be read.
 */
export async function findArchived(store: ArchiveStore, id: string): Promise<Archived | undefined> {
  for (const manifest of (await listManifests(store, weekOfId(id))).reverse()) {
    for (const part of manifest.parts.filter(({ firstId, lastId }) => firstId <= id && id <= lastId)) {
      for await (const line of linesOf(store, part)) {
        if (line.includes(id) && parseLine(line)?.notification.id === id) return { manifest, line };
      }
    }
  }
  return undefined;
}

const DAY_MS = 86_400_000;

/** The Monday, in UTC, of the week in which the id was made. */
export function weekOfId(id: string): string {
  const at = madeAtMs(id);
  // 1970 began on a Thursday.
  const daysSinceMonday = (Math.floor(at / DAY_MS) + 3) % 7;
  return new Date(at - daysSinceMonday * DAY_MS).toISOString().slice(0, 10).replaceAll("-", "");
}
