// One clock: what is not on these lists goes by carillon.now(), so that whoever moves it moves everything.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import pg from "pg";
import { migrate } from "#store/connection/migrate.ts";
import { freshDatabase } from "../support/postgres.ts";

/** Who goes by the true time, and why. Of a list that is too long a test says so as well. */
const FILES: { [file: string]: string } = {
  "store/leadership.ts": "a leader's term",
  "store/connection/probe.ts": "writes a row of leaders",
  "store/workers.ts": "heartbeats",
  "store/connectors.ts": "heartbeats of sources, leases of sinks",
  "store/sessions.ts": "who moves the clock in the dashboard stays signed in",
  "store/examine.ts": "compares this machine's clock with it, and tells how long transactions of others have been open",
  "store/moved-clock.ts": "tells how far the clock was moved",
  "store/locks.ts": "locks",
  "store/limits.ts": "limits",
  "store/breakers.ts": "breakers and pauses of providers",
  "store/connection/migrate.ts": "when a migration was applied",
  "record/feed-standing.ts": "how long transactions of others have been open",
  "queue/postgres/claim-statement.ts": "leases",
  "queue/postgres/handoffs.ts": "how long ago an engine was offered something",
  "queue/postgres/leases.ts": "leases",
};
const IN_THE_DATABASE: { [name: string]: string } = {
  "function now": "is the clock",
  "function set_clock": "sets the clock",
  "function take_limits": "limits",
  "function try_keys": "patience for a lock",
  "default of workers.started_at": "heartbeats",
  "default of workers.seen_at": "heartbeats",
  "default of breakers.changed_at": "breakers",
  "default of handoffs.handed_at": "how long ago an engine was to be offered it",
  "default of inboxes.epoch": "no time: tells one numbering from another, and must never come twice",
  "default of migrations.applied_at": "is there before the clock is",
};

const TRUE_CLOCK =
  /\b(statement_timestamp|clock_timestamp|transaction_timestamp|timeofday)\(\)|\b(current|local)_?time(stamp)?\b|\bcurrent_date\b|(?<![.\w])now\(\)(?!:)/i;
const src = join(import.meta.dirname, "..", "..", "src");

test("no statement goes by the true clock but those of leases, leaders, heartbeats, locks, limits and breakers", () => {
  const found = globSync("{store,record,queue}/**/*.ts", { cwd: src }).filter((file) =>
    TRUE_CLOCK.test(readFileSync(join(src, file), "utf8").replaceAll(/^\s*(\/\/|\/?\*).*$/gm, "")),
  );
  assert.deepEqual(found.sort(), Object.keys(FILES).sort());
});

test("no function, view or default in the database does either", async (t) => {
  const database = await freshDatabase();
  const db = new pg.Client(database.url);
  await db.connect();
  t.after(async () => {
    await db.end();
    await database.drop();
  });
  await migrate(database.url);
  const { rows } = await db.query<{ name: string; text: string }>(
    `select 'function ' || proname as name, prosrc as text from pg_proc where pronamespace = 'carillon'::regnamespace
     union all
     select 'view ' || relname, pg_get_viewdef(oid) from pg_class where relnamespace = 'carillon'::regnamespace and relkind = 'v'
     union all
     select 'default of ' || c.relname || '.' || a.attname, pg_get_expr(d.adbin, d.adrelid)
     from pg_attrdef d join pg_class c on c.oid = d.adrelid join pg_attribute a on a.attrelid = c.oid and a.attnum = d.adnum
     where c.relnamespace = 'carillon'::regnamespace and not c.relispartition`,
  );
  const found = rows.filter(({ text }) => TRUE_CLOCK.test(text.replaceAll(/--.*$/gm, ""))).map(({ name }) => name);
  assert.deepEqual(found.sort(), Object.keys(IN_THE_DATABASE).sort());
});
