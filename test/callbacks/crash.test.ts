// A worker dies between delivering a callback and writing that it has: the callback comes again, under the same id.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startReceiver } from "../support/callback-receiver.ts";
import { sandboxFor } from "../support/process.ts";
import { until } from "../support/until.ts";

test("kill -9 between delivery and settlement repeats a callback with the same webhook-id", {
  timeout: 120_000,
}, async (t) => {
  const sandbox = await sandboxFor(t);
  // The first is never answered: it was delivered, and nobody will ever settle it.
  const receiver = await startReceiver((_, response) => {
    if (receiver.posted.length > 1) response.writeHead(204).end();
  });
  t.after(() => receiver.close());
  const env = {
    CARILLON_SECRET_KEYS: Buffer.alloc(32, 3).toString("base64"),
    CARILLON_ALLOW_ADDRESSES: "127.0.0.1",
    CARILLON_LEASE_MS: "1000",
    CARILLON_SWEEP_MS: "200",
  };
  const service = await sandbox.start(env);
  const request = { channel: "console", content: { body: "b" }, callbackUrl: `${receiver.url}/` };
  assert.equal((await service.ask("POST", "/v1/notifications", request)).status, 202);
  await until(async () => (receiver.posted.length === 1 ? true : undefined));
  await service.end("SIGKILL");

  await sandbox.start(env);
  const db = await sandbox.connect();
  // The lease is swept, and the callback waits out its backoff: not here.
  await until(async () => {
    const { rowCount } = await db.query(
      "update carillon.later set due_at = carillon.now() where priority = 4 and attempt > 0",
    );
    return rowCount ? true : undefined;
  }, 60_000);
  await until(async () => (receiver.posted.length >= 2 ? true : undefined), 60_000);
  const [first, second] = receiver.posted;
  assert.equal(second?.headers["webhook-id"], first?.headers["webhook-id"]);
  assert.deepEqual(second?.body, first?.body);
});
