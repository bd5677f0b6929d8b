// What a source has read is kept together with how far it has come: all of it, once, and what is refused beside it.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type Batch, MOST_HEADER_BYTES } from "#sources/source.ts";
import type { KeepWorld } from "#steps/brokers/keep-batch.ts";
import { inTransaction } from "#store/connection/database.ts";
import { ensureTenant } from "#store/tenants.ts";
import { flakyPool } from "../support/flaky-pool.ts";
import { acceptedBodies, batchOf, type Given, keeperOn, keepNow, messageOf, request } from "../support/keeping.ts";
import { type Service, startService } from "../support/service.ts";

let service: Service;
let sources = 0;
before(async () => {
  service = await startService();
});
after(() => service.stop());
afterEach(() => service.db.query("delete from carillon.notifications; delete from carillon.refusals"));

/** A source of its own for each test. */
const keeper = (more: Partial<KeepWorld> = {}) => keeperOn(service.db, `source-${++sources}`, more);
const all = (given: readonly Given[], from = 0) => batchOf(given.map((one, n) => messageOf(from + n, one)));
const bodies = () => acceptedBodies(service.db);
const refusals = async () => {
  const { rows } = await service.db.query("select place, code, faults, tenant from carillon.refusals order by id");
  return rows;
};
const counts = async () => {
  const { rows } = await service.db.query(
    "select carried::int, refused::int, moved_at is not null as moved from carillon.connectors where name = $1",
    [`source-${sources}`],
  );
  return rows[0];
};
const requestsOf = async () =>
  (await service.db.query("select request, tenant from carillon.notifications order by id")).rows;

test("what is good is accepted in order, what is not is refused with every fault, and the place moves past both", async () => {
  const source = await keeper();
  const batch = all(
    [{}, { value: "{" }, { value: { channel: "pigeon", content: {}, more: 1 } }, { value: null }, {}],
    7,
  );
  const kept = await keepNow(source, batch);
  assert.equal(kept.kind, "moved");
  assert.deepEqual(await bodies(), ["number 7", "number 11"]);
  const [malformed, invalid] = await refusals();
  assert.deepEqual([malformed.place, malformed.code], ["requests/0/8", "MALFORMED_JSON"]);
  assert.deepEqual([invalid.place, invalid.code], ["requests/0/9", "VALIDATION_FAILED"]);
  assert.deepEqual(
    invalid.faults.map(({ path }: { path: string }) => path),
    ["/channel", "/more"],
  );
  assert.deepEqual(await source.offsets("requests"), new Map([[0, 12]]));
  assert.deepEqual(await counts(), { carried: 2, refused: 2, moved: true });
});

test("what comes after a message of a tenant that is not known yet is accepted after it", async () => {
  await ensureTenant(service.db, "newcomer");
  const source = await keeper({ settings: { tenant: "default", tenantHeader: true } });
  await keepNow(source, all([{}]));
  await keepNow(source, all([{}, { headers: { "carillon-tenant": "newcomer" } }, {}, {}], 1));
  assert.deepEqual(await bodies(), ["number 0", "number 1", "number 2", "number 3", "number 4"]);
});

test("of two that have read the same one keeps it, at once or one after the other", async () => {
  const one = await keeper();
  const other = await keeperOn(service.db, `source-${sources}`);
  const batch = all([{}, {}, { value: "poison" }]);
  const [first, second] = await Promise.all([keepNow(one, batch), keepNow(other, batch)]);
  assert.deepEqual([first.kind, second.kind].sort(), ["elsewhere", "moved"]);
  assert.deepEqual(await keepNow(one, batch), { kind: "elsewhere", next: 3 });
  // Neither does whoever is behind, or ahead.
  assert.deepEqual(await keepNow(one, all([{}], 2)), { kind: "elsewhere", next: 3 });
  assert.deepEqual(await keepNow(one, all([{}], 9)), { kind: "elsewhere", next: 3 });
  assert.deepEqual(await bodies(), ["number 0", "number 1"]);
  assert.equal((await refusals()).length, 1);
  assert.deepEqual(await counts(), { carried: 2, refused: 1, moved: true });
});

