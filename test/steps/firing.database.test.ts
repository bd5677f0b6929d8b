// Firing: what fails, fails alone; each tenant has its turn; what is too large for one transaction goes chunk by chunk.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { continueBroadcasts } from "#steps/planned/broadcast.ts";
import { fireReminders } from "#steps/planned/fire-reminders.ts";
import { fireSchedules } from "#steps/planned/fire-schedules.ts";
import type { Accepted } from "../support/firing.ts";
import { countingAccept, firingOn } from "../support/firing.ts";
import { flakyPool, untilUndone } from "../support/flaky-pool.ts";
import { ask, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());
afterEach(() => service.db.query("delete from carillon.schedules; delete from carillon.reminders"));

const HOUR = 3_600_000;
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const notification = { channel: "console", content: { body: "Hello" } };
const putSchedule = (key: string, body: object, to = service, apiKey?: string) =>
  to.ask("PUT", `/v1/schedules/${key}`, { notification, ...body }, apiKey ? { key: apiKey } : {});
const putReminder = (key: string, body: object, to = service, apiKey?: string) =>
  to.ask(
    "PUT",
    `/v1/reminders/${key}`,
    { notification, at: inMs(2 * HOUR), before: ["PT1H"], ...body },
    apiKey ? { key: apiKey } : {},
  );
const runsOf = async (key: string, of = service) => (await ask(of, `/v1/schedules/${key}/runs`)).data;
const planOf = async (key: string, of = service) => (await ask(of, `/v1/reminders/${key}`)).plan;
const makeDue = async (db = service.db, keys?: string[]) => {
  const these = "and ($1::text[] is null or key = any ($1))";
  await db.query(`update carillon.schedules set next_at = now() where next_at is not null ${these}`, [keys]);
  await db.query(`update carillon.reminder_plan set due_at = now() where outcome is null ${these}`, [keys]);
  await db.query("select pg_notify('carillon_due', '')");
};

test("a tick that has run is skipped, and holds up neither itself nor anything else", async () => {
  const whole = await startService({ roles: ["api", "scheduler"] });
  try {
    await putSchedule("hourly", { every: "PT1H" }, whole);
    await whole.db.query("update carillon.schedules set from_at = from_at - interval '1 hour'");
    await makeDue(whole.db);
    const [run] = await until(async () => {
      const runs = await runsOf("hourly", whole);
      return runs.length > 0 ? runs : undefined;
    });
    // As a replica whose clock lags would have set it.
    await whole.db.query("update carillon.schedules set next_at = $1 where key = 'hourly'", [run.tick]);
    await putSchedule("other", { every: "P1D", from: inMs(HOUR) }, whole);
    await putReminder("game", {}, whole);
    await makeDue(whole.db, ["other", "game"]);
    await until(async () => ((await runsOf("other", whole)).length > 0 ? true : undefined));
    await until(async () => ((await planOf("game", whole))[0].status === "sent" ? true : undefined));
    await until(async () => ((await ask(whole, "/v1/schedules/hourly")).nextAt > run.tick ? true : undefined));
    assert.equal((await runsOf("hourly", whole)).length, 1);
    const { rows } = await whole.db.query(
      "select count(*)::int as n from carillon.notifications where id <> all (select unnest(notifications) from carillon.runs union all select unnest(notifications) from carillon.reminder_plan)",
    );
    assert.deepEqual(rows, [{ n: 0 }], "nothing was sent that no run tells of");
  } finally {
    await whole.stop();
  }
});

