// Archives in a directory, and in a bucket: on a server within this process that answers as S3 does. On a real one: npm run test:s3.

import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startFauxqs } from "fauxqs";
import { directoryStore } from "#archive/directory.ts";
import { s3Store } from "#archive/s3.ts";
import type { S3Settings } from "#archive/settings.ts";
import { archiveStoreConformance, listed } from "../conformance/archive-store.ts";

const keys = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "secret" };
const settings = (endpoint: string, more: Partial<S3Settings> = {}): S3Settings => ({
  endpoint,
  bucket: "archive",
  prefix: "carillon/one/",
  region: "eu-west-1",
  pathStyle: true,
  credentials: { kind: "keys", keys },
  sse: undefined,
  ...more,
});

archiveStoreConformance("directory", async () => {
  const root = await mkdtemp(join(tmpdir(), "carillon-archive-"));
  const blocked = join(root, "a file");
  await writeFile(blocked, "");
  return {
    open: () => directoryStore(join(root, "archive")),
    openBroken: () => directoryStore(blocked),
    stop: () => rm(root, { recursive: true }),
  };
});

const fauxqs = async () => {
  const server = await startFauxqs({ port: 0, logger: false });
  server.createBucket("archive");
  return {
    open: () => s3Store(settings(`http://127.0.0.1:${server.port}`)),
    openBroken: () => s3Store(settings("http://127.0.0.1:1"), { waitMs: 1 }),
    stop: () => server.stop(),
  };
};
archiveStoreConformance("fauxqs", fauxqs, { checksum: true, ifAbsent: true });

test("what a killed process left half written is not listed, and another may be written in its place", async () => {
  const root = await mkdtemp(join(tmpdir(), "carillon-archive-"));
  await writeFile(join(root, "00001.gz.abc.part"), "half");
  const store = directoryStore(root);
  assert.deepEqual(await listed(store, ""), []);
  const sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
  await store.put("00001.gz", Buffer.from("test"), { sha256, type: "application/gzip", ifAbsent: false });
  assert.deepEqual((await readdir(root)).sort(), ["00001.gz", "00001.gz.abc.part"]);
  await rm(root, { recursive: true });
});
