// Recurring schedules: kept, fired once per tick, paused, resumed, caught up with.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fireSchedules } from "#steps/planned/fire-schedules.ts";
import { firingOn } from "../support/firing.ts";
import { type Cut, flakyPool, untilUndone } from "../support/flaky-pool.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

const notification = { channel: "console", content: { body: "The report is ready" } };
const put = (key: string, body: object, to = service) =>
  to.ask("PUT", `/v1/schedules/${key}`, { notification, ...body });
/** Round after round: on a slow machine a tenant's turn is over before all of it is fired. */
async function fire(): Promise<void> {
  while ((await fireSchedules(firingOn(service.db), 100)) > 0);
}
const back = (key: string, interval: string) =>
  service.db.query(
    "update carillon.schedules set next_at = date_trunc('second', next_at - $2::interval) where key = $1",
    [key, interval],
  );
const runs = async (key: string) => (await ask(service, `/v1/schedules/${key}/runs`)).data;
const accepted = async (): Promise<number> => (await ask(service, "/v1/ledger")).accepted;

test("a schedule is kept as it was given, with the times to come", async () => {
  const { status, body } = await put("daily", { cron: "0 9 * * *", timezone: "Europe/Paris" });
  assert.equal(status, 200);
  assert.deepEqual(
    [body.key, body.cron, body.timezone, body.paused, body.catchUp],
    ["daily", "0 9 * * *", "Europe/Paris", false, "once"],
  );
  const { data } = await ask(service, "/v1/schedules/daily/next?count=3");
  assert.equal(data.length, 3);
  assert.equal(data[0], body.nextAt);
  const again = await put("daily", { every: "PT1H", from: "2099-01-01T00:00:00Z" });
  assert.deepEqual([again.body.cron, again.body.nextAt], [undefined, "2099-01-01T00:00:00.000Z"]);
  assert.deepEqual(
    (await ask(service, "/v1/schedules")).data.map(({ key }: { key: string }) => key),
    ["daily"],
  );
  assert.equal((await service.ask("DELETE", "/v1/schedules/daily")).status, 204);
  assert.equal((await service.ask("GET", "/v1/schedules/daily")).status, 404);
});

test("nonsense is refused with every fault named, and keeps nothing", async () => {
  const cases: [object, string][] = [
    [{}, ""],
    [{ cron: "* * * * *", every: "PT1H" }, ""],
    [{ cron: "99 * * * *" }, "/cron"],
    [{ cron: "0 0 30 2 *" }, "/cron"],
    [{ every: "PT0S" }, "/every"],
    [{ every: "1h" }, "/every"],
    [{ every: "PT1H", timezone: "Mars/Olympus" }, "/timezone"],
    [{ every: "PT1H", until: "2020-01-01T00:00:00Z" }, "/until"],
    [{ every: "PT1H", notification: { channel: "email", content: { body: "x" } } }, "/notification/recipient/email"],
    [
      { every: "PT1H", notification: { ...notification, scheduledFor: "2099-01-01T00:00:00Z" } },
      "/notification/scheduledFor",
    ],
  ];
  for (const [body, path] of cases) {
    const answer = await put("wrong", body);
    assert.equal(answer.status, 422, JSON.stringify(body));
    assert.ok(
      answer.body.errors.some((fault: { path: string }) => fault.path === path),
      JSON.stringify(answer.body.errors),
    );
  }
  const everything = { cron: "99 * * * *", notification: { channel: "sms", content: { body: "{{ at " } } };
  const { body } = await put("wrong", everything);
  assert.deepEqual(body.errors.map(({ path }: { path: string }) => path).sort(), [
    "/cron",
    "/notification/content/body",
    "/notification/recipient/phone",
  ]);
  assert.equal((await service.ask("GET", "/v1/schedules/wrong")).status, 404);
  assert.equal((await service.ask("PUT", "/v1/schedules/a%20b", { every: "PT1H", notification })).status, 422);
});

