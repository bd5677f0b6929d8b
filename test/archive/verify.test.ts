// Archives are looked at where they are: what is there, what is broken, and one notification among many. No database is needed.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { startFauxqs } from "fauxqs";
import { directoryStore } from "#archive/directory.ts";
import { findArchived, weekOfId } from "#archive/find.ts";
import { linesOf } from "#archive/lines.ts";
import { listManifests, type Manifest, manifestOf, putManifest } from "#archive/manifest.ts";
import { packPart, putPart } from "#archive/part.ts";
import { s3Store } from "#archive/s3.ts";
import type { ArchiveStore } from "#archive/store.ts";
import { faultsOf, listFound } from "#archive/verify.ts";
import { createIds } from "#domain/ids.ts";

let directory: string;
let store: ArchiveStore;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "carillon-archive-"));
  store = directoryStore(directory);
});
afterEach(() => rm(directory, { recursive: true }));

const newId = createIds(() => Date.UTC(2026, 0, 7));
const WEEK = "20260105";
const BEFORE_ALL = { tenant: -1, id: "" };

/** One archive with a line for each of these ids; `said` is in all of them. */
async function write(name: string, ids: string[], said: string, more: Partial<Manifest> = {}): Promise<Manifest> {
  const lines = ids.map((id) =>
    JSON.stringify({ notification: { tenant: 1, id, said }, events: [{ type: "attempt" }] }),
  );
  const tenants = ids.map(() => 1);
  const pages = [{ lines: lines.join("\n"), ids, tenants, seqs: [], events: ids.length }];
  const none = { lines: "", ids: [], tenants: [], seqs: [], events: 0 };
  const packed = (await packPart(name, 1, BEFORE_ALL, async () => pages.shift() ?? none)) ?? assert.fail();
  await putPart(store, packed);
  const createdAt = new Date(Date.UTC(2026, 5, 1)).toISOString();
  const about = { name, kind: "week" as const, schema: 39, createdAt, tenants: { 1: "default" } };
  const manifest = { ...manifestOf(about, [packed.part]), ...more };
  await putManifest(store, manifest);
  return manifest;
}

async function gathered(texts: AsyncIterable<string>): Promise<string[]> {
  const found: string[] = [];
  for await (const text of texts) found.push(text);
  return found;
}

async function verified(): Promise<{ [name: string]: string[] }> {
  const found: { [name: string]: string[] } = {};
  for await (const { name } of listFound(store, "")) found[name] = await gathered(faultsOf(store, name));
  return found;
}

const A = `${WEEK}-aaaaaaaa`;
const B = `${WEEK}-bbbbbbbb`;

test("an archive that holds what it says is sound, on disk and in a bucket", async () => {
  const ids = Array.from({ length: 300 }, newId);
  await write(A, ids, "a");
  assert.deepEqual(await verified(), { [A]: [] });
  const server = await startFauxqs({ port: 0, logger: false });
  server.createBucket("cold");
  const keys = { accessKeyId: "A", secretAccessKey: "s" };
  store = s3Store({
    ...{
      endpoint: `http://127.0.0.1:${server.port}`,
      bucket: "cold",
      prefix: "c/",
      region: "eu-west-1",
      pathStyle: true,
    },
    credentials: { kind: "keys", keys },
    sse: undefined,
  });
  await write(B, ids, "b");
  assert.deepEqual(await verified(), { [B]: [] });
  assert.equal((await findArchived(store, ids[7] ?? ""))?.manifest.name, B);
  await store.close();
  await server.stop();
});

