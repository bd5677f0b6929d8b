// Plans for dead letters: what is counted, what is left out, and that what is done is what was counted.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Dead, makeDead } from "../support/dead-letters.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  // Nobody claims: what was sent again stays where it is.
  service = await startService({ roles: ["api", "scheduler"] });
});
after(() => service.stop());

const ask = async (method: string, path: string, body?: unknown, status = method === "GET" ? 200 : undefined) => {
  const answer = await service.ask(method, path, body);
  assert.equal(answer.status, status ?? (path === "/v1/plans" ? 201 : 200), JSON.stringify(answer.body));
  return answer.body;
};
const plan = (body: object) => ask("POST", "/v1/plans", body);
const read = (id: string) => ask("GET", `/v1/plans/${id}`);
const ended = (id: string) =>
  until(async () => {
    const found = await read(id);
    return found.finishedAt ? found : undefined;
  });
const dead = (count: number, what: Dead = {}) => makeDead(service.db, count, what);
const retriedOf = async (ids: string[]): Promise<number[]> => {
  const { rows } = await service.db.query(
    `select (select count(*)::int from carillon.events e where e.notification_id = i and e.type = 'retried') as n
     from unnest($1::uuid[]) with ordinality as x(i, place) order by place`,
    [ids],
  );
  return rows.map(({ n }) => n);
};
const auditOf = async (id: string): Promise<string[]> => {
  const { data } = await ask("GET", `/v1/audit?object=plan:${id}`);
  return data.map(({ action }: { action: string }) => action).reverse();
};

test("a plan counts what fits its filter, and says what it leaves out and why", async () => {
  const fit = { provider: "counted" };
  await dead(7, fit);
  await dead(3, { ...fit, error: "HTTP 404" });
  await dead(5, { provider: "another" });
  await dead(2, { ...fit, expiresAt: "2020-01-01T00:00:00Z" });
  await dead(1, { ...fit, channel: "email", email: "Off@Example.com" });
  await ask("PUT", "/v1/suppressions/off%40example.com", { reason: "by hand" }, 200);
  const [early] = await dead(1, { ...fit, userId: "ada", templateId: "welcome" });
  const [other] = await dead(1, { userId: "ada", templateId: "welcome", provider: "log" });
  const [forgotten] = await dead(1, fit);
  await service.db.query("select carillon.blank(1, array[$1::uuid])", [forgotten]);
  await service.db.query("update carillon.events set type = 'attempt', to_status = 'sent' where notification_id = $1", [
    other,
  ]);

  const all = await plan({ kind: "requeue", filter: fit, rate: 5 });
  assert.equal(all.state, "ready");
  assert.equal(all.count, 10);
  assert.deepEqual(all.excluded, { expired: 2, suppressed: 1, reached: 1, forgotten: 1 });
  assert.deepEqual(all.estimate, { cost: 0, unpriced: 10, seconds: 2, rate: 5 });
  assert.deepEqual(all.progress, { done: 0, skipped: {}, remaining: 10 });

  const found = await plan({ kind: "requeue", filter: { ...fit, error: "http 404" } });
  assert.equal(found.count, 3);
  // Off the list goes what must not be sent, too.
  assert.equal((await plan({ kind: "purge", filter: fit })).count, 15);
  const ids = [early, other, forgotten, "0198c1d2-0000-7000-8000-000000000000"];
  assert.deepEqual((await plan({ kind: "requeue", ids })).excluded, { reached: 1, sent: 1, forgotten: 1, gone: 1 });
  const many = Array.from({ length: 10_000 }, (_, n) => `0198c1d2-0000-7000-8000-${String(n).padStart(12, "0")}`);
  assert.deepEqual((await plan({ kind: "requeue", ids: [...many.slice(1), early] })).excluded, {
    gone: 9_999,
    reached: 1,
  });
  for (const { planId } of (await ask("GET", "/v1/plans")).data) await ask("POST", `/v1/plans/${planId}/abort`);
});

test("what it costs is estimated by what sends cost before", async () => {
  await dead(4, { channel: "sms", provider: "dear" });
  const [id] = await dead(1, { channel: "sms", provider: "dear" });
  await service.db.query(
    "update carillon.events set to_status = 'sent', outcome = 'accepted', cost = 0.25 where notification_id = $1",
    [id],
  );
  const { estimate, planId } = await plan({ kind: "requeue", filter: { provider: "dear" } });
  assert.deepEqual([estimate.cost, estimate.unpriced], [1, 0]);
  await ask("POST", `/v1/plans/${planId}/abort`);
});