test("what cannot be fired is put off by itself, says so, and holds up nothing behind it", async () => {
  const whole = await startService({ roles: ["api", "scheduler"] });
  try {
    await putSchedule("broken", { every: "P1D", from: inMs(HOUR) }, whole);
    await putReminder("broken", {}, whole);
    await whole.db.query("update carillon.schedules set every = null, cron = 'nonsense'");
    await whole.db.query("update carillon.reminders set notice = 'null'");
    await putSchedule("sound", { every: "P1D", from: inMs(HOUR) }, whole);
    await putReminder("sound", {}, whole);
    await makeDue(whole.db, ["broken"]);
    await makeDue(whole.db, ["sound"]);
    await until(async () => ((await runsOf("sound", whole)).length > 0 ? true : undefined));
    await until(async () => ((await planOf("sound", whole))[0].status === "sent" ? true : undefined));
    const schedule = await until(async () => {
      const found = await ask(whole, "/v1/schedules/broken");
      return found.error === undefined ? undefined : found;
    });
    assert.match(schedule.error, /nonsense|pattern|Cron/);
    assert.ok(Date.parse(schedule.retryAt) > Date.parse(schedule.nextAt));
    const [line] = await until(async () => {
      const plan = await planOf("broken", whole);
      return plan[0].error === undefined ? undefined : plan;
    });
    assert.equal(line.status, "planned");
    assert.ok(Date.parse(line.retryAt) > Date.parse(line.dueAt));
    const { rows } = await whole.db.query("select failures from carillon.schedules where key = 'broken'");
    assert.ok(rows[0].failures < 10, "and it is not tried all the time");
  } finally {
    await whole.stop();
  }
});

test("of every tenant some are fired, however many another has", async () => {
  const theirs = await service.makeKey({ tenant: "quiet", scopes: ["send", "read"] });
  for (let n = 0; n < 10; n++) {
    await putSchedule(`many-${n}`, { every: "P1D" });
    await putReminder(`many-${n}`, {});
  }
  await makeDue();
  await putSchedule("one", { every: "P1D" }, service, theirs);
  await putReminder("one", {}, service, theirs);
  await service.db.query("update carillon.schedules set next_at = now() where key = 'one'");
  await service.db.query("update carillon.reminder_plan set due_at = now() where key = 'one'");
  assert.equal(await fireSchedules(firingOn(service.db), 2), 3);
  assert.equal(await fireReminders(firingOn(service.db), 2), 3);
  const { data } = (await service.ask("GET", "/v1/schedules/one/runs", undefined, { key: theirs })).body;
  assert.equal(data[0].outcome, "sent");
  const { plan } = (await service.ask("GET", "/v1/reminders/one", undefined, { key: theirs })).body;
  assert.equal(plan[0].status, "sent");
});

const CHUNK = 40_000;
const people = (count: number) => Array.from({ length: count }, (_, n) => ({ userId: `user-${n}` }));
/** Six of these make a chunk. */
const large = (recipients: number) => ({
  channel: "console",
  recipients: people(recipients),
  content: { body: "x".repeat(6_000) },
});
const recipientsTold = async (): Promise<string[]> => {
  const { rows } = await service.db.query<{ u: string }>(
    "select user_id as u from carillon.notifications where length(request #>> '{content,body}') = 6000 order by user_id",
  );
  return rows.map(({ u }) => u);
};
const allOf = async (firing: ReturnType<typeof firingOn>) => {
  let done = 1;
  while (done > 0)
    done = (await fireSchedules(firing, 9)) + (await fireReminders(firing, 9)) + (await continueBroadcasts(firing));
};

test("no transaction takes more than its share, whatever is due together, and all are told once", async () => {
  for (let n = 0; n < 4; n++) await putReminder(`large-${n}`, { notification: large(20) });
  for (let n = 0; n < 8; n++) await putReminder(`small-${n}`, { notification: large(2) });
  await putSchedule("large", { every: "P1D", notification: large(20) });
  await makeDue();
  const calls: Accepted[] = [];
  await allOf(firingOn(service.db, { chunkBytes: CHUNK, acceptWithin: countingAccept(calls) }));
  assert.ok(Math.max(...calls.map(({ bytes }) => bytes)) <= CHUNK, JSON.stringify(calls));
  assert.ok(calls.length < 60, "and as few as hold them");
  for (let n = 0; n < 4; n++) {
    const [line] = await planOf(`large-${n}`);
    assert.deepEqual([line.status, new Set(line.notificationIds).size], ["sent", 20]);
    const { events } = await ask(service, `/v1/notifications/${line.notificationIds[19]}`);
    assert.ok(events.some(({ type }: { type: string }) => type === "reminder.due"));
  }
  const [run] = await runsOf("large");
  assert.deepEqual([run.outcome, run.notificationIds.length], ["sent", 20]);
  assert.equal((await recipientsTold()).length, 5 * 20 + 8 * 2);
  assert.deepEqual((await service.db.query("select from carillon.broadcasts")).rowCount, 0);
});

