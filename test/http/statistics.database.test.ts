// GET /v1/statistics, the ledger and the queue, by the tallies.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createClient } from "#client/client.ts";
import { foldTallies } from "#steps/planned/fold-tallies.ts";
import { ask, email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService();
  await fold();
});
after(() => service.stop());

const fold = () =>
  until(async () => {
    const round = await foldTallies(service.db);
    const { rows } = await service.db.query("select from carillon.untallied limit 1");
    return round?.isAtEnd && rows.length === 0 ? true : undefined;
  });
const send = async (request: object = {}, key = service.key) =>
  (await service.ask("POST", "/v1/notifications", { ...email(), ...request }, { key })).body.notificationId as string;

/** As a worker would have settled it. */
async function settle(id: string, to: string, { outcome = "accepted", provider = "ses", ms = 40, tenant = 1 } = {}) {
  await service.db.query("delete from carillon.ready where id = $1", [id]);
  await service.db.query(
    `insert into carillon.events (notification_id, tenant, type, from_status, to_status, attempt, outcome, provider, latency_ms, cost)
     values ($1, $2, 'attempt', 'processing', $3, 1, $4, $5, $6, 0.0001)`,
    [id, tenant, to, outcome, provider, ms],
  );
}

test("what happened is told by channel, priority, provider, status and outcome, with success, cost and latency", async () => {
  const ids = await Promise.all([send(), send(), send({ priority: "urgent" }), send()]);
  const [a = "", b = "", c = "", d = ""] = ids;
  await settle(a, "sent", { ms: 12 });
  await settle(b, "sent", { ms: 14 });
  await settle(c, "failed", { outcome: "rejected", provider: "smtp", ms: 600 });
  await settle(d, "expired", { outcome: "expired", provider: "smtp" });
  await fold();
  const client = createClient({ url: service.url, key: service.key });
  const { data, isComplete } = await client.statistics({ by: "provider" });
  assert.equal(isComplete, true);
  const [ses, smtp, none] = data;
  assert.deepEqual([ses?.provider, ses?.sent, ses?.attempts, ses?.success, ses?.cost], ["ses", 2, 2, 1, 0.0002]);
  assert.ok((ses?.latencyMs?.p50 ?? 0) >= 10 && (ses?.latencyMs?.p99 ?? 0) <= 15, JSON.stringify(ses));
  assert.deepEqual([smtp?.failed, smtp?.expired, smtp?.success], [1, 1, 0]);
  assert.deepEqual([none?.provider, none?.accepted, none?.success, none?.latencyMs], [null, 4, null, null]);

  const steps = await client.statistics({ step: "PT1H", by: "priority,channel" });
  assert.deepEqual(
    steps.data.map(({ priority, channel, accepted }) => [priority, channel, accepted]),
    [
      ["urgent", "email", 1],
      ["normal", "email", 3],
    ],
  );
  assert.ok(steps.data.every(({ at = "" }) => /:00:00\.000Z$/.test(at)));
  const { data: statuses } = await client.statistics({ by: "status,outcome" });
  assert.deepEqual(
    statuses.map(({ status, outcome, attempts }) => [status, outcome, attempts]),
    [
      ["expired", "expired", 1],
      ["failed", "rejected", 1],
      ["sent", "accepted", 2],
      [null, null, 0],
    ],
  );
});

test("a tenant sees its own, and the default tenant's administrators all by tenant", async () => {
  const key = await service.makeKey({ tenant: "other", scopes: ["send", "read", "admin"] });
  await send({}, key);
  await fold();
  const own = await service.ask("GET", "/v1/statistics", undefined, { key });
  assert.deepEqual([own.body.data.length, own.body.data[0].accepted], [1, 1]);
  const all = await ask(service, "/v1/statistics?by=tenant");
  assert.deepEqual(
    all.data.map(({ tenant, accepted }: { tenant: string; accepted: number }) => [tenant, accepted]),
    [
      ["default", 4],
      ["other", 1],
    ],
  );
  const reader = await service.makeKey({ scopes: ["read"] });
  for (const one of [key, reader]) {
    const refused = await service.ask("GET", "/v1/statistics?by=channel,tenant", undefined, { key: one });
    assert.deepEqual([refused.status, refused.body.code], [403, "FORBIDDEN"]);
  }
});

test("bad ranges, steps and groups are refused with what is wrong with them", async () => {
  for (const [query, path] of [
    ["since=2020-01-01T00:00:00Z&step=PT1M", "/since"],
    ["since=2020-01-01T00:00:00Z", "/since"],
    ["until=2020-01-01T00:00:00Z&since=2021-01-01T00:00:00Z", "/until"],
    ["until=2999-01-01T00:00:00Z&step=P1D&since=2030-01-01T00:00:00Z", "/step"],
    ["step=PT2M", "/step"],
    ["by=user", "/by"],
  ] as const) {
    const { status, body } = await service.ask("GET", `/v1/statistics?${query}`);
    assert.deepEqual([status, body.errors[0].path], [422, path], query);
  }
});

test("the ledger is exact whatever is counted already, and keeps what retention drops", async () => {
  const key = await service.makeKey({ tenant: "ledger", scopes: ["send", "read"] });
  const ledger = async () => (await service.ask("GET", "/v1/ledger", undefined, { key })).body;
  const id = await send({}, key);
  const { rows } = await service.db.query("select tenant from carillon.notifications where id = $1", [id]);
  const { tenant } = rows[0];
  assert.deepEqual([(await ledger()).accepted, (await ledger()).waiting, (await ledger()).balanced], [1, 1, true]);
  await fold();
  await send({}, key);
  await settle(id, "failed", { tenant });
  const half = await ledger();
  assert.deepEqual([half.accepted, half.waiting, half.failed, half.balanced, half.isEstimate], [2, 1, 1, true, false]);
  await fold();
  assert.deepEqual(await ledger(), half);
  await service.db.query("delete from carillon.events where notification_id = $1", [id]);
  await service.db.query("delete from carillon.notifications where id = $1", [id]);
  assert.deepEqual(await ledger(), half);
  // What somebody takes out of the queue behind everybody's back shows.
  await service.db.query("delete from carillon.ready where tenant = $1", [tenant]);
  assert.equal((await ledger()).balanced, false);
});
