// Reminders: planned from their own offsets or inherited ones, re-planned by every change, sent once.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fireReminders } from "#steps/planned/fire-reminders.ts";
import { replan } from "#steps/planned/replan.ts";
import { firingOn } from "../support/firing.ts";
import { type Cut, flakyPool, untilUndone } from "../support/flaky-pool.ts";
import { keptAhead } from "../support/planned.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

const HOUR = 3_600_000;
const notification = {
  channel: "console",
  content: { title: "Game night", body: "{{ key }} at {{ at }}, in {{ before }}" },
};
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const put = (key: string, body: object, to = service) =>
  to.ask("PUT", `/v1/reminders/${key}`, { notification, ...body });
const putScope = (scope: string, before: string[]) => service.ask("PUT", `/v1/reminder-scopes/${scope}`, { before });
const read = (key: string) => ask(service, `/v1/reminders/${key}`);
type Line = { before: string; dueAt: string; status: string; notificationIds: string[] };
const planned = async (key: string): Promise<string[]> =>
  (await read(key)).plan.filter(({ status }: Line) => status === "planned").map(({ before }: Line) => before);
const fire = () => fireReminders(firingOn(service.db), 100);
const replanAll = async () => {
  while (await replan(firingOn(service.db), 100));
};
/** As if that much time had passed for this reminder's plan. */
const pass = (key: string, interval: string) =>
  service.db.query(
    "update carillon.reminder_plan set due_at = due_at - $2::interval where key = $1 and outcome is null",
    [key, interval],
  );

test("a reminder is planned, one line per offset that lies ahead", async () => {
  const at = inMs(12 * HOUR);
  const { status, body } = await put("game-1", { at, before: ["PT1H", "P1D", "PT60M", "PT10M"] });
  assert.equal(status, 201);
  assert.deepEqual(
    body.plan.map(({ before, dueAt, status }: Line) => [before, Date.parse(at) - Date.parse(dueAt), status]),
    [
      ["PT1H", HOUR, "planned"],
      ["PT10M", 600_000, "planned"],
    ],
  );
  assert.deepEqual([body.offsetsFrom, body.key], ["reminder", "game-1"]);
  assert.equal((await put("game-1", { at, before: [] })).status, 200);
  assert.deepEqual(await planned("game-1"), []);
});

test("a due reminder is sent with its texts filled, expires with the event, and leaves reminder.due in the record", async () => {
  const at = inMs(2 * HOUR);
  const recipients = [{ email: "a@b.co" }, { email: "c@d.co" }];
  const content = {
    subject: "{{ key }}",
    htmlBody: "<b>{{ at | date: '%Y' }}</b> {{ '<' }}",
    textBody: "in {{ before }}",
  };
  await put("game-2", { at, before: ["PT1H"], notification: { channel: "email", recipients, content } });
  await pass("game-2", "2 hours");
  await fire();
  const [line] = (await read("game-2")).plan;
  assert.deepEqual([line.status, line.notificationIds.length], ["sent", 2]);
  const record = await ask(service, `/v1/notifications/${line.notificationIds[0]}`);
  const year = at.slice(0, 4);
  assert.deepEqual(record.content, { subject: "game-2", htmlBody: `<b>${year}</b> &lt;`, textBody: "in PT1H" });
  assert.equal(record.expiresAt, at);
  assert.equal(record.status, "queued");
  const event = record.events.find(({ type }: { type: string }) => type === "reminder.due");
  assert.deepEqual(
    [event.detail.key, event.detail.before, Date.parse(event.detail.at)],
    ["game-2", "PT1H", Date.parse(at)],
  );
});

test("what was sent is not sent again for the same event, what is past is not sent, what is new is", async () => {
  const at = inMs(3 * HOUR);
  await put("game-3", { at, before: ["PT2H", "PT1H"] });
  await pass("game-3", "61 minutes");
  await fire();
  assert.deepEqual(await planned("game-3"), ["PT1H"]);
  await service.db.query(
    "update carillon.reminder_plan set due_at = at - interval '1 hour' where key = 'game-3' and outcome is null",
  );
  await put("game-3", { at, before: ["PT2H", "PT1H"] });
  assert.deepEqual(await planned("game-3"), ["PT1H"], "two hours before was sent");

  const later = inMs(30 * HOUR);
  await put("game-3", { at: later, before: ["PT2H", "PT1H"] });
  assert.deepEqual(await planned("game-3"), ["PT2H", "PT1H"], "another time is another event");
  await put("game-3", { at, before: ["PT2H", "PT1H"] });
  assert.deepEqual(await planned("game-3"), ["PT1H"]);
});

