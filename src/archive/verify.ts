// Whether archives hold what they say: every byte is read, compared with its checksum, unpacked and counted.

import { linesOf, parseLine } from "./lines.ts";
import { type Manifest, type Part, readManifest, sumOf } from "./manifest.ts";
import { type ArchiveStore, DamageError, type Stored } from "./store.ts";

/** What is found under one name. */
export type Found = { name: string; objects: Stored[] };

const COUNTED = ["notifications", "events", "callbacks"] as const;
const NAME = /^\d{8}-[\da-f]{8}$/;

/** One after the other, in the order of their weeks; also what was never finished. Names that are not ours are left alone. */
export async function* listFound(store: ArchiveStore, prefix: string): AsyncGenerator<Found, void> {
  let found: Found | undefined;
  for await (const stored of store.list(prefix)) {
    const [name = ""] = stored.key.split("/", 1);
    if (!NAME.test(name) || name === stored.key) continue;
    if (found && found.name !== name) yield found;
    if (found?.name !== name) found = { name, objects: [] };
    found.objects.push(stored);
  }
  if (found) yield found;
}

/** All that is wrong with it, in words; nothing where it holds what it says. An archive that is away throws. */
export async function* faultsOf(store: ArchiveStore, name: string): AsyncGenerator<string, void> {
  const manifest = await readable(readManifest(store, name));
  if (typeof manifest === "string") return yield manifest;
  if (!manifest) return yield "it has no manifest: it is being written, was given up, or has lost it";
  yield* contradictionsIn(manifest, name);
  for (const part of manifest.parts) {
    const fault = await readable(faultIn(store, part));
    if (fault !== undefined) yield fault;
  }
}

function* contradictionsIn(manifest: Manifest, name: string): Generator<string> {
  if (manifest.name !== name) yield `its manifest is that of ${manifest.name}`;
  for (const what of COUNTED) {
    const sum = sumOf(manifest.parts, what);
    if (manifest[what] !== sum) yield `its manifest has ${manifest[what]} ${what}, and its parts ${sum}`;
  }
}

async function faultIn(store: ArchiveStore, part: Part): Promise<string | undefined> {
  let [notifications, events, callbacks] = [0, 0, 0];
  for await (const text of linesOf(store, part)) {
    const line = parseLine(text);
    notifications += 1;
    if (!line) return `${part.key} has a line that is none: ${notifications}`;
    const { id, tenant } = line.notification;
    if (id < part.firstId || id > part.lastId || tenant < part.firstTenant || tenant > part.lastTenant) {
      return `${part.key} has a line that its manifest knows nothing of: ${notifications}`;
    }
    events += line.events.length;
    if (tenant < 0) callbacks += 1;
  }
  const counted = { notifications, events, callbacks };
  const wrong = COUNTED.find((what) => counted[what] !== part[what]);
  return wrong && `${part.key} has ${counted[wrong]} ${wrong} instead of ${part[wrong]}`;
}

/** What is damaged is an answer; what is away is not. */
async function readable<Value>(reading: Promise<Value>): Promise<Value | string> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof DamageError) return error.message;
    throw error;
  }
}
