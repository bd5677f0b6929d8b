// /v1/endpoints: made, read, changed, paused, rotated, tested and deleted by their tenants, and by nobody else.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { openSecrets } from "#domain/endpoint.ts";
import { findEndpoint } from "#store/endpoints.ts";
import { ensureRequestsEndpoint } from "#store/requests-endpoint.ts";
import { readEndpointKeys } from "#store/secrets.ts";
import { type Service, startService } from "../support/service.ts";
import { startStandIn } from "../support/stand-in.ts";

let service: Service;
let receiver: Awaited<ReturnType<typeof startStandIn>>;
const keys: { [who: string]: string } = {};
const sealing = [Buffer.alloc(32, 5)];
before(async () => {
  receiver = await startStandIn();
  service = await startService({ allowAddresses: ["127.0.0.1"], secretKeys: sealing });
  for (const scope of ["send", "read", "admin"])
    keys[scope] = await service.makeKey({ tenant: "shop", scopes: [scope] });
  keys.stranger = await service.makeKey({ tenant: "stranger", scopes: ["admin"] });
});
after(async () => {
  await service.stop();
  await receiver.close();
});

const url = "https://hooks.example.com/carillon";
const ask = (method: string, path: string, body?: unknown, who = "admin") =>
  service.ask(method, `/v1/endpoints${path}`, body, { key: keys[who] as string });
const make = async (given: object = {}, who = "admin") => {
  const { status, body } = await ask("POST", "", { url, ...given }, who);
  assert.equal(status, 201, JSON.stringify(body));
  return body;
};

test("an endpoint is made with its secret, which is shown once; read without it, changed field by field, and deleted", async () => {
  const given = {
    events: ["sent", "failed", "sent"],
    policy: "aggressive",
    fifo: "notification",
    rate: { per: "second", most: 10 },
    description: "orders",
  };
  const { secret, ...made } = await make(given);
  assert.match(made.id, /^ep_[0-9a-f]{24}$/);
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.match(made.publicKey, /^whpk_[A-Za-z0-9+/]{43}=$/);
  const { id, publicKey, createdAt, changedAt, ...said } = made;
  assert.deepEqual(said, { url, ...given, events: ["sent", "failed"], state: "active" });
  assert.deepEqual((await ask("GET", `/${id}`, undefined, "read")).body, made);
  assert.deepEqual(
    (await ask("GET", "", undefined, "read")).body.data.filter((one: { id: string }) => one.id === id),
    [made],
  );

  const changed = await ask("PATCH", `/${id}`, { policy: "persistent", rate: null, events: null });
  const { rate: _rate, events: _events, ...kept } = made;
  assert.deepEqual(changed.body, { ...kept, policy: "persistent", changedAt: changed.body.changedAt });
  assert.ok(changed.body.changedAt > changedAt);

  assert.equal((await ask("DELETE", `/${id}`)).status, 204);
  for (const [method, body] of [["GET"], ["DELETE"], ["PATCH", { fifo: null }]] as const)
    assert.equal((await ask(method, `/${id}`, body)).status, 404);
});

test("what is wrong is told, all of it, and changes nothing", async () => {
  const bad = await ask("POST", "", {
    url: "http://169.254.169.254/latest",
    events: ["opened"],
    policy: "never",
    rate: { per: "second", most: 0 },
    secret: "mine",
  });
  assert.equal(bad.status, 422);
  const paths = bad.body.errors.map(({ path }: { path: string }) => path).sort();
  assert.deepEqual(paths, ["/events/0", "/policy", "/rate/most", "/secret", "/url"]);
  for (const wrong of ["ftp://example.com/", "http://user:pass@example.com/", "http://10.1.2.3/", "http://[::1]/", "x"])
    assert.equal((await ask("POST", "", { url: wrong })).status, 422, wrong);
  assert.equal((await ask("POST", "")).status, 422);
  const { id, secret: _, ...made } = await make();
  for (const change of [{}, { url: "http://0x0a000001/" }, { events: [] }, { state: "disabled" }, { url: null }])
    assert.equal((await ask("PATCH", `/${id}`, change)).status, 422, JSON.stringify(change));
  assert.deepEqual((await ask("GET", `/${id}`)).body, { id, ...made });
});