test("a reminder whose event has begun is missed, not sent", async () => {
  await put("game-4", { at: inMs(2 * HOUR), before: ["PT1H"] });
  await service.db.query(
    "update carillon.reminder_plan set at = now() - interval '1 s', due_at = now() - interval '1 hour' where key = 'game-4'",
  );
  await fire();
  assert.deepEqual(
    (await read("game-4")).plan.map(({ status, notificationIds }: Line) => [status, notificationIds]),
    [["missed", []]],
  );
});

test("offsets are inherited from the nearest scope that has some, then from the tenant", async () => {
  const at = inMs(100 * HOUR);
  await put("inherits", { at, scopes: ["game:7", "channel:5", "guild:1"] });
  assert.deepEqual(await planned("inherits"), []);
  await putScope("tenant", ["PT1H"]);
  await replanAll();
  assert.deepEqual([await planned("inherits"), (await read("inherits")).offsetsFrom], [["PT1H"], "tenant"]);
  await putScope("guild:1", ["P1D"]);
  await putScope("channel:5", ["P2D", "PT2H"]);
  await replanAll();
  assert.deepEqual([await planned("inherits"), (await read("inherits")).offsetsFrom], [["P2D", "PT2H"], "channel:5"]);
  await putScope("channel:5", []);
  await replanAll();
  assert.deepEqual(await planned("inherits"), ["P1D"]);
  assert.equal((await service.ask("DELETE", "/v1/reminder-scopes/guild:1")).status, 204);
  await replanAll();
  assert.deepEqual(await planned("inherits"), ["PT1H"]);
  await put("own", { at, before: ["PT5M"], scopes: ["guild:1"] });
  await putScope("guild:1", ["P3D"]);
  await replanAll();
  assert.deepEqual([await planned("own"), await planned("inherits")], [["PT5M"], ["P3D"]]);
  assert.equal((await putScope("guild:1", ["P3D"])).body.replan.total, 2, "the same again changes nothing");
});

test("deleting a reminder cancels what is planned", async () => {
  await put("gone", { at: inMs(2 * HOUR), before: ["PT1H"] });
  await pass("gone", "2 hours");
  assert.equal((await service.ask("DELETE", "/v1/reminders/gone")).status, 204);
  const before = (await ask(service, "/v1/ledger")).accepted;
  await fire();
  assert.equal((await ask(service, "/v1/ledger")).accepted, before);
  assert.equal((await service.ask("GET", "/v1/reminders/gone")).status, 404);
  assert.equal((await service.ask("DELETE", "/v1/reminders/gone")).status, 404);
});

