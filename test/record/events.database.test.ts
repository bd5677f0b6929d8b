// What can happen, and in which order it did.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Event } from "#domain/event.ts";
import { STATUSES } from "#domain/status.ts";
import { email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService({ roles: ["api"] });
});
after(() => service.stop());

const query = async (sql: string, values: unknown[] = []) => (await service.db.query(sql, values)).rows;
const send = async (request: object = {}): Promise<string> =>
  (await service.ask("POST", "/v1/notifications", { ...email(), ...request })).body.notificationId;
const read = async (id: string) => (await service.ask("GET", `/v1/notifications/${id}`)).body;
const typesOf = ({ events }: { events: { type: string }[] }) => events.map(({ type }) => type);

const root = join(import.meta.dirname, "..", "..");

/** By type, which status leads to which. */
const known = Event.anyOf.map(({ properties: { type, to, ...rest } }) => ({
  type: type.const,
  from: "from" in rest ? rest.from.enum : [],
  to: to.enum,
}));
const stored = known.filter(({ from }) => from.length > 0);

test("the database takes what the union knows, and nothing else", async () => {
  const [{ expression }] = await query(
    `select pg_get_expr(conbin, conrelid) as expression from pg_constraint
     where conname = 'events_can_happen' and conrelid = 'carillon.events'::regclass`,
  );
  const allowed = await query(
    `select type, from_status as "from", to_status as "to"
     from unnest($1::text[]) as type, unnest($2::carillon.status[]) as from_status, unnest($2::carillon.status[]) as to_status
     where ${expression}`,
    [[...known.map(({ type }) => type), "reported", ""], STATUSES],
  );
  const line = ({ type, from, to }: { type: string; from: string; to: string }) => `${type}: ${from} → ${to}`;
  const expected = stored.flatMap(({ type, from, to }) =>
    from.flatMap((f) => to.map((t) => ({ type, from: f, to: t }))),
  );
  assert.deepEqual(allowed.map(line as never).sort(), expected.map(line).sort());
  const id = await send();
  await assert.rejects(
    query(
      "insert into carillon.events (notification_id, tenant, type, from_status, to_status) values ($1, 1, 'sent', 'processing', 'sent')",
      [id],
    ),
    /events_can_happen/,
  );
});

test("docs/states.md lists what the union knows", () => {
  const page = readFileSync(join(root, "docs", "states.md"), "utf8");
  const section = page.slice(page.indexOf("## Events"), page.indexOf("\n## ", page.indexOf("## Events") + 1));
  const words = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map(([, word]) => word);
  const rows = section.split("\n").filter((row) => row.startsWith("| `"));
  const listed = rows.map((row) => {
    const [, type, from, to] = row.split("|");
    return { type: words(type)[0], from: words(from), to: words(to) };
  });
  assert.deepEqual(listed, known);
});