test("keys that only send or read change nothing, and other tenants see nothing", async () => {
  const { id } = await make();
  for (const who of ["send", "read"]) {
    assert.equal((await ask("POST", "", { url }, who)).status, 403);
    for (const path of [`/${id}/rotate`, `/${id}/test`, `/${id}/resume`])
      assert.equal((await ask("POST", path, undefined, who)).status, 403);
    assert.equal((await ask("DELETE", `/${id}`, undefined, who)).status, 403);
  }
  assert.equal((await ask("GET", `/${id}`, undefined, "send")).status, 403);
  assert.deepEqual((await ask("GET", "", undefined, "stranger")).body.data, []);
  assert.equal((await ask("GET", `/${id}`, undefined, "stranger")).status, 404);
  for (const path of [`/${id}/rotate`, `/${id}/test`, `/${id}/resume`])
    assert.equal((await ask("POST", path, undefined, "stranger")).status, 404);
  assert.equal((await ask("DELETE", `/${id}`, undefined, "stranger")).status, 404);
});

test("a tenant has fifty at most, also when many are made at once; the built-in one does not count", async () => {
  keys.crowd = await service.makeKey({ tenant: "crowd", scopes: ["admin"] });
  assert.equal((await ask("PATCH", "/requests", { policy: "aggressive" }, "crowd")).status, 200);
  const { id } = await make({}, "crowd");
  await service.db.query(
    `insert into carillon.endpoints (tenant, id, url, sealed, public_key)
     select tenant, 'ep_' || lpad(n::text, 24, '0'), url, sealed, public_key
     from carillon.endpoints, generate_series(1, 46) as n where id = $1`,
    [id],
  );
  const made = await Promise.all(Array.from({ length: 6 }, () => ask("POST", "", { url }, "crowd")));
  const codes = made.map(({ status, body }) => (status === 201 ? "made" : body.code)).sort();
  assert.deepEqual(codes, [...Array(3).fill("TOO_MANY_ENDPOINTS"), ...Array(3).fill("made")]);
  assert.equal((await ask("GET", "", undefined, "crowd")).body.data.length, 51);
});

test("it is paused for a reason and goes on; one that was disabled goes on too", async () => {
  const { id } = await make();
  assert.equal((await ask("POST", `/${id}/pause`, {})).status, 422);
  const paused = await ask("POST", `/${id}/pause`, { reason: "a release" });
  assert.deepEqual([paused.body.state, paused.body.reason], ["paused", "a release"]);
  const resumed = await ask("POST", `/${id}/resume`);
  assert.deepEqual([resumed.status, resumed.body.state, resumed.body.reason], [200, "active", undefined]);
  await service.db.query(
    "update carillon.endpoints set state = 'disabled', reason = 'gone', failing_since = now() where id = $1",
    [id],
  );
  assert.ok((await ask("GET", `/${id}`)).body.failingSince);
  const again = (await ask("POST", `/${id}/resume`)).body;
  assert.deepEqual([again.state, again.failingSince], ["active", undefined]);
});