test("nonsense is refused with every fault named, and keeps nothing", async () => {
  const at = inMs(HOUR);
  const cases: [object, string][] = [
    [{}, "/at"],
    [{ at: "tomorrow" }, "/at"],
    [{ at, before: ["1h"] }, "/before/0"],
    [{ at, before: ["P"] }, "/before/0"],
    [{ at, scopes: ["guild"] }, "/scopes/0"],
    [{ at, timezone: "Nowhere/City" }, "/timezone"],
    [{ at, notification: { channel: "sms", content: { body: "x" } } }, "/notification/recipient/phone"],
    [
      { at, notification: { channel: "sms", recipients: [{ phone: "+33612345678" }, {}], content: { body: "x" } } },
      "/notification/recipients/1/phone",
    ],
    [{ at, notification: { ...notification, recipient: {}, recipients: [{}] } }, "/notification/recipients"],
    [{ at, notification: { channel: "console", content: { body: "{{ at " } } }, "/notification/content/body"],
    [
      { at, notification: { channel: "console", content: { body: "{% for i in (1..9) %}x{% endfor %}" } } },
      "/notification/content/body",
    ],
    [
      { at, notification: { channel: "console", content: { body: "{{ (1..99999999) | join }}" } } },
      "/notification/content/body",
    ],
  ];
  for (const [body, path] of cases) {
    const answer = await put("wrong", body);
    assert.equal(answer.status, 422, JSON.stringify(body));
    assert.ok(
      answer.body.errors.some((fault: { path: string }) => fault.path === path),
      `${path}: ${JSON.stringify(answer.body.errors)}`,
    );
  }
  assert.equal((await service.ask("GET", "/v1/reminders/wrong")).status, 404);
  assert.equal((await putScope("guild:1", ["tomorrow"])).status, 422);
  const { body } = await put("wrong", {
    at,
    timezone: "Nowhere/City",
    notification: { channel: "sms", content: { body: "{{ at " } },
  });
  assert.deepEqual(body.errors.map(({ path }: { path: string }) => path).sort(), [
    "/notification/content/body",
    "/notification/recipient/phone",
    "/timezone",
  ]);
});

test("a plan that changes while it fires: each line is sent once or not at all, never after its change was answered", async () => {
  for (let round = 0; round < 30; round++) {
    const key = `race-${round}`;
    await put(key, { at: inMs(2 * HOUR), before: ["PT1H"] });
    await pass(key, "61 minutes");
    const isDelete = round % 3 === 0;
    const [, answer] = await Promise.all([
      fire(),
      isDelete ? service.ask("DELETE", `/v1/reminders/${key}`) : put(key, { at: inMs(5 * HOUR), before: ["PT1H"] }),
    ]);
    assert.ok(answer.status < 300);
    await fire();
    const { rows } = await service.db.query<{ n: number }>(
      "select count(*)::int as n from carillon.notifications where request #>> '{content,body}' like $1 || ' at%'",
      [key],
    );
    assert.ok((rows[0]?.n ?? 9) <= 1, `${key} was sent ${rows[0]?.n} times`);
    if (!isDelete) {
      const { plan } = await read(key);
      const sent = plan.filter(({ status }: Line) => status === "sent").length;
      assert.deepEqual(
        [sent, plan.length - sent],
        [rows[0]?.n, 1],
        "the record says what was sent, and the new plan stands",
      );
    }
  }
});

test("a crash between any two statements of a firing loses and doubles nothing", async () => {
  let isOver = false;
  for (let at = 1; !isOver; at++) {
    for (const when of ["before", "after"] as Cut["when"][]) {
      const key = `crash-${at}-${when}`;
      await put(key, { at: inMs(2 * HOUR), before: ["PT1H"] });
      await pass(key, "61 minutes");
      const cut = flakyPool(service.db, { at, when });
      await fireReminders(firingOn(cut.pool), 100).catch(() => undefined);
      await untilUndone(service.db);
      isOver ||= cut.statements() < at;
      await fire();
      const [line] = (await read(key)).plan;
      assert.deepEqual([line.status, line.notificationIds.length], ["sent", 1], key);
      const { rows } = await service.db.query(
        "select count(*)::int as n from carillon.notifications where request #>> '{content,body}' like $1 || ' at%'",
        [key],
      );
      assert.equal(rows[0].n, 1, key);
    }
  }
});