test("wherever the connection is cut, a batch is there wholly or not at all, and never twice", async () => {
  const batch = all([{}, { value: "poison" }, {}]);
  const whole = flakyPool(service.db, { at: 0, when: "before" });
  await keepNow(await keeper({ pool: whole.pool }), batch);
  await service.db.query("delete from carillon.notifications; delete from carillon.refusals");
  assert.ok(whole.statements() > 6, "each statement is cut once");
  for (let at = 1; at <= whole.statements(); at++) {
    for (const when of ["before", "after"] as const) {
      const source = await keeper();
      const cut = await keeperOn(flakyPool(service.db, { at, when }).pool, `source-${sources}`).catch(() => undefined);
      await cut
        ?.read(batch)
        .then((keep) => keep())
        .catch(() => undefined);
      // Whoever comes next goes on from what is kept.
      const next = (await source.offsets("requests")).get(0) ?? 0;
      const rest = { ...batch, from: next, messages: batch.messages.filter(({ offset }) => offset >= next) };
      if (rest.messages.length > 0) assert.equal((await keepNow(source, rest)).kind, "moved");
      assert.deepEqual(await bodies(), ["number 0", "number 2"], `cut ${when} statement ${at}`);
      assert.equal((await refusals()).length, 1);
      assert.deepEqual(await counts(), { carried: 2, refused: 1, moved: true });
      await service.db.query("delete from carillon.notifications; delete from carillon.refusals");
    }
  }
});

test("holes are fine, and what has no messages moves the place", async () => {
  const source = await keeper();
  const batch = batchOf([messageOf(3), messageOf(90)], { from: 0, next: 100 });
  assert.equal((await keepNow(source, batch)).kind, "moved");
  assert.equal((await keepNow(source, batchOf([], { from: 100, next: 250 }))).kind, "moved");
  assert.equal((await keepNow(source, batchOf([messageOf(300, { value: null })], { from: 250 }))).kind, "moved");
  assert.deepEqual(await source.offsets("requests"), new Map([[0, 301]]));
  assert.deepEqual(await counts(), { carried: 2, refused: 0, moved: true });
});

test("headers fill in what a request does not say, and never what it does", async () => {
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const headers = { "idempotency-key": "from the header", traceparent, tracestate: "a=b" };
  const own = { idempotencyKey: "its own", traceparent: traceparent.replace("-01", "-00") };
  const source = await keeper();
  await keepNow(
    source,
    all([{ headers }, { headers, value: request("own", own) }, { headers: { traceparent: "nonsense" } }]),
  );
  const [filled, said, plain] = (await requestsOf()).map((row) => row.request);
  assert.deepEqual(
    [filled.idempotencyKey, filled.traceparent, filled.tracestate],
    ["from the header", traceparent, "a=b"],
  );
  assert.deepEqual([said.idempotencyKey, said.traceparent, said.tracestate], ["its own", own.traceparent, undefined]);
  assert.equal(plain.traceparent, undefined);
});

test("HIGH, MEDIUM and LOW are priorities, and others are refused", async () => {
  const given = ["HIGH", "MEDIUM", "LOW", "urgent", "Highest"].map((priority) => ({
    value: request(priority, { priority }),
  }));
  await keepNow(await keeper(), all(given));
  assert.deepEqual(
    (await requestsOf()).map((row) => row.request.priority),
    ["high", "normal", "low", "urgent"],
  );
  assert.deepEqual(
    (await refusals()).map(({ faults }) => faults[0].path),
    ["/priority"],
  );
});

