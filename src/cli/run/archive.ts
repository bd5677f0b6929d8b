// carillon archive …: what was archived, looked at where it is, and brought back into the database.

import { findArchived } from "#archive/find.ts";
import { listManifests, type Manifest, readManifest } from "#archive/manifest.ts";
import { openArchive } from "#archive/open.ts";
import { type Restoration, restore, type Wanted } from "#archive/restore.ts";
import { ArchiveError, type ArchiveStore } from "#archive/store.ts";
import { faultsOf, listFound } from "#archive/verify.ts";
import { ConfigError } from "#config/fault.ts";
import { isId } from "#domain/ids.ts";
import { type Answer, EXIT, Failure, type Run, type World } from "../command.ts";
import { withDatabase } from "./join-database.ts";
import { osUser } from "./os-user.ts";

type Look = (store: ArchiveStore, what: string, world: World, days: number) => Promise<Answer>;

const WEEK_OR_NAME = /^\d{8}(-[\da-f]{8})?$/;
const DAYS = 30;
const MOST_DAYS = 3_650;

const inArchive =
  (takes: (what: string) => boolean, expected: string, look: Look): Run =>
  async ({ args: [said = ""], options }, world) => {
    const what = said.toLowerCase();
    if (!takes(what)) throw new Failure(`${said} is no ${expected}`, EXIT.usage);
    const days = Number(options.days ?? DAYS);
    if (days > MOST_DAYS) throw new Failure(`--days must be a number from 1 to ${MOST_DAYS}`, EXIT.usage);
    const { archive } = await world.config();
    if (!archive) {
      throw new ConfigError([{ path: "archive", message: "is not set: say where the archive is (docs/archive.md)" }]);
    }
    const store = await openArchive(archive);
    try {
      return await look(store, what, world, days);
    } finally {
      await store.close();
    }
  };

export const listArchives = inArchive(
  () => true,
  "",
  async (store) => {
    const data: unknown[] = [];
    const text: string[] = [];
    for await (const { name, objects } of listFound(store, "")) {
      const bytes = objects.reduce((sum, object) => sum + object.bytes, 0);
      const manifest = await readManifest(store, name).catch((error: unknown) => {
        if (error instanceof ArchiveError) return error;
        throw error;
      });
      const isFault = manifest instanceof Error;
      text.push([name, ...(isFault ? [manifest.message] : told(manifest)), sizeOf(bytes)].join("  "));
      data.push({ name, bytes, ...(isFault ? { error: manifest.message } : (manifest ?? { unfinished: true })) });
    }
    return { json: { data }, text };
  },
);

function told(manifest: Manifest | undefined): string[] {
  if (!manifest) return ["unfinished: it has no manifest"];
  const { kind, from, to, notifications, events, callbacks } = manifest;
  const counts = [`${notifications} notifications`, `${events} events`, `${callbacks} callbacks`];
  return [kind, `${from.slice(0, 10)} to ${to.slice(0, 10)}`, ...counts];
}

export const getArchived = inArchive(isId, "id of a notification", async (store, id, world) => {
  const found = await findArchived(store, id);
  if (!found) throw new Failure(`${id} is in no archive of ${store.place}`, EXIT.notFound);
  const { manifest, line } = found;
  // The line as it is, for programs too: numbers may be longer than JavaScript's.
  world.print(
    `{"archive":${JSON.stringify(manifest.name)},"tenants":${JSON.stringify(manifest.tenants)},${line.slice(1)}`,
  );
  return { json: undefined, text: [] };
});

export const verifyArchives = inArchive(
  (what) => what === "" || WEEK_OR_NAME.test(what),
  "week like 20260105, nor name of an archive",
  async (store, prefix) => {
    const data: { name: string; faults: string[] }[] = [];
    for await (const { name } of listFound(store, prefix)) {
      const faults: string[] = [];
      for await (const fault of faultsOf(store, name)) faults.push(fault);
      data.push({ name, faults });
    }
    if (data.length === 0 && prefix !== "") {
      throw new Failure(`there is no archive ${prefix} in ${store.place}`, EXIT.notFound);
    }
    const broken = data.filter(({ faults }) => faults.length > 0).length;
    const lines = data.flatMap(({ name, faults }) =>
      faults.length > 0 ? faults.map((fault) => `${name}  BROKEN  ${fault}`) : [`${name}  sound`],
    );
    return {
      json: { data, archives: data.length, broken },
      text: [...lines, `${data.length} archives, ${broken} broken`],
      code: broken > 0 ? EXIT.failed : EXIT.done,
    };
  },
);

export const restoreArchived = inArchive(
  (what) => isId(what) || WEEK_OR_NAME.test(what),
  "week like 20260105, nor name of an archive, nor id of a notification",
  async (store, what, world, days) => {
    const wanted = await findWanted(store, what);
    if (!wanted) throw new Failure(`${what} is in no archive of ${store.place}`, EXIT.notFound);
    const actor = { kind: "command-line", command: "archive restore", user: osUser() } as const;
    const done = await withDatabase(world, ({ own: pool }) => restore({ pool, store }, actor, wanted, days));
    for (const fault of done.faults) world.complain(`carillon: passed over: ${fault}`);
    return {
      json: { ...done, days },
      text: linesOf(done, days),
      code: done.faults.length > 0 ? EXIT.failed : EXIT.done,
    };
  },
);

async function findWanted(store: ArchiveStore, what: string): Promise<Wanted | undefined> {
  if (!isId(what)) {
    const manifests = await listManifests(store, what);
    return manifests.length > 0 ? { manifests } : undefined;
  }
  const found = await findArchived(store, what);
  return found && { manifests: [found.manifest], only: { id: what, line: found.line } };
}

function linesOf({ restored, present, forgotten, foreign, strangers }: Restoration, days: number): string[] {
  const lines = [`${restored} brought back, to be read for ${days} days; ${present} were there`];
  if (forgotten > 0) lines.push(`${forgotten} left out: they are about people who were forgotten since`);
  if (foreign > 0) lines.push(`${foreign} left out: their tenants are not here (${strangers.join(", ")})`);
  return lines;
}

const sizeOf = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`;