test("a tick fires once, however many schedulers there are", async () => {
  for (let n = 0; n < 20; n++)
    await put(`many-${n}`, { every: "PT1H", notification: { ...notification, metadata: { n } } });
  const before = await accepted();
  await service.db.query("update carillon.schedules set next_at = now() - interval '1 s' where key like 'many-%'");
  await Promise.all(Array.from({ length: 4 }, fire));
  assert.equal((await accepted()) - before, 20);
  for (let n = 0; n < 20; n++) assert.equal((await runs(`many-${n}`)).length, 1);
  await fire();
  assert.equal((await accepted()) - before, 20, "nothing is due any more");
});

test("several recipients are several notifications, of one run", async () => {
  const recipients = [{ email: "a@b.co" }, { email: "c@d.co" }];
  await put("both", {
    every: "P1D",
    notification: { channel: "email", recipients, content: { subject: "s", textBody: "t" } },
  });
  await back("both", "1 day");
  await fire();
  const [run] = await runs("both");
  assert.deepEqual([run.outcome, run.notificationIds.length], ["sent", 2]);
  const sent = await Promise.all(run.notificationIds.map((id: string) => ask(service, `/v1/notifications/${id}`)));
  assert.deepEqual(sent.map(({ recipient }) => recipient.email).sort(), ["a@b.co", "c@d.co"]);
});

test("texts say the tick they are for; what cannot be filled is refused, or fails its own run", async () => {
  const content = { body: "{{ key }} at {{ at | date: '%H:%M' }}" };
  assert.equal((await put("filled", { every: "PT1H", notification: { ...notification, content } })).status, 200);
  await back("filled", "1 hour");
  await fire();
  const [run] = await runs("filled");
  const sent = await ask(service, `/v1/notifications/${run.notificationIds[0]}`);
  assert.equal(sent.content.body, `filled at ${run.tick.slice(11, 16)}`);

  const broken = { ...notification, content: { body: "{{ at | nope }}" } };
  const refused = await put("filled", { every: "PT1H", notification: broken });
  assert.deepEqual([refused.status, refused.body.errors[0].path], [422, "/notification/content/body"]);
  await service.db.query("update carillon.schedules set notice = $1 where key = 'filled'", [JSON.stringify(broken)]);
  await back("filled", "1 hour");
  await service.db.query("delete from carillon.runs where key = 'filled'");
  await fire();
  const [failed] = await runs("filled");
  assert.equal(failed.outcome, "failed");
  assert.match(failed.error, /nope/);
});

test("a schedule that is changed while its texts are filled sends what it says then", async () => {
  await put("changed", { every: "PT1H", notification: { ...notification, content: { body: "old {{ key }}" } } });
  await back("changed", "1 hour");
  const firing = firingOn(service.db);
  const change = async () => {
    await put("changed", { every: "PT1H", notification: { ...notification, content: { body: "new" } } });
    await back("changed", "1 hour");
  };
  const meanwhile: typeof firing.fill = async (...asked) => {
    const filled = await firing.fill(...asked);
    await change();
    return filled;
  };
  assert.equal(await fireSchedules({ ...firing, fill: meanwhile }, 100), 0);
  assert.deepEqual(await runs("changed"), []);
  await fire();
  const [run] = await runs("changed");
  assert.equal((await ask(service, `/v1/notifications/${run.notificationIds[0]}`)).content.body, "new");
});

test("what was missed fires once, or is skipped", async () => {
  const from = new Date(Date.now() - 10.5 * 3_600_000).toISOString();
  await put("once", { every: "PT1H", from });
  await put("skip", { every: "PT1H", from, catchUp: "skip" });
  for (const key of ["once", "skip"]) {
    await service.db.query("update carillon.schedules set next_at = next_at - interval '5 hours' where key = $1", [
      key,
    ]);
  }
  await fire();
  const [once] = await runs("once");
  assert.deepEqual([once.outcome, once.skipped, once.notificationIds.length], ["sent", 4, 1]);
  const [skip] = await runs("skip");
  assert.deepEqual([skip.outcome, skip.skipped, skip.notificationIds.length], ["skipped", 5, 0]);
  for (const key of ["once", "skip"]) {
    const { nextAt } = await ask(service, `/v1/schedules/${key}`);
    assert.ok(Date.parse(nextAt) > Date.now(), "the next is ahead");
  }
});

