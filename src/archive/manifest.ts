// What an archive says of itself: what it holds, in which parts, with which checksums. Written last, so that what has a manifest is whole.
//
// An archive is of one week. A week has one that was written before it was dropped, and later ones for what still waited then or changed
// since: of a notification that is in several, the youngest has it as it ended.

import { createHash, randomBytes } from "node:crypto";
import { json } from "node:stream/consumers";
import { ArchiveError, type ArchiveStore, DamageError } from "./store.ts";

export const FORMAT = 1;

export type Part = {
  key: string;
  /** Compressed. */
  bytes: number;
  /** Of these bytes, in hex. */
  sha256: string;
  notifications: number;
  events: number;
  /** Of the notifications, callbacks: deliveries to endpoints. They have tenants below zero. */
  callbacks: number;
  firstId: string;
  lastId: string;
  firstTenant: number;
  lastTenant: number;
};

export type Manifest = {
  format: typeof FORMAT;
  name: string;
  /** The Monday with which it begins, in UTC. */
  week: string;
  /** `late` is what was left of a week that had been dropped. */
  kind: "week" | "late";
  /** The newest migration when it was written: what a line looks like. */
  schema: number;
  createdAt: string;
  /** The span of ids, and so of time: the first, and the first that is beyond. */
  from: string;
  to: string;
  notifications: number;
  events: number;
  callbacks: number;
  /** Whose the numbers are. */
  tenants: { [number: string]: string };
  parts: Part[];
};

const WEEK_MS = 7 * 86_400_000;

/** Nobody else gives the same, not another Carillon that was told the same place by mistake either. */
export const newName = (week: string): string => `${week}-${randomBytes(4).toString("hex")}`;
export const weekOf = (name: string): string => name.slice(0, 8);
const manifestKey = (name: string) => `${name}/manifest.json`;

export function manifestOf(
  about: Pick<Manifest, "name" | "kind" | "schema" | "createdAt" | "tenants">,
  parts: readonly Part[],
): Manifest {
  const week = weekOf(about.name);
  const starts = Date.parse(`${week.slice(0, 4)}-${week.slice(4, 6)}-${week.slice(6)}T00:00:00Z`);
  return {
    format: FORMAT,
    ...about,
    week,
    from: new Date(starts).toISOString(),
    to: new Date(starts + WEEK_MS).toISOString(),
    notifications: sumOf(parts, "notifications"),
    events: sumOf(parts, "events"),
    callbacks: sumOf(parts, "callbacks"),
    parts: [...parts],
  };
}

export const sumOf = (parts: readonly Part[], of: "notifications" | "events" | "callbacks"): number =>
  parts.reduce((total, part) => total + part[of], 0);

/** Written, and read back as it was written. */
export async function putManifest(store: ArchiveStore, manifest: Manifest): Promise<void> {
  const content = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
  const sha256 = createHash("sha256").update(content).digest("hex");
  await store.put(manifestKey(manifest.name), content, { sha256, type: "application/json", ifAbsent: true });
  const found = await readManifest(store, manifest.name);
  if (JSON.stringify(found) !== JSON.stringify(manifest)) {
    throw new ArchiveError(`the manifest of ${manifest.name} does not read back as it was written`);
  }
}

export async function readManifest(store: ArchiveStore, name: string): Promise<Manifest | undefined> {
  const stream = await store.get(manifestKey(name));
  if (!stream) return undefined;
  const manifest = await json(stream).catch((cause: unknown) => {
    const what = `the manifest of ${name} cannot be read`;
    throw cause instanceof SyntaxError ? new DamageError(what, { cause }) : new ArchiveError(what, { cause });
  });
  if (!isManifest(manifest)) throw new DamageError(`the manifest of ${name} is of another format than ${FORMAT}`);
  return manifest;
}

const isManifest = (value: unknown): value is Manifest =>
  value !== null &&
  typeof value === "object" &&
  "format" in value &&
  value.format === FORMAT &&
  "parts" in value &&
  Array.isArray(value.parts);

/** Those whose names begin so, the youngest of a week last. What has no manifest is not finished, and not listed. */
export async function listManifests(store: ArchiveStore, prefix: string): Promise<Manifest[]> {
  const found: Manifest[] = [];
  for await (const { key } of store.list(prefix)) {
    const name = /^(\d{8}-[\da-f]{8})\/manifest\.json$/.exec(key)?.[1];
    const manifest = name === undefined ? undefined : await readManifest(store, name);
    if (manifest) found.push(manifest);
  }
  return found.sort((a, b) => compare(a.week, b.week) || compare(a.createdAt, b.createdAt));
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
