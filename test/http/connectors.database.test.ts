// Sources and sinks over HTTP: how they stand, paused and resumed, sent back to an instant; and what they refused.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { comparePositions, writtenPosition } from "#domain/fact.ts";
import { findFeedEnd } from "#record/feed-places.ts";
import { findFollower, moveFollower, startFollower } from "#record/followers.ts";
import {
  countCarried,
  ensureConnector,
  forgetRefusals,
  isConnectorPaused,
  keepRefusals,
  listRefusals,
  noteConnectorFailure,
  touchConnector,
} from "#store/connectors.ts";
import { lead, resign } from "#store/leadership.ts";
import { email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
let stranger: string;
before(async () => {
  service = await startService({
    sources: { orders: { type: "kafka", brokers: ["127.0.0.1:1"], topic: "orders" } },
    sinks: {
      bus: { type: "rabbitmq", url: "amqp://user:hush@127.0.0.1:1" },
      warehouse: { type: "clickhouse", url: "http://127.0.0.1:1" },
    },
  });
  stranger = await service.makeKey({ tenant: "stranger", scopes: ["admin"] });
});
after(() => service.stop());

const get = async (path: string, key?: string) => {
  const { status, body } = await service.ask("GET", path, undefined, key === undefined ? {} : { key });
  assert.equal(status, 200, JSON.stringify(body));
  return body.data;
};
const named = async (kind: "sources" | "sinks", name: string) =>
  (await get(`/v1/${kind}`)).find((one: { name: string }) => one.name === name);
const sinkOf = (name: string) => named("sinks", name);
const BUS = { kind: "sink", name: "bus" } as const;
const ORDERS = { kind: "source", name: "orders" } as const;

test("what is configured and what only has a row are both shown, and neither is said to be the other", async () => {
  const fresh = { state: "idle", configured: true, carried: 0, refused: 0 };
  const lag = { ms: 0, facts: 0 };
  assert.deepEqual(await get("/v1/sinks"), [
    { name: "bus", type: "rabbitmq", ...fresh, lag },
    { name: "warehouse", type: "clickhouse", ...fresh, lag },
  ]);
  assert.deepEqual(await get("/v1/sources"), [{ name: "orders", type: "kafka", ...fresh, lag: {}, offsets: [] }]);
  await ensureConnector(service.db, { kind: "sink", name: "gone" }, "kafka");
  assert.deepEqual(await sinkOf("gone"), { name: "gone", type: "kafka", ...fresh, configured: false, lag });
});

test("a sink runs while a process has its lease, fails until it goes on, and counts what it carried", async () => {
  const { db } = service;
  await ensureConnector(db, BUS, "rabbitmq");
  await lead(db, "sink bus", "a process", 60_000);
  assert.equal((await sinkOf("bus")).state, "running");
  await noteConnectorFailure(db, BUS, "connect ECONNREFUSED");
  const { state, since, error } = await sinkOf("bus");
  assert.deepEqual([state, error], ["failing", "connect ECONNREFUSED"]);
  await noteConnectorFailure(db, BUS, "the channel was closed");
  assert.equal((await sinkOf("bus")).since, since, "since the first that failed");
  await countCarried(db, BUS, { carried: 7, refused: 2 });
  const going = await sinkOf("bus");
  assert.deepEqual([going.state, going.carried, going.refused, going.error], ["running", 7, 2, undefined]);
  assert.ok(Date.parse(going.movedAt) > 0);
  await resign(db, "sink bus", "a process");
  assert.equal((await sinkOf("bus")).state, "idle");
});

test("a source runs while a process says so, and shows its offsets and what waits behind them", async () => {
  const { db } = service;
  await ensureConnector(db, ORDERS, "kafka");
  await touchConnector(db, ORDERS);
  await db.query(
    "insert into carillon.source_offsets (source, topic, partition, next, ends) values ('orders', 'o', 1, 5, 9), ('orders', 'o', 0, 3, 3)",
  );
  const { state, lag, offsets } = await named("sources", "orders");
  assert.deepEqual([state, lag], ["running", { messages: 4 }]);
  assert.deepEqual(
    offsets.map(({ movedAt, ...offset }: { movedAt: string }) => offset),
    [
      { topic: "o", partition: 0, next: 3, waiting: 0 },
      { topic: "o", partition: 1, next: 5, waiting: 4 },
    ],
  );
  await db.query("update carillon.source_offsets set ends = null where partition = 1");
  assert.deepEqual((await named("sources", "orders")).lag, {}, "not known of all is not known");
  await db.query("update carillon.connectors set seen_at = clock_timestamp() - interval '1 hour'");
  assert.equal((await named("sources", "orders")).state, "idle");
});

test("how far a sink is behind is told in time and in facts, counted from within a commit", async () => {
  const { db } = service;
  await startFollower(db, "sink warehouse", await findFeedEnd(db));
  const notifications = Array.from({ length: 5 }, (_, n) => email(n));
  await service.ask("POST", "/v1/notifications/batch", { notifications });
  const behind = await until(async () => {
    const { lag } = await sinkOf("warehouse");
    return lag.facts >= 5 ? lag : undefined;
  });
  assert.equal(behind.facts, 5);
  assert.ok(behind.ms >= 0);
  const { rows } = await db.query(
    "select epoch, key::float8 as key, seq::float8 as seq from carillon.followers where name = 'sink warehouse'",
  );
  await moveFollower(db, "sink warehouse", { ...rows[0], ordinal: 2 });
  assert.ok((await sinkOf("warehouse")).lag.facts < 5);
  await moveFollower(db, "sink warehouse", await findFeedEnd(db));
  assert.deepEqual((await sinkOf("warehouse")).lag, { ms: 0, facts: 0 });
});

for (const [kinds, name, which] of [
  ["sources", "orders", ORDERS],
  ["sinks", "warehouse", { kind: "sink", name: "warehouse" }],
] as const) {
  test(`${kinds} are paused for a reason, which may change, and resumed; whether they ever ran or not`, async () => {
    await service.db.query("delete from carillon.connectors where name = $1", [name]);
    const paused = await service.ask("POST", `/v1/${kinds}/${name}/pause`, { reason: "a release" });
    assert.equal(paused.status, 200, JSON.stringify(paused.body));
    assert.deepEqual([paused.body.state, paused.body.reason], ["paused", "a release"]);
    assert.ok(paused.body.since && paused.body.pausedBy);
    assert.equal(await isConnectorPaused(service.db, which), true);
    const again = await service.ask("POST", `/v1/${kinds}/${name}/pause`, { reason: "a longer one" });
    assert.equal(again.body.reason, "a longer one");
    assert.equal(again.body.since, paused.body.since, "since it was paused first");
    for (let n = 0; n < 2; n++) {
      const { status, body } = await service.ask("POST", `/v1/${kinds}/${name}/resume`);
      assert.deepEqual([status, body.state, body.reason, body.since], [200, "idle", undefined, undefined]);
    }
    assert.equal(await isConnectorPaused(service.db, which), false);
    const actions = (await get(`/v1/audit?object=${which.kind}:${name}`)).map(
      ({ action }: { action: string }) => action,
    );
    assert.deepEqual(actions, [`${which.kind}.resume`, `${which.kind}.pause`, `${which.kind}.pause`]);
    assert.equal((await service.ask("POST", `/v1/${kinds}/nobody/pause`, { reason: "r" })).status, 404);
    assert.equal((await service.ask("POST", `/v1/${kinds}/nobody/resume`)).status, 404);
    assert.equal((await service.ask("POST", `/v1/${kinds}/${name}/pause`, { reason: " " })).status, 422);
  });
}

test("a sink is sent back to an instant, never forwards, and only as far as the feed goes", async () => {
  const { db } = service;
  const replay = (name: string, since: string) => service.ask("POST", `/v1/sinks/${name}/replay`, { since });
  await service.ask("POST", "/v1/notifications", email());
  const end = await until(async () => {
    const position = await findFeedEnd(db);
    return position.key > 0 ? position : undefined;
  });
  await startFollower(db, "sink bus", end);
  await moveFollower(db, "sink bus", end);
  const back = await replay("bus", "2020-01-01T00:00:00Z");
  assert.deepEqual([back.status, back.body.moved], [200, true], JSON.stringify(back.body));
  const moved = await findFollower(db, ["sink bus"]);
  assert.ok(moved && comparePositions(moved, end) < 0);
  assert.equal(back.body.next, writtenPosition(moved));
  const ahead = await replay("bus", "2099-01-01T00:00:00Z");
  assert.deepEqual([ahead.status, ahead.body], [200, { next: back.body.next, moved: false }]);
  await db.query("update carillon.epochs set forgotten_at = carillon.now()");
  const lost = await replay("bus", "2020-01-01T00:00:00Z");
  assert.deepEqual([lost.status, lost.body.code], [410, "RESET"]);
  assert.match(lost.body.next, /^\d+:0:0:0$/);
  assert.deepEqual(await findFollower(db, ["sink bus"]), moved);
  assert.equal((await replay("nobody", "2099-01-01T00:00:00Z")).status, 404);
  assert.equal(await findFollower(db, ["sink nobody"]), undefined);
  assert.equal((await replay("bus", "yesterday")).status, 422);
});

test("a sink that was taken out is forgotten with its place, and none that is configured or run", async () => {
  const { db } = service;
  const left = { kind: "sink", name: "left" } as const;
  const forget = async (name: string) => {
    const { status, body } = await service.ask("DELETE", `/v1/sinks/${name}`);
    return [status, body.code];
  };
  await ensureConnector(db, left, "kafka");
  await startFollower(db, "sink left", await findFeedEnd(db));
  await lead(db, "sink left", "a process", 600_000);
  assert.deepEqual(await forget("left"), [409, "SINK_IN_USE"]);
  assert.deepEqual(await forget("bus"), [409, "SINK_IN_USE"]);
  assert.ok(await findFollower(db, ["sink left"]));
  await resign(db, "sink left", "a process");
  assert.deepEqual(await forget("left"), [204, undefined]);
  assert.equal(await findFollower(db, ["sink left"]), undefined);
  assert.equal(await sinkOf("left"), undefined);
  assert.deepEqual(await forget("left"), [404, "NOT_FOUND"]);
});

test("sources and sinks are the deployment's: no other tenant's administrator sees or changes them", async () => {
  const calls = [
    ["GET", "/v1/sources"],
    ["GET", "/v1/sinks"],
    ["POST", "/v1/sources/orders/pause", { reason: "r" }],
    ["POST", "/v1/sources/orders/resume"],
    ["POST", "/v1/sinks/bus/pause", { reason: "r" }],
    ["POST", "/v1/sinks/bus/resume"],
    ["POST", "/v1/sinks/bus/replay", { since: "2020-01-01T00:00:00Z" }],
    ["POST", "/v1/sinks/nobody/pause", { reason: "r" }],
    ["DELETE", "/v1/sinks/gone"],
  ] as const;
  const reader = await service.makeKey({ scopes: ["read", "send"] });
  for (const key of [stranger, reader]) {
    for (const [method, path, body] of calls) {
      const answer = await service.ask(method, path, body, { key });
      assert.deepEqual([answer.status, answer.body.code], [403, "FORBIDDEN"], `${method} ${path}`);
    }
  }
});

test("a tenant sees what was refused of its own, the operator all of it, page by page and by name", async () => {
  const { db } = service;
  const { rows } = await db.query<{ id: number }>("select id from carillon.tenants where name = 'stranger'");
  const tenant = rows[0]?.id as number;
  const faults = [{ path: "/channel", message: "must be there" }];
  const refusal = (place: string, whose?: number) => ({ place, code: "VALIDATION_FAILED", faults, tenant: whose });
  await keepRefusals(db, ORDERS, [refusal("orders/0/1"), refusal("orders/0/2", tenant), refusal("orders/0/3", 1)]);
  await keepRefusals(db, BUS, [refusal("id sent", tenant)]);
  const places = async (path: string, key?: string) =>
    (await get(`/v1/refusals${path}`, key)).map(({ place }: { place: string }) => place);
  assert.deepEqual(await places(""), ["id sent", "orders/0/3", "orders/0/2", "orders/0/1"]);
  assert.deepEqual(await places("", stranger), ["id sent", "orders/0/2"]);
  assert.deepEqual(await places("?kind=sink&name=bus"), ["id sent"]);
  assert.deepEqual(await places("?name=orders", stranger), ["orders/0/2"]);
  const reader = await service.makeKey({ scopes: ["read"] });
  assert.deepEqual(await places("", reader), ["orders/0/3"], "only administrators see those of others");
  const sender = await service.makeKey({ scopes: ["send"] });
  assert.equal((await service.ask("GET", "/v1/refusals", undefined, { key: sender })).status, 403);

  const seen: string[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const { body } = await service.ask("GET", `/v1/refusals?limit=3${cursor && `&cursor=${cursor}`}`);
    seen.push(...body.data.map(({ place }: { place: string }) => place));
    cursor = body.nextCursor;
  }
  assert.deepEqual(seen, ["id sent", "orders/0/3", "orders/0/2", "orders/0/1"]);
  const [latest] = await get("/v1/refusals?limit=1");
  const { id, at, ...told } = latest;
  assert.ok(id && at);
  const said = { kind: "sink", name: "bus", tenant: "stranger", place: "id sent", code: "VALIDATION_FAILED" };
  assert.deepEqual(told, { ...said, errors: faults });
});

test("health and figures name those that fail, that nobody runs, or that are paused, and say nothing of why", async () => {
  const { db } = service;
  const part = async () => {
    const { status, body } = await service.ask("GET", "/health", undefined, { key: null });
    assert.equal(status, 200, "degraded, never down");
    return body.checks.find(({ name }: { name: string }) => name === "connectors");
  };
  const figures = async () => (await service.ask("GET", "/metrics", undefined, { key: null })).body as string;
  await db.query("delete from carillon.connectors");
  const idle = await part();
  assert.deepEqual(
    [idle.healthy, idle.degraded, idle.detail],
    [true, true, "run by no process: source orders, sink bus, sink warehouse"],
  );
  assert.match(await figures(), /^connectors_idle\{kind="sink",name="bus"\} 1$/m);
  await ensureConnector(db, ORDERS, "kafka");
  await touchConnector(db, ORDERS);
  for (const name of ["bus", "warehouse"]) {
    await ensureConnector(db, { kind: "sink", name }, "kafka");
    await lead(db, `sink ${name}`, "a process", 600_000);
  }
  await noteConnectorFailure(db, BUS, "at planted-host");
  await service.ask("POST", "/v1/sinks/warehouse/pause", { reason: "planted-reason" });
  // Of one that is no longer configured, and that nobody runs, nobody needs to hear.
  await ensureConnector(db, { kind: "sink", name: "gone" }, "kafka");
  await noteConnectorFailure(db, { kind: "sink", name: "gone" }, "long ago");
  const failing = await part();
  assert.deepEqual(
    [failing.degraded, failing.detail],
    [true, "failing: sink bus; paused: sink warehouse; running: source orders"],
  );
  const text = await figures();
  assert.match(text, /^connectors_failing\{kind="sink",name="bus"\} 1$/m);
  assert.match(text, /^connectors_failing\{kind="source",name="orders"\} 0$/m);
  assert.match(text, /^connectors_paused\{kind="sink",name="warehouse"\} 1$/m);
  assert.doesNotMatch(text, /planted|name="gone"/);
  await noteConnectorFailure(db, BUS, undefined);
  const well = await part();
  assert.deepEqual(
    [well.degraded, well.detail],
    [undefined, "paused: sink warehouse; running: source orders, sink bus"],
  );
});

test("refusals are forgotten with the feed", async () => {
  const { db } = service;
  const count = async () => (await listRefusals(db, { limit: 200 })).length;
  const refusal = { place: "orders/1/1", code: "VALIDATION_FAILED", faults: [] };
  await keepRefusals(db, ORDERS, [refusal, refusal, refusal]);
  await db.query("update carillon.refusals set at = carillon.now() - interval '8 days' where place = 'orders/1/1'");
  const before = await count();
  assert.equal(await forgetRefusals(db, 7, 2), 2);
  assert.equal(await forgetRefusals(db, 7, 2), 1);
  assert.equal(await forgetRefusals(db, 7, 2), 0);
  assert.equal(await count(), before - 3);
});