test("each is written in one place, the one that src/record/events.ts names", async () => {
  const typesIn = (text: string) =>
    [...text.matchAll(/into carillon\.events \([^)]*\)\s*(?:select|values)[^']*'([^']+)'/g)].map(([, type]) => type);
  const functions = await query(
    "select format('carillon.%s()', proname) as place, prosrc as text from pg_proc where pronamespace = 'carillon'::regnamespace",
  );
  const files = globSync("src/**/*.ts", { cwd: root }).map((place) => ({
    place,
    text: readFileSync(join(root, place), "utf8"),
  }));
  const sources: { place: string; text: string }[] = [...functions, ...files];
  const written = sources.flatMap(({ place, text }) => {
    const types = typesIn(text);
    assert.equal(types.length, text.split("into carillon.events").length - 1, `${place} names what it writes`);
    return types.map((type) => `${type} ${place}`);
  });
  const header = readFileSync(join(root, "src", "record", "events.ts"), "utf8");
  const named = [...header.matchAll(/^\/\/ {3}([\w.]+) +(\S+)$/gm)].map(([, type, place]) => `${type} ${place}`);
  assert.deepEqual(written.sort(), [...named].sort());
  assert.deepEqual(
    named.map((line) => line.split(" ")[0]),
    stored.map(({ type }) => type),
  );
});

/** Sent, as far as the record knows; the provider's receipt is the notification's id. */
async function sent(): Promise<string> {
  const id = await send();
  await query("delete from carillon.ready where id = $1", [id]);
  await query(
    `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, outcome)
     values ($1, 1, 'attempt', 'processing', 'sent', 1, 'accepted')`,
    [id],
  );
  await query(
    "insert into carillon.receipts (provider, receipt, tenant, notification_id) values ('mail', $1::text, 1, $1::uuid)",
    [id],
  );
  return id;
}
/** A provider says what became of it. */
async function report(id: string, kind: string): Promise<void> {
  await query(
    `insert into carillon.reports (provider, receipt, report_id, kind, at) values ('mail', $1::text, $1::text || $2, $2, now())`,
    [id, kind],
  );
  await query("select carillon.apply_reports(10)");
}
/** As if the clock had been an hour ahead until now. */
const setClockBack = (id: string) =>
  query("update carillon.events set at = at + interval '1 hour' where notification_id = $1", [id]);

test("a clock that is set back between two events does not change which was last", async () => {
  const id = await sent();
  await setClockBack(id);
  await report(id, "delivered");
  assert.equal((await read(id)).status, "delivered");
  await setClockBack(id);
  await report(id, "failed");
  const bounced = await read(id);
  assert.deepEqual([bounced.status, typesOf(bounced)], ["failed", ["accepted", "attempt", "delivered", "bounced"]]);
  await setClockBack(id);

  const letters = (await service.ask("GET", "/v1/dead-letters")).body.data;
  assert.deepEqual(
    letters.map(({ notificationId, provider }: { [name: string]: string }) => [notificationId, provider]),
    [[id, "mail"]],
  );
  assert.equal((await service.ask("POST", `/v1/notifications/${id}/retry`)).status, 200);
  const retried = await read(id);
  assert.deepEqual([retried.status, typesOf(retried).at(-1)], ["queued", "retried"]);
  assert.deepEqual((await service.ask("GET", "/v1/dead-letters")).body.data, []);
  assert.equal((await service.ask("POST", `/v1/notifications/${id}/cancel`)).status, 200);
  assert.equal((await read(id)).status, "cancelled");
});

test("what began earlier and was written later is later", async () => {
  const id = await sent();
  await query("delete from carillon.events where notification_id = $1", [id]);
  const holder = await service.db.connect();
  const reporter = await service.db.connect();
  try {
    await holder.query("begin");
    await holder.query("select from carillon.notifications where id = $1 for update", [id]);
    await query(
      "insert into carillon.reports (provider, receipt, report_id, kind, at) values ('mail', $1::text, 'early', 'delivered', now())",
      [id],
    );
    // Its statement begins before that of the settlement, and waits for the notification.
    const applied = reporter.query("select carillon.apply_reports(10)");
    await until(async () => {
      const [waits] = await query(
        "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%apply_reports%' and datname = current_database()",
      );
      return waits;
    });
    await query(
      `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, outcome)
       values ($1, 1, 'attempt', 'processing', 'sent', 1, 'accepted')`,
      [id],
    );
    await holder.query("commit");
    await applied;
  } finally {
    holder.release();
    reporter.release();
  }
  const record = await read(id);
  const [, attempt, delivered] = record.events;
  assert.ok(attempt.at > delivered.at, "their clock readings are in the wrong order");
  assert.deepEqual([record.status, typesOf(record)], ["delivered", ["accepted", "attempt", "delivered"]]);
});

test("what was written before events had numbers goes by its time, and is before all that have one", async () => {
  const id = await send();
  await query("delete from carillon.ready where id = $1", [id]);
  const older = (type: string, from: string, to: string, minutes: number) =>
    query(
      `insert into carillon.events (notification_id, tenant, type, from_status, to_status, at, seq)
       values ($1, 1, $2, $3, $4, now() + $5 * interval '1 minute', 1)`,
      [id, type, from, to, minutes],
    );
  await older("bounced", "sent", "failed", 3);
  await older("attempt", "processing", "sent", 2);
  assert.equal((await read(id)).status, "failed");
  await service.ask("POST", `/v1/notifications/${id}/retry`);
  await service.ask("POST", `/v1/notifications/${id}/cancel`);
  const record = await read(id);
  assert.deepEqual(typesOf(record), ["accepted", "attempt", "bounced", "retried", "cancelled"]);
  assert.equal(record.status, "cancelled");
});