test("a paused schedule does not fire, and goes on from now when it is resumed", async () => {
  await put("paused", { every: "PT1H" });
  const { body } = await service.ask("POST", "/v1/schedules/paused/pause");
  assert.deepEqual([body.paused, body.nextAt], [true, undefined]);
  assert.deepEqual((await ask(service, "/v1/schedules/paused/next")).data, []);
  assert.equal((await put("paused", { every: "PT2H" })).body.paused, true, "a change does not resume it");
  await fire();
  assert.deepEqual(await runs("paused"), []);
  const resumed = await service.ask("POST", "/v1/schedules/paused/resume");
  assert.equal(resumed.body.paused, false);
  assert.ok(Date.parse(resumed.body.nextAt) > Date.now());
  assert.equal((await service.ask("POST", "/v1/schedules/nobody/pause")).status, 404);
});

test("a schedule ends after its last tick", async () => {
  await put("ends", { every: "PT1H", until: new Date(Date.now() + 5_400_000).toISOString() });
  await back("ends", "1 hour");
  await service.db.query("update carillon.schedules set until_at = now() + interval '1 minute' where key = 'ends'");
  await fire();
  const { nextAt } = await ask(service, "/v1/schedules/ends");
  assert.equal(nextAt, undefined);
  assert.equal((await runs("ends")).length, 1);
});

test("a crash between any two statements of a firing loses and doubles nothing", async () => {
  await service.db.query("delete from carillon.schedules");
  let statements = 99;
  for (let at = 1; at <= statements; at++) {
    for (const when of ["before", "after"] as Cut["when"][]) {
      const key = `crash-${at}-${when}`;
      await put(key, { every: "PT1H" });
      await back(key, "1 hour");
      const cut = flakyPool(service.db, { at, when });
      await fireSchedules(firingOn(cut.pool), 100).catch(() => undefined);
      await untilUndone(service.db);
      const isLast = cut.statements() < at;
      if (isLast) statements = 0;
      await fire();
      const history = await runs(key);
      assert.equal(history.length, 1, key);
      assert.equal(history[0].notificationIds.length, 1, key);
      const { rows } = await service.db.query(
        "select count(*)::int as n from carillon.notifications where request #>> '{content,body}' = 'The report is ready' and id = any ($1)",
        [history[0].notificationIds],
      );
      assert.equal(rows[0].n, 1, key);
      await service.db.query("delete from carillon.schedules where key = $1", [key]);
    }
  }
});

test("the service fires by itself, at its time, and a change of plan wakes it", async () => {
  const whole = await startService({ roles: ["api", "worker", "scheduler"] });
  try {
    await put("soon", { every: "P1D", from: new Date(Date.now() + 3_600_000).toISOString() }, whole);
    const due = Date.now() + 400;
    await put("soon", { every: "P1D", from: new Date(due).toISOString() }, whole);
    const [run] = await until(async () => {
      const { data } = await ask(whole, "/v1/schedules/soon/runs");
      return data.length > 0 ? data : undefined;
    });
    const lateMs = Date.parse(run.at) - due;
    assert.ok(lateMs >= 0, `${-lateMs} ms early`);
    const sent = await until(async () => {
      const record = await ask(whole, `/v1/notifications/${run.notificationIds[0]}`);
      return record.status === "sent" ? record : undefined;
    });
    assert.equal(sent.content.body, "The report is ready");
  } finally {
    await whole.stop();
  }
});