test("a test is posted signed, and the receiver's answer is shown; while secrets are replaced both verify", async () => {
  const { id, secret: first } = await make({ url: `${receiver.url}/hook?a=b` });
  receiver.answer({ status: 418, body: `short and stout\u0000${"x".repeat(5000)}` });
  const { status, body } = await ask("POST", `/${id}/test`);
  assert.deepEqual([status, body.delivered, body.status, body.body.length], [200, false, 418, 1023]);
  assert.ok(body.body.startsWith("short and stoutxxx") && body.latencyMs >= 0);
  const got = receiver.received.at(-1);
  assert.ok(got);
  const headers = got.headers as { [name: string]: string };
  assert.deepEqual([got.path, headers["webhook-id"]], ["/hook?a=b", body.webhookId]);
  assert.deepEqual(new Webhook(first).verify(got.body, headers), {
    type: "endpoint.test",
    timestamp: JSON.parse(got.body).timestamp,
    data: { endpointId: id },
  });

  const rotated = (await ask("POST", `/${id}/rotate`)).body;
  assert.notEqual(rotated.secret, first);
  assert.ok(Math.abs(Date.parse(rotated.previousSecretUntil) - Date.now() - 86_400_000) < 600_000);
  const postTest = async () => {
    receiver.answer({ status: 204 });
    assert.equal((await ask("POST", `/${id}/test`)).body.delivered, true);
    const { body, headers } = receiver.received.at(-1) ?? assert.fail();
    return { body, headers: headers as { [name: string]: string } };
  };
  const both = await postTest();
  for (const secret of [first, rotated.secret]) new Webhook(secret).verify(both.body, both.headers);

  const last = (await ask("POST", `/${id}/rotate`, { keepSeconds: 0 })).body;
  assert.equal(last.previousSecretUntil, undefined);
  const alone = await postTest();
  new Webhook(last.secret).verify(alone.body, alone.headers);
  for (const secret of [first, rotated.secret])
    assert.throws(() => new Webhook(secret).verify(alone.body, alone.headers));
});

test("a test says why there was no answer, and does not reach our own network", async (t) => {
  const gone = await make({ url: "http://127.0.0.1:1/" });
  const { body } = await ask("POST", `/${gone.id}/test`);
  assert.deepEqual([body.delivered, body.status], [false, undefined]);
  assert.match(body.error, /ECONNREFUSED/);
  const named = await make({ url: receiver.url.replace("127.0.0.1", "localhost") });
  const [strict, before] = [
    await startService({ databaseUrl: service.databaseUrl, secretKeys: sealing }),
    receiver.received.length,
  ];
  t.after(() => strict.stop());
  const path = `/v1/endpoints/${named.id}/test`;
  const refused = await strict.ask("POST", path, undefined, { key: keys.admin as string });
  assert.match(refused.body.error, /not allowed/);
  assert.equal(receiver.received.length, before);
});

test("the endpoint of requests is there when it is first needed, has no URL and cannot be deleted", async () => {
  assert.equal((await ask("GET", "/requests")).status, 404);
  const { body } = await ask("POST", "/requests/rotate");
  assert.deepEqual([body.id, body.url, body.policy], ["requests", undefined, "best_effort"]);
  assert.equal((await ask("DELETE", "/requests")).status, 405);
  const refused = await ask("PATCH", "/requests", { url, events: ["sent"] });
  assert.deepEqual(
    refused.body.errors.map(({ path }: { path: string }) => path),
    ["/url", "/events"],
  );
  assert.equal((await ask("POST", "/requests/test")).status, 422);
  receiver.answer({ status: 200 });
  const { body: tested } = await ask("POST", "/requests/test", { url: receiver.url });
  assert.equal(tested.delivered, true);
  const { body: got, headers } = receiver.received.at(-1) ?? assert.fail();
  new Webhook(body.secret).verify(got, headers as { [name: string]: string });
});

test("secrets are sealed at rest; what a deployment without keys of its own has sealed is opened once there are some", async () => {
  const { id, secret } = await make();
  const { rows } = await service.db.query(
    "select to_json(e)::text as row, tenant from carillon.endpoints e where id = $1",
    [id],
  );
  assert.ok(!rows[0].row.includes(secret.slice(6)));
  const tenant = rows[0].tenant as number;
  const row = (await findEndpoint(service.db, tenant, id)) ?? assert.fail();
  const open = async (configured: Buffer[], of = row) =>
    openSecrets(await readEndpointKeys(service.db, configured), of, new Date())?.map((one) => one.secret);
  assert.deepEqual(await open(sealing), [secret]);
  assert.equal(await open([]), undefined, "only with the key that sealed it");
  assert.equal(await open(sealing, { ...row, tenant: tenant + 1 }), undefined, "only in its place");

  const unkeyed = await ensureRequestsEndpoint(service.db, await readEndpointKeys(service.db, []), 1);
  assert.equal((await open(sealing, unkeyed))?.length, 1);
});