test("a re-plan of many goes on where a crash left it, and says how far it is", async () => {
  const at = inMs(200 * HOUR);
  await service.db.query(
    `insert into carillon.reminders (tenant, key, at, timezone, scopes, notice, offsets, offsets_from)
     select 1, 'mass-' || lpad(n::text, 5, '0'), $1, 'UTC', '{guild:9}', $2, '{}', 'none' from generate_series(1, 2500) n`,
    [at, JSON.stringify(notification)],
  );
  await service.db.query(
    "insert into carillon.scope_members (tenant, scope, key) select 1, 'guild:9', key from carillon.reminders where key like 'mass-%'",
  );
  const { body } = await putScope("guild:9", ["P1D", "PT1H"]);
  assert.deepEqual([body.replan.done, body.replan.total], [0, 2500]);
  for (let at = 1; at <= 12; at++) {
    for (const when of ["before", "after"] as Cut["when"][]) {
      await replan(firingOn(flakyPool(service.db, { at, when }).pool), 100).catch(() => undefined);
      await untilUndone(service.db);
    }
  }
  const { replan: under } = await ask(service, "/v1/reminder-scopes/guild:9");
  assert.ok(under.done > 0 && under.done < 2500 && !under.finishedAt, JSON.stringify(under));
  await Promise.all([replanAll(), replanAll()]);
  await replanAll();
  const { replan: over } = await ask(service, "/v1/reminder-scopes/guild:9");
  assert.equal(over.done, 2500);
  assert.ok(over.finishedAt);
  const { rows } = await service.db.query(
    "select count(*)::int as n, count(distinct key)::int as k from carillon.reminder_plan where key like 'mass-%'",
  );
  assert.deepEqual(rows, [{ n: 5000, k: 2500 }]);
});

test("scopes that change while reminders are put leave no plan behind the times", async () => {
  const at = inMs(300 * HOUR);
  for (let round = 0; round < 10; round++) {
    const scope = `race:${round}`;
    const [one, two] = round % 2 ? ["P1D", "P2D"] : ["P2D", "P1D"];
    await putScope(scope, [one ?? ""]);
    await Promise.all([
      ...Array.from({ length: 5 }, (_, n) => put(`${round}-${n}`, { at, scopes: [scope] })),
      putScope(scope, [two ?? ""]),
      replan(firingOn(service.db), 2),
    ]);
    await replanAll();
    for (let n = 0; n < 5; n++) assert.deepEqual(await planned(`${round}-${n}`), [two], `round ${round}`);
  }
});

test("a scheduler that stops begins no batch of a re-plan", async () => {
  await put("stopping", { at: inMs(100 * HOUR), scopes: ["stop:1"] });
  await putScope("stop:1", ["P1D"]);
  assert.equal(await replan(firingOn(service.db, { isStopping: () => true }), 100), 0);
  assert.deepEqual(await planned("stopping"), ["PT1H"]);
  await replanAll();
  assert.deepEqual(await planned("stopping"), ["P1D"]);
});

test("a line whose time passes while its reminder is waited for is left out as past", async () => {
  for (const change of ["put", "re-plan"]) {
    const key = `waits-for-${change}`;
    await put(key, { at: inMs(100 * HOUR), scopes: [`wait:${change}`] });
    const other = await service.db.connect();
    await other.query("begin");
    await other.query("select from carillon.reminders where key = $1 for update", [key]);
    const at = new Date(Date.now() + HOUR + 1_500);
    const offset = ["PT1H"];
    let changed: Promise<unknown>;
    if (change === "put") changed = put(key, { at, before: offset });
    else {
      await other.query("update carillon.reminders set at = $2 where key = $1", [key, at]);
      await putScope(`wait:${change}`, offset);
      changed = replanAll();
    }
    await until(async () => {
      const { rows } = await service.db.query("select carillon.now() > $1::timestamptz - interval '1 hour' as past", [
        at,
      ]);
      return rows[0].past ? true : undefined;
    });
    await other.query("commit");
    other.release();
    await changed;
    assert.deepEqual((await read(key)).plan, [], key);
  }
});

test("the service reminds by itself, at its time", async () => {
  const whole = await startService({ roles: ["api", "worker", "scheduler"] });
  try {
    await keptAhead({ leadMs: 1_000, beforeMs: HOUR }, async (at) => {
      const { body } = await put("live", { at, before: ["PT1H"] }, whole);
      return body;
    });
    const line = await until(async () => {
      const { plan } = await ask(whole, "/v1/reminders/live");
      return plan[0].status === "sent" ? plan[0] : undefined;
    });
    const lateMs = Date.parse(line.endedAt) - Date.parse(line.dueAt);
    assert.ok(lateMs >= 0 && lateMs < 20_000, `${lateMs} ms late`);
    await until(async () => {
      const record = await ask(whole, `/v1/notifications/${line.notificationIds[0]}`);
      return record.status === "sent" ? record : undefined;
    });
  } finally {
    await whole.stop();
  }
});
