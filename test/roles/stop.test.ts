// A stop by SIGTERM: nothing more is claimed from then on, and what is under way ends side by side, within one limit of time.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { freshDatabase } from "../support/postgres.ts";
import { sandboxFor } from "../support/process.ts";
import { ADMIN_KEY } from "../support/service.ts";
import { until } from "../support/until.ts";

const QUICK = 20;
const HELD_UP = 5;

/** A worker that is known to be fast, one of whose sends the receiver does not answer, and a request whose body is on its way. */
async function busyService(t: TestContext, drainMs: number) {
  const unanswered: ServerResponse[] = [];
  let answered = 0;
  const receiver = createServer((asked, answer) => {
    asked.resume();
    if (answered++ < QUICK) answer.end();
    else unanswered.push(answer);
  });
  await once(receiver.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const database = await freshDatabase();
  const db = new pg.Pool({ connectionString: database.url, max: 1 });
  db.on("error", () => undefined);
  const sandbox = await sandboxFor(t);
  t.after(async () => {
    await db.end();
    await database.drop();
  });
  const service = await sandbox.start({
    DATABASE_URL: database.url,
    CARILLON_CONCURRENCY: "1",
    CARILLON_SEND_TIMEOUT_MS: "60000",
    CARILLON_DRAIN_MS: String(drainMs),
    CARILLON_ALLOW_ADDRESSES: "127.0.0.1",
  });
  const webhookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  const hook = { channel: "webhook", recipient: { webhookUrl }, content: { body: "b" } };
  const notifications = Array(QUICK + HELD_UP).fill(hook);
  assert.equal((await service.ask("POST", "/v1/notifications/batch", { notifications })).status, 200);
  const figures = async () => {
    const { rows } = await db.query<{ held: number; ready: number; token: string; spent: number }>(
      `select (select count(*)::int from carillon.leased) as held, (select count(*)::int from carillon.ready) as ready,
        (select last_value from carillon.lease_token) as token, (select coalesce(max(attempt), 0) from carillon.ready) as spent`,
    );
    return rows[0] ?? assert.fail("no figures");
  };
  // One is being sent, and of those behind it at least one is in hand.
  await until(async () => (unanswered.length === 1 && (await figures()).held > 1 ? true : undefined));

  const headers = {
    authorization: `Bearer ${ADMIN_KEY}`,
    "content-type": "application/json",
    // The answer to this shows that the request is under way.
    expect: "100-continue",
  };
  const slow = request(`${service.url}/v1/notifications`, { method: "POST", headers });
  slow.on("error", () => undefined);
  slow.flushHeaders();
  await once(slow, "continue");
  return { service, figures, slow, hook, unanswered, db };
}

test("a send and a request under way both end, and nothing is claimed any more, not even while the request lasts", async (t) => {
  const { service, figures, slow, hook, unanswered, db } = await busyService(t, 60_000);
  const exited = service.end("SIGTERM");
  // While both are under way.
  const { token } = await until(async () => {
    const now = await figures();
    return now.held === 1 && now.ready === HELD_UP - 1 ? now : undefined;
  });
  slow.end(JSON.stringify(hook));
  const [answer] = (await once(slow, "response")) as [IncomingMessage];
  assert.equal(answer.statusCode, 202);
  const { notificationId } = (await json(answer)) as { notificationId: string };
  unanswered[0]?.end();
  assert.equal((await exited).code, 0);
  assert.match(service.stderr(), /"stopped"/);
  // What was handed back and what was just accepted wait for another process, unspent.
  assert.deepEqual(await figures(), { held: 0, ready: HELD_UP, token, spent: 0 });
  const { rows } = await db.query("select count(*)::int as sent from carillon.records where status = 'sent'");
  assert.deepEqual(rows, [{ sent: QUICK + 1 }]);
  assert.equal((await db.query("select from carillon.ready where id = $1", [notificationId])).rowCount, 1);
});

test("a send and a request that do not end are cut at the same limit, and the process exits 0", async (t) => {
  // One limit after the other would be longer than the process waits altogether.
  const { service, slow, unanswered } = await busyService(t, 3_500);
  const cut = Promise.all([slow, unanswered[0]].map((one) => new Promise((resolve) => one?.once("close", resolve))));
  const { code } = await service.end("SIGTERM");
  assert.equal(code, 0);
  await cut;
  assert.match(service.stderr(), /"stopped"/, "it has settled what it cut");
});