test("a crash between any two statements of a broadcast loses and doubles nothing", async () => {
  const sendAll = async (firing: ReturnType<typeof firingOn>) => {
    await fireReminders(firing, 9);
    while ((await continueBroadcasts(firing)) > 0);
  };
  for (let at = 1, isOver = false; !isOver; at++) {
    await service.db.query("delete from carillon.notifications");
    await putReminder("crash", { notification: large(7) });
    await makeDue();
    const cut = flakyPool(service.db, { at, when: "after" });
    await sendAll(firingOn(cut.pool, { chunkBytes: CHUNK })).catch(() => undefined);
    await untilUndone(service.db);
    isOver = cut.statements() < at;
    await sendAll(firingOn(service.db, { chunkBytes: CHUNK }));
    const [line] = await planOf("crash");
    assert.deepEqual([line.status, new Set(line.notificationIds).size], ["sent", 7], `after statement ${at}`);
    assert.deepEqual(
      await recipientsTold(),
      people(7).map(({ userId }) => userId),
      `after statement ${at}`,
    );
    await service.ask("DELETE", "/v1/reminders/crash");
  }
});

test("a broadcast goes on with what it began with when its reminder is changed, and ends when that is deleted", async () => {
  await putReminder("changed", { notification: large(13) });
  await makeDue();
  const firing = firingOn(service.db, { chunkBytes: CHUNK });
  await fireReminders(firing, 9);
  await continueBroadcasts(firing);
  assert.deepEqual(
    (await planOf("changed")).map(({ status }: { status: string }) => status),
    ["sending"],
  );
  const { at } = await ask(service, "/v1/reminders/changed");
  await putReminder("changed", { at, notification: { ...large(1), content: { body: "changed" } } });
  await allOf(firing);
  const [line] = await planOf("changed");
  assert.deepEqual([line.status, line.notificationIds.length], ["sent", 13]);

  await putReminder("deleted", { notification: large(13) });
  await makeDue();
  await fireReminders(firing, 9);
  await service.ask("DELETE", "/v1/reminders/deleted");
  assert.equal(await continueBroadcasts(firing), 0);
});

test("a notice that comes to absurdly much for all its recipients is refused, also when its texts are filled", async () => {
  const grows = {
    channel: "console",
    recipients: people(500),
    content: { body: "{{ key }}".repeat(400) },
  };
  const grown = await putReminder("grows", { notification: grows });
  assert.deepEqual([grown.status, grown.body.errors[0].path], [422, "/notification/recipients"]);
  const absurd = { channel: "console", recipients: people(500), content: { body: "x".repeat(240_000) } };
  for (const answer of [
    await putReminder("absurd", { notification: absurd }),
    await putSchedule("absurd", { every: "P1D", notification: absurd }),
  ]) {
    assert.equal(answer.status, 422);
    assert.equal(answer.body.errors[0].path, "/notification/recipients");
    assert.match(answer.body.errors[0].message, /at most 33554432 bytes/);
  }
  assert.equal((await service.ask("GET", "/v1/reminders/absurd")).status, 404);
});

/** One filter that takes most of a minute: Liquid looks at the time between tags only. */
const ENDLESS = `{{ "${"a,".repeat(1_000)}" | split: "," | where_exp: "i", "${"i != 'b' and ".repeat(5_000)}true" | size }}`;

