// What is asked of S3, and what its answers amount to.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { afterEach, beforeEach, test } from "node:test";
import { s3Store } from "#archive/s3.ts";
import type { S3Settings } from "#archive/settings.ts";
import { signV4 } from "#wire/sigv4.ts";
import { startStandIn } from "../support/stand-in.ts";

let server: Awaited<ReturnType<typeof startStandIn>>;
beforeEach(async () => {
  server = await startStandIn();
});
afterEach(() => server.close());

const keys = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "planted-secret", sessionToken: "planted-token" };
const now = Date.UTC(2026, 0, 5);
const open = (more: Partial<S3Settings> = {}) =>
  s3Store(
    {
      endpoint: server.url,
      bucket: "cold",
      prefix: "a b/",
      region: "eu-west-1",
      pathStyle: true,
      credentials: { kind: "keys", keys },
      sse: undefined,
      ...more,
    },
    { now: () => now, waitMs: 1 },
  );
const content = Buffer.from("content");
const sha256 = createHash("sha256").update(content).digest("hex");
const options = { sha256, type: "application/gzip", ifAbsent: true } as const;
const refusing = (status: number, code: string) => ({
  status,
  body: `<Error><Code>${code}</Code><Message>planted-token ${keys.secretAccessKey}</Message></Error>`,
});

test("the path is encoded once, the checksum stands in two headers, and all of it is signed", async () => {
  server.answer({ status: 200 });
  const sse = { algorithm: "aws:kms", keyId: "arn:aws:kms:eu-west-1:1:key/2" } as const;
  await open({ sse }).put("w/1+2.gz", content, options);
  const { method, path, headers, body } = server.received[0] ?? assert.fail();
  assert.deepEqual([method, path, body], ["PUT", "/cold/a%20b/w/1%2B2.gz", "content"]);
  const { host = "", authorization, connection: _, "content-length": length, ...signed } = headers;
  assert.equal(length, "7");
  assert.deepEqual(signed, {
    "content-type": "application/gzip",
    "if-none-match": "*",
    "x-amz-checksum-sha256": Buffer.from(sha256, "hex").toString("base64"),
    "x-amz-content-sha256": sha256,
    "x-amz-date": "20260105T000000Z",
    "x-amz-security-token": "planted-token",
    "x-amz-server-side-encryption": "aws:kms",
    "x-amz-server-side-encryption-aws-kms-key-id": sse.keyId,
  });
  const scope = { service: "s3", region: "eu-west-1", credentials: keys, now };
  const expected = signV4({ method, url: `http://${host}${path}`, headers: signed, sha256 }, scope);
  assert.equal(authorization, expected.authorization);
});

test("Amazon's own example of a signed GET", () => {
  const credentials = {
    accessKeyId: "AKIAIOSFODNN7EXAMPLE",
    secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  };
  const request = {
    method: "GET",
    url: "https://examplebucket.s3.amazonaws.com/test.txt",
    headers: { Range: "bytes=0-9" },
  };
  const scope = { service: "s3", region: "us-east-1", credentials, now: Date.UTC(2013, 4, 24) };
  assert.match(
    signV4(request, scope).authorization ?? "",
    /Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41$/,
  );
});

test("what passes is asked again; what is refused is told by its name alone, once", async () => {
  let left = 2;
  server.answer(() => (left-- > 0 ? { status: 503 } : { status: 200, headers: { "content-length": "0" } }));
  assert.equal(await open().put("k", content, options), true);
  assert.equal(server.received.length, 3);

  server.answer(refusing(403, "SignatureDoesNotMatch"));
  await assert.rejects(open().put("k", content, options), {
    name: "ArchiveError",
    message: "the archive answered 403: SignatureDoesNotMatch",
  });
  assert.equal(server.received.length, 4);
  server.answer("reset");
  await assert.rejects(open().get("k"), { name: "ArchiveError", message: /^the archive does not answer/ });
  server.answer(refusing(500, "InternalError"));
  await assert.rejects(open().head("k"), { name: "ArchiveError" });
});

test("a server without conditions is asked without; a bucket that is not there is no empty archive", async () => {
  server.answer(({ headers }) => (headers["if-none-match"] ? refusing(501, "NotImplemented") : { status: 200 }));
  assert.equal(await open().put("k", content, options), true);
  server.answer(refusing(412, "PreconditionFailed"));
  assert.equal(await open().put("k", content, options), false);
  server.answer(refusing(404, "NoSuchKey"));
  assert.equal(await open().get("k"), undefined);
  server.answer(refusing(404, "NoSuchBucket"));
  await assert.rejects(open().get("k"), /NoSuchBucket/);
});

test("a list goes on from page to page, and its names are read as they are meant", async () => {
  const page = (keys: string[], next?: string) =>
    `<ListBucketResult><IsTruncated>${next !== undefined}</IsTruncated>${keys
      .map((key) => `<Contents><Key>${key}</Key><Size>3</Size></Contents>`)
      .join("")}${next ? `<NextContinuationToken>${next}</NextContinuationToken>` : ""}</ListBucketResult>`;
  server.answer(({ path }) => ({
    status: 200,
    body: path.includes("continuation-token=n%2B1") ? page(["a b/w/3"]) : page(["a b/w/1&amp;&#50;", "a b/w/2"], "n+1"),
  }));
  const found: string[] = [];
  for await (const { key } of open().list("w/")) found.push(key);
  assert.deepEqual(found, ["w/1&2", "w/2", "w/3"]);
  assert.match(server.received[0]?.path ?? "", /^\/cold\/\?list-type=2&prefix=a\+b%2Fw%2F$/);
});