test("a CloudEvent is understood in both of its modes", async () => {
  const ce = {
    ce_specversion: "1.0",
    ce_id: "1",
    ce_source: "/shop",
    ce_type: "order.paid",
    "content-type": "application/json",
  };
  const structured = { "content-type": "application/cloudevents+json; charset=UTF-8" };
  const event = { specversion: "1.0", id: "2", source: "/shop", type: "order.paid" };
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  await keepNow(
    await keeper(),
    all([
      { headers: { ...ce, ce_traceparent: traceparent }, value: request("binary") },
      { headers: structured, value: { ...event, traceparent, data: request("structured") } },
      { headers: structured, value: event },
      { headers: structured, value: [event] },
      { headers: { ...ce, ce_specversion: "0.3" }, value: request("old") },
      { headers: { "content-type": "text/plain" }, value: request("text") },
    ]),
  );
  assert.deepEqual(await bodies(), ["number binary", "number structured"]);
  assert.deepEqual(
    (await requestsOf()).map((row) => row.request.traceparent),
    [traceparent, traceparent],
  );
  assert.deepEqual(
    (await refusals()).map(({ code, faults }) => [code, faults[0].path]),
    [
      ["VALIDATION_FAILED", "/data"],
      ["VALIDATION_FAILED", ""],
      ["VALIDATION_FAILED", "/specversion"],
      ["UNSUPPORTED_MEDIA_TYPE", ""],
    ],
  );
});

test("a header names the tenant only where the settings let it; nobody's request becomes another's", async () => {
  const { id: acme } = await ensureTenant(service.db, "acme");
  const given = [{ headers: { "carillon-tenant": "acme" } }, {}, { headers: { "carillon-tenant": "nobody\0" } }];
  await keepNow(await keeper({ settings: { tenant: "default" } }), all(given));
  assert.deepEqual(
    (await requestsOf()).map(({ tenant }) => tenant),
    [1],
  );
  assert.deepEqual(
    (await refusals()).map(({ code }) => code),
    ["FORBIDDEN", "FORBIDDEN"],
  );

  await service.db.query("delete from carillon.notifications; delete from carillon.refusals");
  await keepNow(await keeper({ settings: { tenantHeader: true } }), all(given));
  assert.deepEqual(
    (await requestsOf()).map(({ tenant }) => tenant),
    [acme],
  );
  assert.deepEqual(
    (await refusals()).map(({ place, code }) => [place, code]),
    [
      ["requests/0/1", "NOT_FOUND"],
      ["requests/0/2", "NOT_FOUND"],
    ],
  );

  // One that is made later is found then.
  const late = await keeper({ settings: { tenantHeader: true } });
  await keepNow(late, all([{ headers: { "carillon-tenant": "late" } }]));
  const { id } = await ensureTenant(service.db, "late");
  await keepNow(late, all([{ headers: { "carillon-tenant": "late" } }], 1));
  assert.deepEqual(
    (await requestsOf()).map(({ tenant }) => tenant),
    [acme, id],
  );
});

test("a thousand messages of as many tenants take as many statements as one", async () => {
  await service.db.query("insert into carillon.tenants (name) select 'many-' || n from generate_series(0, 999) n");
  const statementsFor = async (given: readonly Given[]) => {
    const { pool, statements } = flakyPool(service.db, { at: 0, when: "before" });
    const source = await keeper({ settings: { tenantHeader: true }, pool });
    const before = statements();
    assert.equal((await keepNow(source, all(given))).kind, "moved");
    return statements() - before;
  };
  const one = await statementsFor([{ headers: { "carillon-tenant": "many-0" } }]);
  const many = Array.from({ length: 1_000 }, (_, n) => ({ headers: { "carillon-tenant": `many-${n}` } }));
  assert.equal(await statementsFor(many), one);
  assert.equal((await bodies()).length, 1_001);
});

test("the key of a request works as everywhere: a replay is no refusal, another body is", async () => {
  await service.ask("POST", "/v1/notifications", { ...request("first"), idempotencyKey: "twice" });
  const key = (n: string) => ({ value: request(n, { idempotencyKey: "twice" }) });
  await keepNow(await keeper(), all([key("first"), key("other")]));
  assert.deepEqual(await bodies(), ["number first"]);
  assert.deepEqual(
    (await refusals()).map(({ place, code }) => [place, code]),
    [["requests/0/1", "IDEMPOTENCY_MISMATCH"]],
  );
  assert.deepEqual(await counts(), { carried: 1, refused: 1, moved: true });
});

test("while another transaction holds a key the batch waits, and nothing of it is lost", async () => {
  const source = await keeper();
  const batch = all([{}, { value: request("held", { idempotencyKey: "held" }) }]);
  await inTransaction(service.db, async (tx) => {
    await tx.query("select carillon.send($1)", [JSON.stringify(request("held", { idempotencyKey: "held" }))]);
    const held = await keeperOn(withLockTimeout(), `source-${sources}`);
    await assert.rejects(keepNow(held, batch), /lock timeout/);
    assert.deepEqual(await source.offsets("requests"), new Map());
  });
  assert.equal((await keepNow(source, batch)).kind, "moved");
  assert.deepEqual((await bodies()).sort(), ["number 0", "number held"]);
});

