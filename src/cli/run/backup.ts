// carillon backup and carillon restore: the embedded database, as a directory.

import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { VERSION } from "#config/version.ts";
import { takeBackup } from "#embedded/backup.ts";
import { checkBackup, restoreBackup } from "#embedded/restore.ts";
import { EXIT, Failure, type Run, type World } from "../command.ts";
import { stopSignal } from "../stopping.ts";
import { joinDatabase } from "./join-database.ts";
import { said } from "./lines.ts";
import { sizeOf } from "./times.ts";

async function embeddedHome(world: World): Promise<string> {
  const { databaseUrl, home } = await world.config();
  if (databaseUrl === undefined) return home;
  throw new Failure(
    "that is for the embedded database; DATABASE_URL names another, which pg_basebackup or pg_dump backs up",
    EXIT.refused,
  );
}

/** What was begun is removed when it is broken off. */
async function interruptibly<Value>(use: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
  const { stopping } = stopSignal();
  return use(stopping).catch((cause: unknown) => {
    if (stopping.aborted) throw new Failure("broken off: nothing was made", EXIT.failed, { cause });
    throw cause;
  });
}

export const backup: Run = async ({ args: [target = ""] }, world) => {
  const home = await embeddedHome(world);
  const server = await joinDatabase(await world.config(), await world.facts());
  const progress = world.progress("backup", sizeOf);
  try {
    const base = realpathSync(join(home, "postgres"));
    const made = await interruptibly((signal) =>
      takeBackup({ url: server.url, base }, target, { version: VERSION, signal, onProgress: progress.at }),
    );
    progress.end();
    const { directory, files, bytes, startedAt } = made;
    return said(`${directory} has all that was accepted until ${startedAt}: ${files} files, ${sizeOf(bytes)}`, made);
  } finally {
    await server.stop();
  }
};

export const restore: Run = async ({ args: [from = ""], flags }, world) => {
  if (!existsSync(from)) throw new Failure(`there is no ${from}`, EXIT.notFound);
  const progress = world.progress(flags.has("check") ? "check" : "restore", sizeOf);
  const options = { onProgress: progress.at };
  if (flags.has("check")) {
    const sound = await checkBackup(from, options);
    progress.end();
    return said(`${from} is sound: ${sound.files} files, ${sizeOf(sound.bytes)}, of ${sound.startedAt}`, sound);
  }
  const home = await embeddedHome(world);
  const facts = await world.facts();
  const restored = await interruptibly((signal) =>
    restoreBackup(from, home, {
      ...options,
      signal,
      onNote: (message, details) => facts.embeddedSaid(message, details),
    }),
  );
  progress.end();
  const text = [
    `${home} has the database as it was at ${restored.startedAt}, or a little later: ${sizeOf(restored.bytes)}`,
    "What waited then is sent when Carillon is started: with CARILLON_ROLES=api nothing is sent while you look.",
  ];
  return { json: { ...restored, home }, text };
};
