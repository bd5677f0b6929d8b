// This process among those that deliver: its number and its name, its heartbeat, and its farewell.

import { hostname } from "node:os";
import { NOTHING } from "#domain/worker-takes.ts";
import { beat, registerWorker, signOff } from "#store/workers.ts";
import type { Base } from "./base.ts";
import type { Stop } from "./undo.ts";

export type Member = {
  id: number;
  name: string;
  /** From now on each beat says what this reads. */
  tellOf(stats: () => { [name: string]: number }): void;
};

const BEAT_MS = 5_000;
/** Three missed beats. */
export const SILENT_MS = 15_000;

export async function joinMembers(
  { config, database, engines, facts }: Pick<Base, "config" | "database" | "engines" | "facts">,
  undo: Stop[],
): Promise<Member> {
  const name = `${hostname()}-${process.pid}-${crypto.randomUUID()}`;
  const takes = config.roles.includes("worker") ? config.takes : NOTHING;
  const id = await registerWorker(database.own, { name, takes, engines: engines?.names ?? [] });
  let read = (): { [name: string]: number } => ({});
  const beating = setInterval(() => {
    beat(database.own, id, read()).catch((error: unknown) => facts.heartbeatMissed(error));
  }, BEAT_MS);
  undo.push(async () => {
    clearInterval(beating);
    // Whoever stays silent is buried all the same.
    await signOff(database.own, id).catch(() => undefined);
  });
  return {
    id,
    name,
    tellOf(stats) {
      read = stats;
    },
  };
}