test("a byte that changed, one too few or too many, a part or a manifest that is missing: each is told", async () => {
  const names = ["11111111", "22222222", "33333333", "44444444", "55555555", "66666666"].map((end) => `${WEEK}-${end}`);
  const [changed = "", short = "", long = "", gone = "", bare = "", torn = ""] = names;
  const keys: { [name: string]: string } = {};
  for (const name of names) keys[name] = (await write(name, [newId(), newId()], name)).parts[0]?.key ?? "";
  const path = (name: string) => join(directory, keys[name] ?? "");
  const content = await readFile(path(changed));
  content[20] = (content[20] ?? 0) ^ 1;
  await writeFile(path(changed), content);
  await writeFile(path(short), (await readFile(path(short))).subarray(1));
  await writeFile(path(long), Buffer.concat([await readFile(path(long)), Buffer.from("x")]));
  await rm(path(gone));
  await rm(join(directory, bare, "manifest.json"));
  await writeFile(join(directory, torn, "manifest.json"), '{"format": 1, "parts": [');
  const found = await verified();
  assert.deepEqual(found[changed], [`${keys[changed]} has another checksum`]);
  assert.match(found[short]?.join() ?? "", /has less than its \d+ bytes$/);
  assert.match(found[long]?.join() ?? "", /has more than its \d+ bytes$/);
  assert.deepEqual(found[gone], [`${keys[gone]} is missing`]);
  assert.match(found[bare]?.join() ?? "", /^it has no manifest/);
  assert.deepEqual(found[torn], [`the manifest of ${torn} cannot be read`]);
});

test("a manifest that counts other than its parts, or is another's, is told", async () => {
  const made = await write(A, [newId(), newId()], "a");
  const [part = assert.fail()] = made.parts;
  const lying = `${WEEK}-cccccccc`;
  await putManifest(store, { ...made, name: lying, notifications: 5, parts: [{ ...part, events: 3 }] });
  await writeFile(join(directory, lying, "other"), "left alone");
  assert.deepEqual((await verified())[lying], [
    "its manifest has 5 notifications, and its parts 2",
    "its manifest has 2 events, and its parts 3",
    `${part.key} has 2 events instead of 3`,
  ]);
  await writeFile(join(directory, A, "manifest.json"), JSON.stringify({ ...made, name: B }));
  assert.deepEqual((await verified())[A], [`its manifest is that of ${B}`]);
});

test("a store that is away is no broken archive", async () => {
  await write(A, [newId()], "a");
  const away: ArchiveStore = { ...store, get: () => Promise.reject(new Error("away")) };
  await assert.rejects(gathered(faultsOf(away, A)), /away/);
});

test("a notification is found by its id alone, as the youngest archive of its week has it", async () => {
  const [first = "", both = "", mentioned = ""] = [newId(), newId(), newId()];
  await write(A, [first, both], "old");
  await write(B, [both], `young \u2028 mentions ${mentioned}`, { createdAt: "2026-07-01T00:00:00.000Z", kind: "late" });
  const said = async (id: string) => {
    const { line = "{}" } = (await findArchived(store, id)) ?? {};
    return JSON.parse(line).notification?.said;
  };
  assert.equal(await said(both), `young \u2028 mentions ${mentioned}`);
  assert.equal(await said(first), "old");
  assert.equal(await said(mentioned), undefined);
  assert.equal(await findArchived(store, createIds(() => Date.UTC(2026, 0, 12))()), undefined);
});

test("only archives of the id's week and parts with its span are read", async () => {
  const [inside = "", beyond = ""] = [newId(), newId()];
  await write(A, [inside], "a");
  await write(`20251229-aaaaaaaa`, [inside], "another week");
  const read: string[] = [];
  const watched: ArchiveStore = {
    ...store,
    get(key) {
      read.push(key);
      return store.get(key);
    },
  };
  assert.equal(await findArchived(watched, beyond), undefined);
  assert.deepEqual(read, [`${A}/manifest.json`]);
});

test("the week of an id is that of its Monday, in UTC", () => {
  const of = (at: number) => weekOfId(createIds(() => at)());
  assert.deepEqual(
    [of(Date.UTC(2026, 0, 5)), of(Date.UTC(2026, 0, 12) - 1), of(Date.UTC(2026, 0, 12)), of(Date.UTC(2026, 0, 4))],
    [WEEK, WEEK, "20260112", "20251229"],
  );
});

test("lines are given one by one, however the pieces fall that are unpacked", async () => {
  const ids = Array.from({ length: 3_000 }, newId);
  const { parts } = await write(A, ids, "ä".repeat(100));
  const lines = await gathered(linesOf(store, parts[0] ?? assert.fail()));
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).notification.id),
    ids,
  );
  assert.equal((await listManifests(store, WEEK)).length, 1);
});
