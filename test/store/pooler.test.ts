// Through a real PgBouncer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openDatabase } from "#store/connection/database.ts";
import { migrate } from "#store/connection/migrate.ts";
import { refuseSharedSessions } from "#store/connection/pooler.ts";
import { type Ends, inReverse } from "../support/in-reverse.ts";
import { pgbouncer, pooled } from "../support/pgbouncer.ts";
import { freshDatabase } from "../support/postgres.ts";
import { email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const skip = pgbouncer === undefined && "SKIPPED: there is no /usr/sbin/pgbouncer, and it cannot be installed";
const ROLES = ["api", "worker", "scheduler", "keeper", "stream"] as const;

async function database(t: Ends): Promise<string> {
  const { url, drop } = await freshDatabase();
  t.after(drop);
  return url;
}

/** Sent and delivered, at once, with key and without; refused when it should be; counted. */
async function works(service: Service): Promise<void> {
  const [notificationId] = await Promise.all(
    [email(1), { ...email(2), idempotencyKey: "one" }].map(async (request) => {
      const { status, body } = await service.ask("POST", "/v1/notifications", request);
      assert.equal(status, 202, JSON.stringify(body));
      return body.notificationId;
    }),
  );
  await until(async () => {
    const { body } = await service.ask("GET", `/v1/notifications/${notificationId}`);
    return body.status === "sent" ? true : undefined;
  });
  const again = await service.ask("POST", "/v1/notifications", { ...email(2), idempotencyKey: "one" });
  assert.equal(again.status, 200);
  const schedule = await service.ask("PUT", "/v1/schedules/k", { cron: "* * * * * *", notification: email(3) });
  assert.equal(schedule.status, 200, JSON.stringify(schedule.body));
  await until(async () => {
    const { body } = await service.ask("GET", "/v1/schedules/k/runs");
    return body.data.length > 0 ? true : undefined;
  });
  assert.equal((await service.ask("DELETE", "/v1/schedules/k")).status, 204);
  for (const path of ["/ready", "/health", "/v1/queue"])
    assert.equal((await service.ask("GET", path)).status, 200, path);
  assert.equal((await service.ask("GET", "/v1/ledger")).body.balanced, true);
}

test("session mode works without a word, and the settings hold", { skip }, async (context) => {
  const t = inReverse(context);
  const through = await pooled(t, await database(t), "session");
  const service = await startService({ databaseUrl: through, roles: ROLES });
  t.after(service.stop);
  await works(service);
  await holds(t, through, false);
});

test("transaction mode works with a direct URL beside it, and the settings hold", { skip }, async (context) => {
  const t = inReverse(context);
  const direct = await database(t);
  const through = await pooled(t, direct, "transaction");
  const service = await startService({ databaseUrl: through, databaseDirectUrl: direct, roles: ROLES });
  t.after(service.stop);
  await works(service);
  await holds(t, through, true);
});

test("transaction mode without a direct URL is refused with a sentence, before anything is made", {
  skip,
}, async (t) => {
  const direct = await database(t);
  const through = await pooled(t, direct, "transaction");
  await assert.rejects(startService({ databaseUrl: through, roles: ROLES }), {
    name: "MigrationError",
    message: /pooler that shares sessions.*CARILLON_DATABASE_DIRECT_URL/,
  });
  const applied = await migrate(direct);
  assert.ok(applied.length > 0, "nothing was migrated before");
  await refuseSharedSessions(direct);
});

/** Many at once, so that sessions change hands. */
async function holds(t: Ends, url: string, isShared: boolean): Promise<void> {
  const made = openDatabase({ url, acceptConnections: 4, connections: 4, isShared, onError: () => {} });
  t.after(made.close);
  const found = await Promise.all(
    Array.from({ length: 40 }, async (_, n) => {
      const pool = n % 2 === 0 ? made.accept : made.small;
      const { rows } = await pool.query({
        name: "settings",
        text: `select current_setting('enable_seqscan') as seqscan, current_setting('statement_timeout') as timeout,
          current_setting('lock_timeout') as lock, current_setting('carillon.hints') as hints, $1::int as n`,
        values: [n],
      });
      return rows[0];
    }),
  );
  for (const [n, row] of found.entries()) {
    const [seqscan, lock] = n % 2 === 0 ? ["off", "500ms"] : ["on", "0"];
    assert.deepEqual(row, { seqscan, timeout: "8s", lock, hints: "own", n });
  }
}