test("an applied plan sends again what it counted, and passes over what has changed since", async () => {
  const fit = { provider: "changing" };
  const ids = await dead(20, fit);
  const { planId, count } = await plan({ kind: "requeue", filter: fit });
  assert.equal(count, 20);
  const since = await dead(3, fit);
  const [first, second, third, fourth] = ids as [string, string, string, string];
  // One was sent again by hand; one so, and has failed again; one has expired; one is gone.
  await ask("POST", `/v1/notifications/${first}/retry`);
  await ask("POST", `/v1/notifications/${second}/retry`);
  await service.db.query("delete from carillon.ready where id = $1", [second]);
  await service.db.query(
    `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, provider)
     values ($1, 1, 'attempt', 'processing', 'failed', 2, 'changing')`,
    [second],
  );
  await service.db.query("update carillon.notifications set expires_at = carillon.now() where id = $1", [third]);
  await service.db.query("delete from carillon.notifications where id = $1", [fourth]);

  await ask("POST", `/v1/plans/${planId}/apply`, { rate: 1000 });
  const { state, progress } = await ended(planId);
  assert.equal(state, "done");
  assert.deepEqual(progress, {
    done: 16,
    skipped: { waiting: 1, changed: 1, expired: 1, gone: 1 },
    remaining: 0,
  });
  assert.deepEqual(await retriedOf(ids), [1, 1, 0, 0, ...Array(16).fill(1)]);
  assert.deepEqual(await retriedOf(since), [0, 0, 0]);
  assert.deepEqual(await auditOf(planId), ["plan.create", "plan.apply", "plan.finish"]);
  const { rows } = await service.db.query("select from carillon.plan_pages where plan = $1", [planId]);
  assert.equal(rows.length, 0);
});

test("a canary goes first, and the rest waits for a word", async () => {
  const fit = { provider: "canary" };
  const ids = await dead(12, fit);
  const { planId } = await plan({ kind: "requeue", filter: fit });
  await ask("POST", `/v1/plans/${planId}/continue`, undefined, 409);
  await ask("POST", `/v1/plans/${planId}/apply`, { canary: 5, continue: "soon" }, 422);
  await ask("POST", `/v1/plans/${planId}/apply`, { canary: 5 });
  const waiting = await until(async () => {
    const found = await read(planId);
    return found.state === "waiting" ? found : undefined;
  });
  assert.deepEqual(waiting.canary, { done: 5, standing: { queued: 5 } });
  assert.equal(waiting.progress.remaining, 7);
  await ask("POST", `/v1/plans/${planId}/apply`, {}, 409);
  await ask("POST", `/v1/plans/${planId}/continue`);
  assert.equal((await ended(planId)).progress.done, 12);
  assert.deepEqual(await retriedOf(ids), Array(12).fill(1));
  assert.deepEqual(await auditOf(planId), ["plan.create", "plan.apply", "plan.continue", "plan.finish"]);
});

test("with continue: sent it goes on by itself once its canaries were sent, and not where one has failed", async () => {
  const end = async (id: string, status: string) => {
    await service.db.query("delete from carillon.ready where id = $1", [id]);
    await service.db.query(
      `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt)
       values ($1, 1, 'attempt', 'processing', $2::carillon.status, 1)`,
      [id, status],
    );
  };
  for (const [status, state, done] of [
    ["sent", "done", 6],
    ["failed", "waiting", 2],
  ] as const) {
    const fit = { provider: `canaries that are ${status}` };
    const [one = "", two = ""] = await dead(6, fit);
    const { planId } = await plan({ kind: "requeue", filter: fit });
    await ask("POST", `/v1/plans/${planId}/apply`, { canary: 2, continue: "sent" });
    await until(async () => ((await read(planId)).state === "waiting" ? true : undefined));
    await end(one, "sent");
    await end(two, status);
    await until(async () => {
      const { rows } = await service.db.query("select goes_on, state from carillon.plans where id = $1", [planId]);
      return rows[0].state === "done" || !rows[0].goes_on ? true : undefined;
    });
    const found = await read(planId);
    assert.deepEqual([found.state, found.progress.done], [state, done]);
    if (state === "waiting") await ask("POST", `/v1/plans/${planId}/abort`);
  }
});