test("a text that takes too long is refused, and one that is kept already is put off while the process goes on", async () => {
  const endless = { channel: "console", content: { body: ENDLESS } };
  const refused = await putReminder("endless", { notification: endless });
  assert.deepEqual([refused.status, refused.body.errors[0].path], [422, "/notification/content"]);
  await putReminder("endless", {});
  await service.db.query("update carillon.reminders set notice = $1", [JSON.stringify(endless)]);
  await putReminder("quick", { notification: { channel: "console", content: { body: "{{ key | upcase }}" } } });
  await makeDue();
  let beats = 0;
  const beating = setInterval(() => (beats += 1), 10);
  await fireReminders(firingOn(service.db), 9).finally(() => clearInterval(beating));
  assert.ok(beats > 3, `${beats} timers in a quarter of a second`);
  // A machine that is busy may have had no turn for it yet.
  const line = await until(async () => {
    await fireReminders(firingOn(service.db), 9);
    const [found] = await planOf("endless");
    return found.error ? found : undefined;
  });
  assert.deepEqual([line.status, line.error], ["planned", "takes longer than 250 ms"]);
  const [{ notificationIds }] = await planOf("quick");
  assert.equal((await ask(service, `/v1/notifications/${notificationIds[0]}`)).content.body, "QUICK");
});

test("a tenant whose firing takes long goes on in the next round, after the others", async () => {
  const theirs = await service.makeKey({ tenant: "patient", scopes: ["send", "read"] });
  for (const n of [1, 2, 3]) {
    await putSchedule(`slow-${n}`, { every: "P1D" });
    await putReminder(`slow-${n}`, {});
  }
  await putSchedule("one", { every: "P1D" }, service, theirs);
  await putReminder("one", {}, service, theirs);
  await makeDue();
  let nowMs = 0;
  const firing = firingOn(service.db, {
    monotonic: () => nowMs,
    fill: async (_, notice) => {
      nowMs += 400;
      return { notice };
    },
  });
  assert.deepEqual(
    [await fireSchedules(firing, 9), await fireReminders(firing, 9)],
    [3, 3],
    "two of the slow, and the other's",
  );
  assert.deepEqual([await fireSchedules(firing, 9), await fireReminders(firing, 9)], [1, 1]);
});

test("a line is sent in every round, however long it took to read", async () => {
  await putReminder("large", {});
  await makeDue();
  let nowMs = 0;
  const firing = firingOn(service.db, { monotonic: () => (nowMs += 600) });
  assert.equal(await fireReminders(firing, 9), 1);
});

test("a stop waits for what is being fired, not for all that is due", async () => {
  for (const n of [1, 2, 3]) {
    await putSchedule(`last-${n}`, { every: "P1D" });
    await putReminder(`last-${n}`, {});
  }
  await makeDue();
  let isStopping = false;
  const firing = firingOn(service.db, {
    isStopping: () => isStopping,
    fill: async (_, notice) => {
      isStopping = true;
      return { notice };
    },
  });
  assert.equal(await fireSchedules(firing, 9), 1);
  isStopping = false;
  assert.equal(await fireReminders(firing, 9), 1);
});

test("texts that a pattern could stumble over are judged in time that grows with their length", async () => {
  for (const body of [
    "{{".repeat(60_000),
    "{{ .".repeat(30_000),
    `{{ key | append: "${"<".repeat(100_000)}" | strip_html }}`,
  ]) {
    const answer = await putReminder("odd", { notification: { channel: "console", content: { body } } });
    assert.ok(answer.status === 422 || answer.status === 201, String(answer.status));
  }
  const body = `${"<mj-include ".repeat(20_000)}{{ a }}`;
  const stored = await service.ask("PUT", "/v1/templates/odd", { channel: "console", name: "odd", content: { body } });
  assert.equal(stored.status, 200);
});
