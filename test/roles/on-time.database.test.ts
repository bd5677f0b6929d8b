// The scheduler: on time, never early, once, and idle while nothing is due.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Config } from "#config/read.ts";
import { nextDue } from "#queue/postgres/next-due.ts";
import { startScheduler } from "#roles/scheduler.ts";
import { openDatabase } from "#store/connection/database.ts";
import { listen } from "#store/connection/hint.ts";
import { timedOf } from "#wiring/timed.ts";
import { firingOn } from "../support/firing.ts";
import { ask, email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

/** When each notification reached the provider, by its number. */
const sentAt = new Map<string, number>();
const providers: Config["providers"] = {
  noted: {
    type: "test",
    onSend: ({ request }) => void sentAt.set(String(request.content.subject), Date.now()),
  },
};
const routes = { email: "noted" } as Config["routes"];
const roles: Config["roles"] = ["api", "worker", "scheduler"];
/** A worker that does not look by itself while a test runs: what it finds, it was told of. */
const pollMs: Config["pollMs"] = { urgent: 600_000, high: 600_000, normal: 600_000, low: 600_000 };

let service: Service;
before(async () => {
  service = await startService({ roles, providers, routes, pollMs, maxAttempts: 2 });
});
after(() => service.stop());

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const sent = (n: string) => until(async () => sentAt.get(`Number ${n}`), 60_000);

test("what is scheduled is sent when it is due, without anybody looking for it, and never a millisecond early", async () => {
  const due = Array.from({ length: 40 }, (_, n) => ({ n: `spread-${n}`, at: inMs(300 + n * 25) }));
  const notifications = due.map(({ n, at }) => ({ ...email(n), scheduledFor: at }));
  assert.equal((await service.ask("POST", "/v1/notifications/batch", { notifications })).status, 200);
  for (const { n, at } of due) {
    const lateMs = (await sent(n)) - Date.parse(at);
    assert.ok(lateMs >= 0, `${n} was early by ${-lateMs} ms`);
  }
});

test("the time until it was due is not counted as waiting for a worker", async () => {
  const other = await startService({ roles, providers, routes });
  try {
    const at = inMs(2_000);
    await other.ask("POST", "/v1/notifications", { ...email("not waiting"), scheduledFor: at });
    // It is counted once the send is settled.
    const sum = await until(async () => {
      const { body } = await other.ask("GET", "/metrics");
      return /^notification_queue_wait_seconds_sum\{.*\} (.*)$/m.exec(body)?.[1];
    });
    const sinceDueSeconds = (Date.now() - Date.parse(at)) / 1000;
    assert.ok(Number(sum) >= 0 && Number(sum) <= sinceDueSeconds, `${sum} s, due ${sinceDueSeconds} s ago`);
  } finally {
    await other.stop();
  }
});

test("something earlier wakes the scheduler, from every door, plain SQL included", async () => {
  await service.ask("POST", "/v1/notifications", { ...email("far"), scheduledFor: inMs(3_600_000) });
  await sleep(50);
  const asked = Date.now();
  await service.ask("POST", "/v1/notifications", { ...email("http"), scheduledFor: inMs(200) });
  await service.db.query("select carillon.send($1)", [{ ...email("send"), scheduledFor: inMs(200) }]);
  const { body } = await service.ask("POST", "/v1/notifications", {
    ...email("update"),
    scheduledFor: inMs(3_600_000),
  });
  await service.db.query("update carillon.later set due_at = clock_timestamp() + interval '200 ms' where id = $1", [
    body.notificationId,
  ]);
  for (const door of ["http", "send", "update"]) {
    const tookMs = (await sent(door)) - asked;
    assert.ok(tookMs >= 200, `${door} took ${tookMs} ms`);
  }
});

test("what is sent by SQL for now wakes a worker", async () => {
  await service.db.query("select carillon.send($1)", [email("sql now")]);
  await sent("sql now");
});

test("a transaction's hint comes with its commit, and none if it rolls back", async () => {
  const heard: (number | undefined)[] = [];
  let ready = 0;
  const listening = listen(service.databaseUrl, { onDue: (dueMs) => heard.push(dueMs), onReady: () => ready++ });
  await until(async () => (heard.length === 1 && ready === 1 ? true : undefined));
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  const due = Date.now() + 900_000;
  await client.query("begin");
  await client.query("select carillon.send($1)", [{ ...email("rolled back"), scheduledFor: inMs(1_000) }]);
  await client.query("rollback");
  await client.query("select carillon.send($1)", [{ ...email("kept"), scheduledFor: new Date(due).toISOString() }]);
  await until(async () => (heard.length > 1 ? true : undefined));
  assert.deepEqual(heard.slice(1), [due]);
  await client.query("set carillon.hints = off");
  const before = ready;
  await client.query("select carillon.send($1)", [{ ...email("quiet"), scheduledFor: inMs(900_000) }]);
  await client.query("notify carillon_ready");
  await until(async () => (ready > before ? true : undefined));
  assert.equal(heard.length, 2, "whoever turns hints off gives none");
  await client.end();
  await listening.stop();
});

test("two processes and a thousand due at once: each is sent once", async () => {
  const calls = new Map<string, number>();
  const counting: Config["providers"] = {
    counting: {
      type: "test",
      onSend: ({ notificationId }) => void calls.set(notificationId, (calls.get(notificationId) ?? 0) + 1),
    },
  };
  const settings = { roles, providers: counting, routes: { email: "counting" } as Config["routes"] };
  const one = await startService(settings);
  const other = await startService({ ...settings, databaseUrl: one.databaseUrl });
  try {
    const batch = { notifications: Array.from({ length: 1000 }, (_, n) => ({ ...email(n), scheduledFor: inMs(500) })) };
    await one.ask("POST", "/v1/notifications/batch", batch);
    const sent = () => ask(one, "/v1/ledger").then((ledger) => (ledger.sent === 1000 ? ledger : undefined));
    assert.equal((await until(sent)).waiting, 0);
    assert.deepEqual([calls.size, Math.max(...calls.values())], [1000, 1]);
  } finally {
    await other.stop();
    await one.stop();
  }
});

test("without a scheduler a worker that polls finds what is due", async () => {
  const alone = await startService({ roles: ["api", "worker"], providers, routes });
  try {
    const at = inMs(300);
    await alone.ask("POST", "/v1/notifications", { ...email("polled"), scheduledFor: at });
    const lateMs = (await sent("polled")) - Date.parse(at);
    assert.ok(lateMs >= 0, `early by ${-lateMs} ms`);
  } finally {
    await alone.stop();
  }
});

/** A scheduler of our own on the service's database, with every query counted. */
function watched(url: string, more: { recheckMs?: number; wallClock?: () => number } = {}) {
  const database = openDatabase({ url, acceptConnections: 1, connections: 1, onError: () => {} });
  let queries = 0;
  const counted = (pool: pg.Pool) =>
    new Proxy(pool, {
      get(target, name) {
        if (name === "query" || name === "connect") queries++;
        return Reflect.get(target, name).bind(target);
      },
    });
  const sources = timedOf(
    {
      nextDue: () => nextDue(counted(database.work)),
      bringBack: async () => 0,
      cancelAll: async () => [],
      retry: async () => [],
    },
    counted(database.work),
    firingOn(counted(database.own)),
    () => {},
  );
  const scheduler = startScheduler({
    sources,
    recheckMs: more.recheckMs ?? 300_000,
    wallClock: more.wallClock ?? Date.now,
    monotonic: () => performance.now(),
    onFailure: (source, error) => assert.fail(`${source}: ${error}`),
  });
  return {
    scheduler,
    /** How often everything was looked at. */
    looks: () => queries / sources.length,
    async stop() {
      await scheduler.stop();
      await database.close();
    },
  };
}

test("every look goes over the connections whose plans are pinned", async () => {
  const quiet = await startService({ roles: ["api", "scheduler"] });
  try {
    const rows = await until(async () => {
      const { rows } = await quiet.db.query(
        `select application_name as name from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and query like '%from (select carillon.now() as now, (%'
         group by 1`,
      );
      return rows.length > 0 ? rows : undefined;
    });
    assert.deepEqual(
      rows.map(({ name }) => name),
      ["carillon work"],
    );
  } finally {
    await quiet.stop();
  }
});

test("an idle scheduler asks once per recheck, and not for hints about later things", async () => {
  const quiet = await startService();
  const { scheduler, looks, stop } = watched(quiet.databaseUrl, { recheckMs: 400 });
  try {
    await until(async () => (looks() === 1 ? true : undefined));
    const startedAt = performance.now();
    for (let n = 0; n < 50; n++) scheduler.hint(Date.now() + 3_600_000);
    const asked = await until(async () => (looks() > 2 ? looks() - 1 : undefined));
    const tookMs = performance.now() - startedAt;
    assert.ok(asked <= tookMs / 400 + 1, `${asked} looks in ${tookMs} ms with a recheck every 400 ms`);
  } finally {
    await stop();
    await quiet.stop();
  }
});

test("a clock that jumps makes it look: a suspended machine is not late by its sleep", async () => {
  const quiet = await startService();
  let jump = 0;
  const { looks, stop } = watched(quiet.databaseUrl, { wallClock: () => Date.now() + jump });
  try {
    await until(async () => (looks() === 1 ? true : undefined));
    await sleep(1_100);
    assert.equal(looks(), 1);
    jump = 3_600_000;
    await until(async () => (looks() === 2 ? true : undefined));
    jump = -3_600_000;
    await until(async () => (looks() === 3 ? true : undefined));
  } finally {
    await stop();
    await quiet.stop();
  }
});

test("a look costs the same with much waiting: probes of indexes, no scan", async () => {
  const quiet = await startService();
  const database = openDatabase({
    url: quiet.databaseUrl,
    acceptConnections: 1,
    connections: 1,
    onError: () => {},
  });
  try {
    await quiet.db.query(`insert into carillon.later (seq, due_at, priority, tenant, id)
      select n, now() + n * interval '1 minute', 2, 1, gen_random_uuid() from generate_series(1, 20000) n`);
    await quiet.db.query("analyze carillon.later");
    await nextDue(database.work);
    const { rows } = await database.work.query<{ "QUERY PLAN": [{ Plan: object }] }>(
      `explain (analyze, buffers, format json) select ctid from carillon.later
       where priority = 2 and due_at <= statement_timestamp() order by due_at limit 1000 for update skip locked`,
    );
    const plan = JSON.stringify(rows[0]?.["QUERY PLAN"]);
    assert.match(plan, /later_by_due/);
    const blocks = Number(/"Shared Hit Blocks":(\d+)/.exec(plan)?.[1]);
    assert.ok(blocks <= 10, `${blocks} blocks looked at for nothing due`);
  } finally {
    await database.close();
    await quiet.stop();
  }
});

test("a retry waits in the same table and is woken for at its time", async () => {
  let calls = 0;
  const failing: Config["providers"] = {
    stumbling: { type: "test", mix: { unavailable: 1 }, onSend: () => void calls++ },
  };
  const other = await startService({ roles, providers: failing, routes: { email: "stumbling" } as Config["routes"] });
  try {
    const { body } = await other.ask("POST", "/v1/notifications", {
      ...email("retried"),
      retryPolicy: { maxAttempts: 3, maxBackoffMs: 300 },
    });
    const record = await until(async () => {
      const found = await ask(other, `/v1/notifications/${body.notificationId}`);
      return found.status === "failed" ? found : undefined;
    });
    assert.equal(calls, 3);
    const [first, second] = record.attempts;
    const gapMs = Date.parse(second.startedAt) - Date.parse(first.endedAt);
    assert.ok(gapMs >= 145 && gapMs < 1_500, `${gapMs} ms between the attempts`);
  } finally {
    await other.stop();
  }
});