test("nothing more is sent again once an abort has answered", async () => {
  const fit = { provider: "aborted" };
  await dead(500, fit);
  const { planId } = await plan({ kind: "requeue", filter: fit, rate: 40 });
  await ask("POST", `/v1/plans/${planId}/apply`);
  await until(async () => ((await read(planId)).progress.done > 0 ? true : undefined));
  const { progress, state } = await ask("POST", `/v1/plans/${planId}/abort`);
  assert.equal(state, "aborted");
  assert.ok(progress.done < 500);
  // Another one is carried out from its beginning to its end: the aborted one would have had its turns.
  await dead(60, { provider: "after it" });
  const other = await plan({ kind: "requeue", filter: { provider: "after it" } });
  await ask("POST", `/v1/plans/${other.planId}/apply`);
  await ended(other.planId);
  const { rows } = await service.db.query(
    `select count(*)::int as n from carillon.ready r join carillon.events e on e.notification_id = r.id where e.provider = 'aborted'`,
  );
  assert.equal(rows[0].n, progress.done);
  assert.equal((await read(planId)).progress.done, progress.done);
  await ask("POST", `/v1/plans/${planId}/abort`, undefined, 409);
  assert.deepEqual(await auditOf(planId), ["plan.create", "plan.apply", "plan.abort"]);
});

test("a rate is kept: no more than so many a second, and a turn more", async () => {
  const fit = { provider: "slow" };
  await dead(30, fit);
  const { planId } = await plan({ kind: "requeue", filter: fit });
  await ask("POST", `/v1/plans/${planId}/apply`, { rate: 20 });
  await ended(planId);
  const { rows } = await service.db.query(
    `select extract(epoch from max(e.at) - min(e.at))::float8 as seconds from carillon.events e
     where e.type = 'retried' and e.notification_id in (select notification_id from carillon.events where provider = 'slow')`,
  );
  // Six turns of five: the last begins five turns of a quarter of a second after the first.
  assert.ok(rows[0].seconds >= 1.25, `30 went in ${rows[0].seconds} s`);
});

test("purged, dead letters leave the list and stay failed: the ledger balances and nobody is told of a second failure", async () => {
  const fit = { provider: "purged" };
  const ids = await dead(8, fit);
  const ledger = await ask("GET", "/v1/ledger");
  const facts = async () =>
    (await service.db.query("select coalesce(sum(size), 0)::int as n from carillon.feed")).rows[0].n;
  const told = await facts();
  const { planId } = await plan({ kind: "purge", filter: fit });
  await ask("POST", `/v1/plans/${planId}/apply`, { rate: 1000 });
  assert.equal((await ended(planId)).progress.done, 8);

  assert.deepEqual((await ask("GET", "/v1/dead-letters?provider=purged")).data, []);
  assert.equal((await plan({ kind: "requeue", filter: fit })).count, 0);
  const record = await ask("GET", `/v1/notifications/${ids[0]}`);
  assert.equal(record.status, "failed");
  const { at: _, ...last } = record.events.at(-1);
  assert.deepEqual(last, { type: "purged", from: "failed", to: "failed", detail: { plan: planId } });
  assert.deepEqual(await ask("GET", "/v1/ledger"), ledger);
  assert.equal(await facts(), told);
  // One of them all the same: by hand it can be sent again, and may become a dead letter again.
  await ask("POST", `/v1/notifications/${ids[0]}/retry`);
});

test("plans are their tenant's alone, few at a time, and to purge needs an administrator", async () => {
  const theirs = await service.makeKey({ tenant: "other", scopes: ["send", "read"] });
  const mine = await plan({ kind: "requeue", filter: { provider: "nobody" } });
  const asThem = (method: string, path: string, body?: unknown) => service.ask(method, path, body, { key: theirs });
  for (const [method, path] of [
    ["GET", ""],
    ["POST", "/apply"],
    ["POST", "/continue"],
    ["POST", "/abort"],
  ] as const) {
    assert.equal((await asThem(method, `/v1/plans/${mine.planId}${path}`)).status, 404);
  }
  assert.deepEqual((await asThem("GET", "/v1/plans")).body.data, []);
  const [id] = await dead(1);
  const { body: planned } = await asThem("POST", "/v1/plans", { kind: "requeue", ids: [id] });
  assert.deepEqual([planned.count, planned.excluded], [0, { gone: 1 }]);
  assert.equal((await asThem("POST", "/v1/plans", { kind: "purge", filter: {} })).status, 403);

  for (let n = 1; n < 10; n++) {
    assert.equal((await asThem("POST", "/v1/plans", { kind: "requeue", filter: {} })).status, 201);
  }
  const refused = await asThem("POST", "/v1/plans", { kind: "requeue", filter: {} });
  assert.deepEqual([refused.status, refused.body.code], [409, "TOO_MANY_PLANS"]);
  assert.equal((await asThem("POST", `/v1/plans/${planned.planId}/abort`)).status, 200);
  assert.equal((await asThem("POST", "/v1/plans", { kind: "requeue", filter: {} })).status, 201);
  // Others make theirs all the same.
  assert.equal((await plan({ kind: "requeue", filter: { provider: "nobody" } })).state, "ready");
});

