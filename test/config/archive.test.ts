// Where archives go: the object in the file, a variable for each of its fields, and all that is wrong with them at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "#config/fault.ts";
import { readConfig, unknownVariables } from "#config/read.ts";
import { shownConfig } from "#config/shown.ts";

const cwd = "/nowhere";
const archiveOf = async (env: { [name: string]: string }) => (await readConfig({ env, cwd })).archive;
const faultsOf = async (env: { [name: string]: string }): Promise<string[]> => {
  const error = await readConfig({ env, cwd }).catch((error: unknown) => error);
  assert.ok(error instanceof ConfigError, "there was no fault");
  return error.faults.map(({ path, message }) => `${path}: ${message}`);
};

test("a directory stands where it is said to, from the working directory on", async () => {
  assert.deepEqual(await archiveOf({ CARILLON_ARCHIVE_DIRECTORY: "cold" }), {
    kind: "directory",
    directory: "/nowhere/cold",
  });
  assert.equal(await archiveOf({}), undefined);
});

test("variables count more than the object; env: stands for a variable; without keys there is the chain", async () => {
  const given = {
    bucket: "cold",
    prefix: "a/b",
    region: "eu-west-1",
    accessKeyId: "env:KEY",
    secretAccessKey: "env:SECRET",
  };
  const env = { CARILLON_ARCHIVE: JSON.stringify(given), KEY: "k", SECRET: "s", CARILLON_ARCHIVE_BUCKET: "colder" };
  assert.deepEqual(await archiveOf(env), {
    kind: "s3",
    endpoint: undefined,
    bucket: "colder",
    prefix: "a/b/",
    region: "eu-west-1",
    pathStyle: false,
    credentials: { kind: "keys", keys: { accessKeyId: "k", secretAccessKey: "s" } },
    sse: undefined,
  });
  const own = await archiveOf({
    CARILLON_ARCHIVE_BUCKET: "cold",
    CARILLON_ARCHIVE_ENDPOINT: "http://minio:9000",
    CARILLON_ARCHIVE_SSE: "aws:kms",
    CARILLON_ARCHIVE_KMS_KEY_ID: "key",
    AWS_PROFILE: "p",
  });
  assert.ok(own?.kind === "s3" && own.credentials.kind === "chain");
  assert.deepEqual(
    [own.pathStyle, own.region, own.sse?.keyId, own.credentials.env.AWS_PROFILE],
    [true, "us-east-1", "key", "p"],
  );
});

test("all faults are told together, and no secret is shown", async () => {
  const given = {
    bucket: "B",
    endpoint: "ftp://x",
    secretAccessKey: "two words",
    regions: "x",
    accessKeyId: "env:NOWHERE",
  };
  assert.deepEqual(await faultsOf({ CARILLON_ARCHIVE: JSON.stringify(given), CARILLON_ARCHIVE_SSE: "rot13" }), [
    "archive.regions: expected a known setting, found an unknown one",
    'archive.endpoint: expected a URL like https://s3.example.com, found "ftp://x"',
    'archive.bucket: expected the name of a bucket, found "B"',
    "archive.accessKeyId: expected the environment variable NOWHERE, found none",
    "archive.secretAccessKey: expected printable ASCII without spaces, found something else (not shown)",
    'CARILLON_ARCHIVE_SSE: expected AES256 or aws:kms, found "rot13"',
  ]);
  assert.deepEqual(await faultsOf({ CARILLON_ARCHIVE_DIRECTORY: "x", CARILLON_ARCHIVE_BUCKET: "cold" }), [
    "archive: expected a directory or a bucket, found both",
  ]);
  assert.deepEqual(await faultsOf({ CARILLON_ARCHIVE_PREFIX: "x", CARILLON_ARCHIVE_ACCESS_KEY_ID: "k" }), [
    "archive.bucket: expected the name of a bucket, or archive.directory, found none",
    "archive.region: expected a region like eu-west-1, found none",
    "archive: expected accessKeyId and secretAccessKey, or neither, found one of them",
  ]);
  const env = {
    CARILLON_ARCHIVE_BUCKET: "cold",
    CARILLON_ARCHIVE_REGION: "r",
    CARILLON_ARCHIVE_ACCESS_KEY_ID: "planted",
    CARILLON_ARCHIVE_SECRET_ACCESS_KEY: "planted",
  };
  assert.ok(!JSON.stringify(shownConfig(await readConfig({ env, cwd }))).includes("planted"));
  assert.deepEqual(unknownVariables({ ...env, CARILLON_ARCHIVE_BUCKETS: "x" }), ["CARILLON_ARCHIVE_BUCKETS"]);
});
