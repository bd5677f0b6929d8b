// Archives in a bucket of a real server that speaks S3: npm run test:s3, which builds one and says where it is. Left out otherwise.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { s3Store } from "#archive/s3.ts";
import type { S3Settings } from "#archive/settings.ts";
import { createBulkHttp } from "#wire/bulk-http.ts";
import { signV4 } from "#wire/sigv4.ts";
import { archiveStoreConformance } from "../conformance/archive-store.ts";
import { until } from "../support/until.ts";

const keys = { accessKeyId: "carillon", secretAccessKey: "carillon-secret" };
const region = "us-east-1";

async function startVersity(program: string): Promise<{ url: string; stop(): Promise<void> }> {
  const home = await mkdtemp(join(tmpdir(), "carillon-versity-"));
  const meta = await mkdtemp(join(tmpdir(), "carillon-versity-meta-"));
  const port = await freePort();
  const args = ["--access", keys.accessKeyId, "--secret", keys.secretAccessKey, "--port", `127.0.0.1:${port}`];
  const server: ChildProcess = spawn(program, [...args, "--region", region, "posix", "--sidecar", meta, home], {
    stdio: "ignore",
  });
  const url = `http://127.0.0.1:${port}`;
  await until(async () => (await fetch(url).catch(() => undefined)) && true);
  return {
    url,
    async stop() {
      const ended = new Promise((resolve) => server.once("exit", resolve));
      server.kill();
      await ended;
      await Promise.all([home, meta].map((directory) => rm(directory, { recursive: true })));
    },
  };
}

async function makeBucket(url: string): Promise<void> {
  const http = createBulkHttp();
  const scope = { service: "s3", region, credentials: keys, now: Date.now() };
  const { host: _, ...headers } = signV4({ method: "PUT", url }, scope);
  const { status, body } = await http.ask({ method: "PUT", url, headers });
  assert.equal(status, 200, await body.text());
  await http.close();
}

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });

const program = process.env.CARILLON_TEST_S3;
if (program) {
  archiveStoreConformance("versitygw", async () => {
    const server = await startVersity(program);
    await makeBucket(`${server.url}/archive`);
    const settings = (endpoint: string): S3Settings => ({
      endpoint,
      bucket: "archive",
      prefix: "carillon/",
      region,
      pathStyle: true,
      credentials: { kind: "keys", keys },
      sse: undefined,
    });
    return {
      open: () => s3Store(settings(server.url)),
      openBroken: () => s3Store({ ...settings(server.url), bucket: "nobody" }, { waitMs: 1 }),
      stop: server.stop,
    };
  });
}