test("what is not a plan is refused, and nothing is made of it", async () => {
  const before = (await ask("GET", "/v1/plans")).data.length;
  for (const body of [
    { kind: "requeue" },
    { kind: "requeue", filter: {}, ids: ["0198c1d2-0000-7000-8000-000000000000"] },
    { kind: "send", filter: {} },
    { kind: "requeue", filter: { colour: "red" } },
    { kind: "requeue", filter: {}, rate: 0 },
    { kind: "requeue", ids: [] },
  ]) {
    await ask("POST", "/v1/plans", body, 422);
  }
  assert.equal((await ask("GET", "/v1/plans")).data.length, before);
});

test("a plan that nobody applies lapses", async () => {
  const { planId } = await plan({ kind: "requeue", filter: { provider: "nobody" } });
  await service.db.query("update carillon.plans set turn_at = carillon.now() where id = $1", [planId]);
  await service.ask("POST", "/v1/plans", { kind: "requeue", filter: { provider: "nobody" } });
  // The scheduler looks at once when something is applied.
  const other = (await ask("GET", "/v1/plans")).data.find(({ state }: { state: string }) => state === "ready");
  await ask("POST", `/v1/plans/${other.planId}/apply`);
  assert.equal((await ended(planId)).state, "lapsed");
  await ask("POST", `/v1/plans/${planId}/apply`, {}, 409);
});

test("a forgotten user's plans no longer name them", async () => {
  const { planId } = await plan({ kind: "requeue", filter: { userId: "bob-to-forget" } });
  await ask("DELETE", "/v1/users/bob-to-forget", undefined, 202);
  await until(async () => ((await ask("GET", "/v1/users/bob-to-forget/deletion")).state === "done" ? true : undefined));
  assert.deepEqual((await read(planId)).filter, {});
});

test("a requeue is a plan that was carried out at once: of what can be sent, also of what a plan leaves out", async () => {
  const fit = { provider: "requeued" };
  const many = await dead(3, fit);
  const [late = ""] = await dead(1, { ...fit, expiresAt: "2020-01-01T00:00:00Z" });
  const [forgotten = ""] = await dead(1, fit);
  await service.db.query("select carillon.blank(1, array[$1::uuid])", [forgotten]);
  const requeue = (body: object) => ask("POST", "/v1/dead-letters/requeue", body);
  const plans = async () => (await ask("GET", "/v1/plans")).data;

  const before = (await plans()).length;
  assert.equal((await requeue({ filter: { provider: "nobody at all" } })).matched, 0);
  assert.equal((await requeue({ filter: fit, dryRun: true })).matched, 4);
  assert.equal((await plans()).length, before, "what does nothing leaves nothing");

  const first = await requeue({ filter: fit, limit: 2 });
  assert.deepEqual([first.requeued, first.remaining], [2, 2]);
  const rest = await requeue({ filter: fit, cursor: first.nextCursor });
  assert.deepEqual([rest.requeued, rest.remaining, rest.nextCursor], [2, 0, null]);
  const [second, one] = await plans();
  assert.deepEqual([one.kind, one.state, one.count, one.truncated, one.progress.done], ["retry", "done", 2, true, 2]);
  assert.deepEqual([second.count, second.truncated], [2, false]);
  assert.deepEqual([one.excluded, second.excluded], [{ forgotten: 1 }, {}]);
  assert.deepEqual(second.filter, fit);
  assert.deepEqual(await retriedOf([...many, late, forgotten]), [1, 1, 1, 1, 0]);

  // By ids also what is off the list.
  const [purged = ""] = await dead(1, fit);
  const { planId } = await plan({ kind: "purge", ids: [purged] });
  await ask("POST", `/v1/plans/${planId}/apply`);
  await ended(planId);
  const named = { ids: [purged, purged.toUpperCase(), forgotten, ...many] };
  assert.deepEqual((await requeue({ ...named, dryRun: true })).matched, 1);
  assert.deepEqual((await requeue(named)).requeued, 1);
  const [last] = await plans();
  assert.deepEqual([last.count, last.excluded], [1, { forgotten: 1, waiting: 3 }]);
  assert.equal((await service.ask("POST", `/v1/plans/${last.planId}/abort`)).status, 409);
});