/** As the pool of sources is. */
function withLockTimeout(): Service["db"] {
  const connect = async () => {
    const client = await service.db.connect();
    await client.query("set lock_timeout = '100ms'");
    return client;
  };
  return { connect, query: service.db.query.bind(service.db) } as unknown as Service["db"];
}

test("what PostgreSQL refuses is refused alone", async () => {
  await service.db.query(
    `create function carillon.spoil() returns trigger language plpgsql as
     $$ begin if new.request->'content'->>'body' = 'number bad' then raise exception 'spoilt'; end if; return new; end $$;
     create trigger spoil before insert on carillon.notifications for each row execute function carillon.spoil()`,
  );
  try {
    await keepNow(await keeper(), all([{}, {}, { value: request("bad") }, {}, {}]));
    assert.deepEqual((await bodies()).sort(), ["number 0", "number 1", "number 3", "number 4"]);
    assert.deepEqual(
      (await refusals()).map(({ place, code }) => [place, code]),
      [["requests/0/2", "INTERNAL"]],
    );
  } finally {
    await service.db.query("drop trigger spoil on carillon.notifications; drop function carillon.spoil()");
  }
});

test("whatever stands in a message, it is refused within bounds and the next one is accepted", async () => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`${"x".repeat(400)}${n}`.slice(-40), n]));
  const poison: Given[] = [
    { value: deep },
    { value: { ...request(1), metadata: JSON.parse(`${'{"a":'.repeat(60)}1${"}".repeat(60)}`) } },
    { value: { ...request(2), ...many } },
    { value: Buffer.from([0xff, 0xfe, 0x00]) },
    { value: "" },
    { value: "null" },
    { value: request("nul\0") },
    { value: request("x".repeat(262_144)) },
    { headers: { big: "x".repeat(MOST_HEADER_BYTES) } },
    { value: '{"__proto__": {"channel": "console"}, "content": {}}' },
    { value: { ...request(3), trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" } },
    { headers: { "idempotency-key": "schlüssel" } },
  ];
  const batch: Batch = all([...poison, { value: request("good") }]);
  assert.equal((await keepNow(await keeper(), batch)).kind, "moved");
  assert.deepEqual(await bodies(), ["number good"]);
  const refused = await refusals();
  assert.equal(refused.length, poison.length);
  for (const { faults } of refused) assert.ok(JSON.stringify(faults).length < 10_000);
  assert.deepEqual(
    refused.filter(({ code }) => code === "PAYLOAD_TOO_LARGE").map(({ place }) => place),
    ["requests/0/7", "requests/0/8"],
  );
});

test("what is refused is to be told until it was, where a topic should have it", async () => {
  const source = await keeper({ settings: { tenant: "default", refusals: "refused" } });
  const kept = await keepNow(source, all([{ value: "poison" }, { value: "more" }]));
  assert.ok(kept.kind === "moved" && kept.refused.length === 2);
  assert.deepEqual(await source.untold(), [], "somebody is telling them");
  await service.db.query("update carillon.refusals set at = at - interval '1 minute'");
  assert.deepEqual(
    (await source.untold()).map(({ place }) => place),
    ["requests/0/0", "requests/0/1"],
  );
  await source.told(kept.refused.slice(0, 1));
  assert.deepEqual(
    (await source.untold()).map(({ place, code }) => [place, code]),
    [["requests/0/1", "MALFORMED_JSON"]],
  );
});

test("it waits for room before it keeps anything", async () => {
  let makeRoom = () => {};
  const room = new Promise<void>((resolve) => {
    makeRoom = resolve;
  });
  const source = await keeper({ room: () => room });
  const keeping = keepNow(source, all([{}]));
  assert.deepEqual(await source.offsets("requests"), new Map());
  makeRoom();
  assert.equal((await keeping).kind, "moved");
});
