// What a worker knows of pauses, kept up to date. It begins nothing before it knows them.

import { createPauses, type Pauses } from "#guards/pauses.ts";
import { readPaused } from "#store/pauses.ts";
import type { Base } from "./base.ts";
import type { Stop } from "./undo.ts";

/** A pause holds everywhere after this long. */
const LOOK_MS = 1_000;

export async function openPauses({ database, monotonic, facts }: Base, undo: Stop[]): Promise<Pauses> {
  const pauses = createPauses({
    read: () => readPaused(database.own),
    monotonic,
    onFailure: (error) => facts.pausesUnread(error),
  });
  await pauses.look();
  const looks = setInterval(() => void pauses.look(), LOOK_MS);
  undo.push(async () => {
    clearInterval(looks);
    await pauses.look();
  });
  return pauses;
}
