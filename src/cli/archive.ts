// carillon archive …: what was archived, looked at where it is, and brought back into the database.

import { parseArgs } from "node:util";
import { findArchived } from "#archive/find.ts";
import { listManifests, type Manifest, readManifest } from "#archive/manifest.ts";
import { openArchive } from "#archive/open.ts";
import { type Restoration, restore, type Wanted } from "#archive/restore.ts";
import { ArchiveError, type ArchiveStore } from "#archive/store.ts";
import { faultsOf, listFound } from "#archive/verify.ts";
import { ConfigError } from "#config/fault.ts";
import type { Config } from "#config/read.ts";
import { isId } from "#domain/ids.ts";
import type { Facts } from "#telemetry/facts.ts";
import { openStore } from "#wiring/database.ts";
import { ageFaultOf, joinDatabase } from "./join-database.ts";
import { osUser } from "./os-user.ts";

export const ARCHIVE_USAGE = `  carillon archive ls                            what there is
  carillon archive get ID                        a notification with its events, as it was archived last
  carillon archive verify [WEEK|NAME]            read every byte and compare
  carillon archive restore WEEK|NAME|ID [--days N]  bring back into the database, for so many days (30)`;

type World = { config: Config; facts: Facts; print: (line: string) => void; complain: (line: string) => void };
type Command = (store: ArchiveStore, what: string, world: World, days: number) => Promise<number>;

const WEEK_OR_NAME = /^\d{8}(-[\da-f]{8})?$/;
const DAYS = 30;
const MOST_DAYS = 3_650;

const COMMANDS: { [verb: string]: { takes: (what: string) => boolean; run: Command } } = {
  ls: { takes: (what) => what === "", run: ls },
  get: { takes: isId, run: get },
  verify: { takes: (what) => what === "" || WEEK_OR_NAME.test(what), run: verify },
  restore: { takes: (what) => isId(what) || WEEK_OR_NAME.test(what), run: bringBack },
};

/** The exit code, or what is wrong with the arguments. */
export async function runArchive(args: string[], world: World): Promise<number | string> {
  const { values, positionals } = parseArgs({
    args,
    options: { days: { type: "string" } },
    allowPositionals: true,
    strict: false,
  });
  const [verb = "", what = "", ...more] = positionals;
  const command = Object.hasOwn(COMMANDS, verb) ? COMMANDS[verb] : undefined;
  const isKnown = Object.keys(values).every((option) => option === "days" && verb === "restore");
  if (!command?.takes(what.toLowerCase()) || more.length > 0 || !isKnown) {
    return `there is no command archive ${args.join(" ")}`;
  }
  const days = Number(values.days ?? DAYS);
  if (!Number.isInteger(days) || days < 1 || days > MOST_DAYS) return `--days must be a number from 1 to ${MOST_DAYS}`;
  const { archive } = world.config;
  if (!archive) {
    throw new ConfigError([{ path: "archive", message: "is not set: say where the archive is (docs/archive.md)" }]);
  }
  const store = await openArchive(archive);
  try {
    return await command.run(store, what.toLowerCase(), world, days);
  } finally {
    await store.close();
  }
}

async function ls(store: ArchiveStore, _what: string, { print }: World): Promise<number> {
  for await (const { name, objects } of listFound(store, "")) {
    const bytes = objects.reduce((sum, object) => sum + object.bytes, 0);
    const manifest = await readManifest(store, name).catch((error: unknown) => {
      if (error instanceof ArchiveError) return error;
      throw error;
    });
    print(columns([name, ...(manifest instanceof Error ? [manifest.message] : told(manifest)), sizeOf(bytes)]));
  }
  return 0;
}

function told(manifest: Manifest | undefined): string[] {
  if (!manifest) return ["unfinished: it has no manifest"];
  const { kind, from, to, notifications, events, callbacks } = manifest;
  const counts = [`${notifications} notifications`, `${events} events`, `${callbacks} callbacks`];
  return [kind, `${from.slice(0, 10)} to ${to.slice(0, 10)}`, ...counts];
}

async function get(store: ArchiveStore, id: string, { print, complain }: World): Promise<number> {
  const found = await findArchived(store, id);
  if (!found) {
    complain(`carillon: ${id} is in no archive of ${store.place}`);
    return 1;
  }
  const { manifest, line } = found;
  // The line as it is: numbers may be longer than JavaScript's.
  print(`{"archive":${JSON.stringify(manifest.name)},"tenants":${JSON.stringify(manifest.tenants)},${line.slice(1)}`);
  return 0;
}

async function verify(store: ArchiveStore, prefix: string, { print, complain }: World): Promise<number> {
  let [looked, broken] = [0, 0];
  for await (const { name } of listFound(store, prefix)) {
    looked += 1;
    let isSound = true;
    for await (const fault of faultsOf(store, name)) {
      isSound = false;
      print(`${name}  BROKEN  ${fault}`);
    }
    if (isSound) print(`${name}  sound`);
    else broken += 1;
  }
  if (looked === 0 && prefix !== "") complain(`carillon: there is no archive ${prefix} in ${store.place}`);
  else print(`${looked} archives, ${broken} broken`);
  return broken > 0 || (looked === 0 && prefix !== "") ? 1 : 0;
}

async function bringBack(store: ArchiveStore, what: string, world: World, days: number): Promise<number> {
  const { config, facts, print, complain } = world;
  const wanted = await findWanted(store, what);
  if (!wanted) {
    complain(`carillon: ${what} is in no archive of ${store.place}`);
    return 1;
  }
  const server = await joinDatabase(config, facts);
  const database = openStore(config, { url: server.url }, facts);
  try {
    const actor = { kind: "command-line", command: "archive restore", user: osUser() } as const;
    const done = await restore({ pool: database.own, store }, actor, wanted, days);
    tell(done, days, print);
    for (const fault of done.faults) complain(`carillon: passed over: ${fault}`);
    return done.faults.length > 0 ? 1 : 0;
  } catch (error) {
    throw ageFaultOf(error) ?? error;
  } finally {
    await database.close();
    await server.stop();
  }
}

async function findWanted(store: ArchiveStore, what: string): Promise<Wanted | undefined> {
  if (!isId(what)) {
    const manifests = await listManifests(store, what);
    return manifests.length > 0 ? { manifests } : undefined;
  }
  const found = await findArchived(store, what);
  return found && { manifests: [found.manifest], only: { id: what, line: found.line } };
}

function tell({ restored, present, forgotten, foreign, strangers }: Restoration, days: number, print: World["print"]) {
  print(`${restored} brought back, to be read for ${days} days; ${present} were there`);
  if (forgotten > 0) print(`${forgotten} left out: they are about people who were forgotten since`);
  if (foreign > 0) print(`${foreign} left out: their tenants are not here (${strangers.join(", ")})`);
}

const sizeOf = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;
const columns = (cells: string[]): string => cells.join("  ");
