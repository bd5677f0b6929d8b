// Connections for hints, on a network that drops packets.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Lanes } from "#domain/priority.ts";
import { openDatabase } from "#store/connection/database.ts";
import { createReadyHint, listen } from "#store/connection/hint.ts";
import type { ListenTiming } from "#store/connection/listen.ts";
import { freshDatabase } from "../support/postgres.ts";
import { startService } from "../support/service.ts";
import { throughSilentProxy } from "../support/silent-proxy.ts";
import { until } from "../support/until.ts";

async function scene(t: TestContext) {
  const database = await freshDatabase();
  t.after(() => database.drop());
  const { url, proxy } = await throughSilentProxy(database.url);
  t.after(() => proxy.close());
  const pools = openDatabase({ url: database.url, acceptConnections: 1, connections: 1, onError: () => {} });
  t.after(pools.close);
  return { url, proxy, db: pools.own };
}

function hearing(t: TestContext, url: string, timing: Partial<ListenTiming>) {
  const heard = { ready: 0, lanes: [] as Lanes[], due: [] as (number | undefined)[], lost: [] as string[] };
  const listening = listen(url, {
    onReady(lanes) {
      heard.ready++;
      heard.lanes.push(lanes);
    },
    onDue: (ms) => heard.due.push(ms),
    onLost: ({ message }) => heard.lost.push(message),
    timing: { beatMs: 20, answerMs: 2_000, reconnectMs: 10, ...timing },
  });
  t.after(listening.stop);
  return heard;
}

test("a connection that fell silent is noticed and replaced, and what was missed meanwhile is looked for", async (t) => {
  const { url, proxy, db } = await scene(t);
  const heard = hearing(t, url, { answerMs: 300 });
  await until(async () => (heard.ready === 1 ? true : undefined));

  // On a busy machine it may have been taken for silent before.
  const { ready } = heard;
  proxy.silence();
  await until(async () => (heard.ready > ready ? true : undefined));
  assert.match(heard.lost.at(-1) ?? "", /nothing heard of a notification to itself|closed/);
  assert.ok(heard.due.length >= 2 && heard.due.every((ms) => ms === undefined));
  // One that is said while a busy machine's connection is taken for silent again is missed, as all are then.
  await until(async () => {
    await db.query("select pg_notify('carillon_due', '1234')");
    return heard.due.includes(1234) ? true : undefined;
  });
});

test("a hint says whether only lower lanes are meant; of several that are one, all must have been", async (t) => {
  const { url, db } = await scene(t);
  const heard = hearing(t, url, { beatMs: 1_000, answerMs: 20_000 });
  await until(async () => (heard.ready === 1 ? true : undefined));
  assert.deepEqual(heard.lanes, ["any"]);
  const hint = createReadyHint(db);
  hint("lower");
  hint("lower");
  await until(async () => (heard.ready === 2 ? true : undefined));
  hint("lower");
  hint();
  hint("lower");
  await until(async () => (heard.ready === 3 ? true : undefined));
  // As triggers say it, and other versions.
  await db.query("select pg_notify('carillon_ready', '')");
  await until(async () => (heard.ready === 4 ? true : undefined));
  assert.deepEqual(heard.lanes, ["any", "lower", "any", "any"]);
});

test("a connection that is well is kept, however long nobody else says anything", async (t) => {
  const { url, db } = await scene(t);
  const heard = hearing(t, url, { beatMs: 1, answerMs: 20_000 });
  await until(async () => (heard.ready === 1 ? true : undefined));
  const beats = async () => {
    const { rows } = await db.query(
      "select query_start from pg_stat_activity where application_name = 'carillon listen' and datname = current_database() and query ~ 'pg_notify'",
    );
    return rows[0]?.query_start?.getTime() as number | undefined;
  };
  const first = await until(beats);
  await until(async () => (((await beats()) ?? 0) > first ? true : undefined));
  assert.deepEqual([heard.ready, heard.lost], [1, []]);
});

test("a process counts the connections for hints that it lost, and has new ones", async (t) => {
  const service = await startService({ roles: ["api", "worker", "scheduler", "stream"] });
  t.after(service.stop);
  const listeners = async (): Promise<{ pid: number; name: string }[]> => {
    const { rows } = await service.db.query(
      `select pid, application_name as name from pg_stat_activity
       where datname = current_database() and application_name in ('carillon listen', 'carillon stream')
         and state = 'idle' and query ~ '^listen carillon_(due|inbox)|pg_notify'`,
    );
    return rows;
  };
  const first = await until(async () => {
    const found = await listeners();
    return found.length === 2 ? found.map(({ pid }) => pid) : undefined;
  });
  await service.db.query("select pg_terminate_backend(pid) from unnest($1::int[]) as pid", [first]);
  await until(async () =>
    (await listeners()).filter(({ pid }) => !first.includes(pid)).length === 2 ? true : undefined,
  );
  const { body } = await service.ask("GET", "/metrics");
  for (const listener of ["listen", "stream"]) {
    assert.match(body, new RegExp(`carillon_listeners_lost_total\\{listener="${listener}"\\} 1`));
  }
});
