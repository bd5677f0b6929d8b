// Who may ask for what: keys, scopes, tenants.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { newKey } from "#domain/api-key.ts";
import { insertKey } from "#store/keys.ts";
import { email, type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

const UNKNOWN = "0197b6a0-0000-7000-8000-000000000000";
const notification = { channel: "console", content: { body: "Hello" } };
/** Every route behind a key, with what a well-meaning call of it looks like. */
type Names = {
  id: string;
  key?: string;
  scope?: string;
  name?: string;
  userId?: string;
  token?: string;
  address?: string;
};
const calls = (names: Names): [string, string, string, unknown?][] => {
  const { id, key = "k", scope = "guild:1", name = "webhook", userId = "u", token = "t", address = "a@b.co" } = names;
  const keyId = id === "{id}" ? id : "x";
  const endpoint = id === "{id}" ? id : "ep_000000000000000000000000";
  const [message, index] = id === "{id}" ? [id, "{index}"] : ["1", "0"];
  return [
    ["admin", "PUT", `/v1/templates/${id}`, { channel: "sms", name: "n", content: { body: "Hello" } }],
    ["read", "GET", "/v1/templates"],
    ["read", "GET", `/v1/templates/${id}`],
    ["read", "GET", `/v1/templates/${id}/versions`],
    ["admin", "POST", `/v1/templates/${id}/activate`, { version: 1 }],
    ["read", "POST", `/v1/templates/${id}/preview`, { variables: {} }],
    ["admin", "DELETE", `/v1/templates/${id}`],
    ["send", "POST", "/v1/explain", email()],
    ["send", "PUT", `/v1/users/${userId}/devices/${token}`, { platform: "ios" }],
    ["read", "GET", `/v1/users/${userId}/devices`],
    ["send", "DELETE", `/v1/users/${userId}/devices/${token}`],
    ["send", "PUT", `/v1/suppressions/${address}`, {}],
    ["read", "GET", "/v1/suppressions"],
    ["send", "DELETE", `/v1/suppressions/${address}`],
    ["read", "GET", "/v1/providers"],
    ["admin", "PUT", `/v1/providers/${name}`, { type: "webhook" }],
    ["admin", "DELETE", `/v1/providers/${name}`],
    ["admin", "POST", `/v1/providers/${name}/test`],
    ["read", "GET", "/v1/costs"],
    ["read", "GET", `/v1/inbox/${userId}`],
    ["read", "GET", `/v1/inbox/${userId}/unread`],
    ["send", "POST", `/v1/inbox/${userId}/ack`, { ids: [UNKNOWN] }],
    ["send", "POST", `/v1/inbox/${userId}/read`, { ids: [UNKNOWN] }],
    ["send", "POST", `/v1/inbox/${userId}/archive`, { ids: [UNKNOWN] }],
    ["send", "POST", `/v1/inbox/${userId}/read-all`],
    ["send", "POST", `/v1/inbox/${userId}/tokens`],
    ["send", "POST", `/v1/inbox/${userId}/session`],
    ["send", "DELETE", `/v1/inbox/${userId}/session`],
    ["read", "GET", "/v1/dev/messages"],
    ["send", "DELETE", "/v1/dev/messages"],
    ["read", "GET", `/v1/dev/messages/${message}`],
    ["read", "GET", `/v1/dev/messages/${message}/source`],
    ["read", "GET", `/v1/dev/messages/${message}/attachments/${index}`],
    ["send", "DELETE", `/v1/dev/messages/${message}`],
    ["send", "PATCH", `/v1/notifications/${id}`, { priority: "low" }],
    ["read", "GET", "/v1/dead-letters/groups"],
    ["send", "POST", "/v1/plans", { kind: "requeue", filter: {} }],
    ["read", "GET", "/v1/plans"],
    ["read", "GET", `/v1/plans/${id}`],
    ["send", "POST", `/v1/plans/${id}/apply`, {}],
    ["send", "POST", `/v1/plans/${id}/continue`],
    ["send", "POST", `/v1/plans/${id}/abort`],
    ["send", "PUT", `/v1/schedules/${key}`, { cron: "0 0 1 1 *", notification }],
    ["read", "GET", "/v1/schedules"],
    ["read", "GET", `/v1/schedules/${key}`],
    ["read", "GET", `/v1/schedules/${key}/next`],
    ["read", "GET", `/v1/schedules/${key}/runs`],
    ["send", "POST", `/v1/schedules/${key}/pause`],
    ["send", "POST", `/v1/schedules/${key}/resume`],
    ["send", "DELETE", `/v1/schedules/${key}`],
    ["send", "PUT", `/v1/reminders/${key}`, { at: "2099-01-01T20:00:00Z", before: ["P1D"], notification }],
    ["read", "GET", "/v1/reminders"],
    ["read", "GET", `/v1/reminders/${key}`],
    ["send", "DELETE", `/v1/reminders/${key}`],
    ["send", "PUT", `/v1/reminder-scopes/${scope}`, { before: ["P1D"] }],
    ["read", "GET", "/v1/reminder-scopes"],
    ["read", "GET", `/v1/reminder-scopes/${scope}`],
    ["send", "DELETE", `/v1/reminder-scopes/${scope}`],
    ["send", "POST", "/v1/notifications", email()],
    ["send", "POST", "/v1/notifications/batch", { notifications: [email()] }],
    ["send", "POST", `/v1/notifications/${id}/cancel`],
    ["read", "GET", `/v1/notifications/${id}`],
    ["read", "GET", "/v1/notifications"],
    ["send", "POST", `/v1/notifications/${id}/retry`],
    ["read", "GET", "/v1/dead-letters"],
    ["send", "POST", "/v1/dead-letters/requeue", { filter: {} }],
    ["read", "GET", "/v1/workers"],
    ["admin", "GET", "/v1/house"],
    ["read", "GET", "/v1/queue"],
    ["read", "GET", "/v1/queue/migration"],
    ["admin", "POST", "/v1/queue/migration", { to: "redis" }],
    ["admin", "DELETE", "/v1/queue/migration"],
    ["read", "GET", "/v1/pauses"],
    ...["channels", "providers", "tenants"].flatMap((kind): [string, string, string, unknown?][] => [
      ["admin", "POST", `/v1/${kind}/${name}/pause`, { reason: "a test", until: "2099-01-01T00:00:00Z" }],
      ["admin", "POST", `/v1/${kind}/${name}/resume`],
    ]),
    ["admin", "GET", "/v1/tenants"],
    ["admin", "PATCH", `/v1/tenants/${name}`, { weight: 2 }],
    ["read", "GET", "/v1/ledger"],
    ["read", "GET", "/v1/statistics"],
    ["admin", "POST", "/v1/endpoints", { url: "https://example.com/hook" }],
    ["read", "GET", "/v1/endpoints"],
    ["read", "GET", `/v1/endpoints/${endpoint}`],
    ["admin", "PATCH", `/v1/endpoints/${endpoint}`, { policy: "persistent" }],
    ["admin", "POST", `/v1/endpoints/${endpoint}/pause`, { reason: "a test" }],
    ["admin", "POST", `/v1/endpoints/${endpoint}/resume`],
    ["admin", "POST", `/v1/endpoints/${endpoint}/rotate`],
    ["admin", "POST", `/v1/endpoints/${endpoint}/test`],
    ["admin", "POST", `/v1/endpoints/${endpoint}/replay`, { since: new Date().toISOString() }],
    ["admin", "DELETE", `/v1/endpoints/${endpoint}`],
    ["read", "GET", `/v1/endpoints/${endpoint}/deliveries`],
    ["read", "GET", "/v1/callback-dead-letters"],
    ["admin", "POST", "/v1/callback-dead-letters/requeue", { filter: {} }],
    ["read", "GET", "/v1/events"],
    ...["sources", "sinks"].flatMap((kind): [string, string, string, unknown?][] => [
      ["admin", "GET", `/v1/${kind}`],
      ["admin", "POST", `/v1/${kind}/${name}/pause`, { reason: "a test" }],
      ["admin", "POST", `/v1/${kind}/${name}/resume`],
    ]),
    ["admin", "POST", `/v1/sinks/${name}/replay`, { since: new Date().toISOString() }],
    ["admin", "DELETE", `/v1/sinks/${name}`],
    ["read", "GET", "/v1/refusals"],
    ["admin", "DELETE", `/v1/users/${userId}`],
    ["admin", "GET", `/v1/users/${userId}/deletion`],
    ["admin", "GET", `/v1/users/${userId}/export`],
    ["admin", "GET", "/v1/audit"],
    ["admin", "GET", "/v1/keys"],
    ["any", "POST", "/v1/sessions"],
    ["any", "GET", "/v1/sessions"],
    ["any", "DELETE", "/v1/sessions"],
    ["admin", "POST", "/v1/keys", { name: "n", scopes: ["read"] }],
    ["admin", "DELETE", `/v1/keys/${keyId}`],
  ];
};

test("the list of routes tried here is the list of routes there are", async () => {
  const { body } = await service.ask("GET", "/openapi.json");
  const documented = Object.entries(body.paths as { [path: string]: { [method: string]: { "x-scope"?: string } } })
    .flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { "x-scope": scope }]) =>
        scope ? [`${scope} ${method.toUpperCase()} ${path}`] : [],
      ),
    )
    .sort();
  const tried = calls({
    id: "{id}",
    key: "{key}",
    scope: "{scope}",
    name: "{name}",
    userId: "{userId}",
    token: "{token}",
    address: "{address}",
  })
    .map(([scope, method, path]) => `${scope} ${method} ${path}`)
    .sort();
  assert.deepEqual(tried, documented);
});

test("without a key, or with a wrong one, every route is 401 and does nothing", async () => {
  const before = (await service.ask("GET", "/v1/ledger")).body.accepted;
  for (const [, method, path, body] of calls({ id: UNKNOWN })) {
    for (const options of [{ key: null }, { key: null, headers: { authorization: "Basic dGVzdA==" } }]) {
      const answer = await service.ask(method, path, body, options);
      assert.deepEqual([answer.status, answer.body.code], [401, "UNAUTHENTICATED"], `${method} ${path}`);
      assert.match(answer.headers.get("www-authenticate") ?? "", /^Bearer/);
    }
  }
  assert.equal((await service.ask("GET", "/v1/ledger")).body.accepted, before);
});

test("a key does what its scopes say and no more", async () => {
  for (const scope of ["send", "read", "admin"]) {
    const key = await service.makeKey({ scopes: [scope] });
    for (const [needed, method, path, body] of calls({ id: UNKNOWN })) {
      const { status } = await service.ask(method, path, body, { key });
      if (scope === needed || scope === "admin" || needed === "any")
        assert.ok(status !== 401 && status !== 403, `${scope}: ${method} ${path} is ${status}`);
      else assert.equal(status, 403, `${scope}: ${method} ${path}`);
    }
  }
});

test("another tenant's things do not exist, over every route", async () => {
  const theirs = await service.makeKey({ tenant: "other", scopes: ["admin"] });
  const { body: ours } = await service.ask("POST", "/v1/notifications", {
    ...email(),
    idempotencyKey: "mine",
    recipient: { email: "a@b.co", userId: "shared" },
  });
  const ourKey = await service.makeKey({ scopes: ["read"] });
  const ourKeyId = ourKey.split("_")[1] ?? "";
  const ask = (method: string, path: string, body?: unknown) => service.ask(method, path, body, { key: theirs });

  assert.equal((await ask("GET", `/v1/notifications/${ours.notificationId}`)).status, 404);
  assert.equal((await ask("POST", `/v1/notifications/${ours.notificationId}/cancel`)).status, 404);
  assert.equal((await ask("POST", `/v1/notifications/${ours.notificationId}/retry`)).status, 404);
  assert.equal((await ask("PATCH", `/v1/notifications/${ours.notificationId}`, { priority: "low" })).status, 404);
  for (const [path, body] of [
    ["/v1/schedules/mine", { every: "P1D", notification }],
    ["/v1/reminders/mine", { at: "2099-01-01T20:00:00Z", scopes: ["guild:1"], notification }],
    ["/v1/reminder-scopes/guild:1", { before: ["P1D"] }],
  ] as const) {
    assert.ok((await service.ask("PUT", path, body)).status < 300, path);
    assert.equal((await ask("GET", path)).status, 404);
    assert.equal((await ask("DELETE", path)).status, 404);
    assert.deepEqual((await ask("GET", path.replace(/\/[^/]*$/, ""))).body.data, []);
  }
  assert.equal((await ask("POST", "/v1/schedules/mine/pause")).status, 404);
  assert.equal((await ask("GET", "/v1/schedules/mine/runs")).status, 404);
  const { body: failed } = await service.ask("POST", "/v1/notifications", email());
  await service.db.query("delete from carillon.ready where id = $1", [failed.notificationId]);
  await service.db.query(
    "insert into carillon.events (notification_id, tenant, type, from_status, to_status) values ($1, 1, 'attempt', 'processing', 'failed')",
    [failed.notificationId],
  );
  assert.deepEqual((await ask("GET", "/v1/dead-letters")).body.data, []);
  for (const body of [{ ids: [failed.notificationId] }, { filter: {} }]) {
    assert.equal((await ask("POST", "/v1/dead-letters/requeue", body)).body.requeued, 0);
  }
  assert.deepEqual((await ask("GET", "/v1/notifications")).body.data, []);
  assert.deepEqual((await ask("GET", "/v1/notifications?userId=shared")).body.data, []);
  assert.equal((await ask("GET", "/v1/ledger")).body.accepted, 0);
  assert.deepEqual((await ask("GET", "/v1/queue")).body.depth, { urgent: 0, high: 0, normal: 0, low: 0 });
  const keys = (await ask("GET", "/v1/keys")).body.data;
  assert.deepEqual(
    keys.map(({ tenant }: { tenant: string }) => tenant),
    ["other"],
  );
  assert.equal((await ask("DELETE", `/v1/keys/${ourKeyId}`)).status, 404);
  assert.equal((await service.ask("GET", "/v1/queue", undefined, { key: ourKey })).status, 200);
  assert.equal((await ask("POST", "/v1/keys", { name: "x", scopes: ["read"], tenant: "default" })).status, 403);
  const sent = await ask("POST", "/v1/notifications", { ...email("other"), idempotencyKey: "mine" });
  assert.equal(sent.status, 202, "their idempotency keys are their own");
  assert.equal(
    (await service.ask("GET", `/v1/notifications/${sent.body.notificationId}`)).status,
    404,
    "nor do ours see theirs",
  );
  assert.equal((await service.ask("GET", `/v1/notifications/${ours.notificationId}`)).body.status, "queued");
});

test("a key is shown once, kept as a hash, listed with its last use, and gone when revoked", async () => {
  const made = await service.ask("POST", "/v1/keys", {
    name: "ci",
    scopes: ["read", "read"],
    expiresAt: "2099-01-01T00:00:00Z",
  });
  assert.equal(made.status, 201);
  const { id, key, createdAt, ...rest } = made.body;
  assert.deepEqual(rest, { tenant: "default", name: "ci", scopes: ["read"], expiresAt: "2099-01-01T00:00:00.000Z" });
  assert.match(key, /^ck_[0-9a-f]{12}_[0-9a-f]{48}$/);
  const everything = JSON.stringify(
    (await service.db.query("select k.*, encode(hash, 'escape') from carillon.keys k")).rows,
  );
  assert.ok(!everything.includes(key.split("_")[2]));

  const listed = async () =>
    (await service.ask("GET", "/v1/keys")).body.data.find((one: { id: string }) => one.id === id);
  assert.equal((await listed()).lastUsedAt, undefined);
  assert.equal((await service.ask("GET", "/v1/queue", undefined, { key })).status, 200);
  assert.ok((await listed()).lastUsedAt >= createdAt);

  assert.equal((await service.ask("DELETE", `/v1/keys/${id}`)).status, 204);
  assert.equal((await service.ask("GET", "/v1/queue", undefined, { key })).status, 401);
  assert.ok((await listed()).revokedAt);
  assert.equal((await service.ask("DELETE", `/v1/keys/${id}`)).status, 404);
});

test("the last admin key cannot be revoked, however many try at once; an expired one is none", async () => {
  // Without CARILLON_API_KEY: the keys in the database are the only way in.
  const alone = await startService({ apiKey: undefined });
  try {
    await alone.db.query("delete from carillon.keys");
    const make = async (expiresAt: string | null = null) => {
      const { id, key, hash } = newKey();
      await insertKey(alone.db, { id, tenant: 1, name: "a test's", hash, scopes: ["admin"], expiresAt });
      return { id, key };
    };
    const revoke = (id: string, key: string) => alone.ask("DELETE", `/v1/keys/${id}`, undefined, { key });

    let last = await make();
    await make("2020-01-01T00:00:00Z");
    const refused = await revoke(last.id, last.key);
    assert.deepEqual([refused.status, refused.body.code], [409, "LAST_ADMIN_KEY"]);
    const { body } = await alone.ask("POST", "/v1/keys", { name: "r", scopes: ["read"] }, { key: last.key });
    assert.equal((await revoke(body.id, last.key)).status, 204, "other keys may go");

    for (let round = 0; round < 10; round++) {
      const other = await make();
      const answers = await Promise.all([revoke(other.id, last.key), revoke(last.id, other.key)]);
      // Who comes late enough is no administrator any more.
      assert.match(
        answers
          .map(({ status }) => status)
          .toSorted()
          .join(),
        /^204,40[19]$/,
      );
      if (answers[1]?.status === 204) last = other;
      assert.equal((await alone.ask("GET", "/v1/keys", undefined, { key: last.key })).status, 200);
    }

    // The default tenant's administrators may lock another tenant out; that one may not lock itself out.
    const theirs = await alone.ask(
      "POST",
      "/v1/keys",
      { name: "t", scopes: ["admin"], tenant: "acme" },
      { key: last.key },
    );
    assert.equal((await revoke(theirs.body.id, theirs.body.key)).status, 409);
    assert.equal((await revoke(theirs.body.id, last.key)).status, 204);
  } finally {
    await alone.stop();
  }
});

test("with a fixed key, every other admin key may be revoked", async () => {
  const { body } = await service.ask("POST", "/v1/keys", { name: "x", scopes: ["admin"] });
  assert.equal((await service.ask("DELETE", `/v1/keys/${body.id}`)).status, 204);
});

test("an expired key is refused, and one cannot be made already expired", async () => {
  const key = await service.makeKey({ scopes: ["read"] });
  await service.db.query("update carillon.keys set expires_at = now() - interval '1 s' where id = $1", [
    key.split("_")[1],
  ]);
  const { status, body } = await service.ask("GET", "/v1/queue", undefined, { key });
  assert.deepEqual([status, body.detail], [401, "the API key has expired"]);
  const made = await service.ask("POST", "/v1/keys", {
    name: "x",
    scopes: ["read"],
    expiresAt: "2020-01-01T00:00:00Z",
  });
  assert.equal(made.status, 422);
  for (const body of [
    { name: "x", scopes: [] },
    { name: "x", scopes: ["root"] },
    { scopes: ["read"] },
    { name: "x", scopes: ["read"], tenant: "Not A Name" },
  ]) {
    assert.equal((await service.ask("POST", "/v1/keys", body)).status, 422);
  }
});

test("a right id with a wrong secret is refused", async () => {
  const key = await service.makeKey({ scopes: ["read"] });
  assert.equal((await service.ask("GET", "/v1/queue", undefined, { key })).status, 200);
  const last = key.endsWith("0") ? "1" : "0";
  assert.equal((await service.ask("GET", "/v1/queue", undefined, { key: key.slice(0, -1) + last })).status, 401);
});

test("an address that keeps coming with wrong keys is told to wait; right keys still pass", async () => {
  const other = await startService();
  try {
    const fresh = await other.makeKey({ scopes: ["read"] });
    const statuses: number[] = [];
    for (let n = 0; n < 25; n++)
      statuses.push(
        (await other.ask("GET", "/v1/queue", undefined, { key: `ck_${"0".repeat(12)}_${"0".repeat(48)}` })).status,
      );
    assert.deepEqual(statuses, [...Array(20).fill(401), ...Array(5).fill(429)]);
    const { headers, body } = await other.ask("GET", "/v1/queue", undefined, { key: "nonsense" });
    assert.equal(body.code, "TOO_MANY_FAILED_LOGINS");
    assert.ok(Number(headers.get("retry-after")) > 0);
    assert.equal((await other.ask("GET", "/v1/queue", undefined, { key: fresh })).status, 200);
    const { body: figures } = await other.ask("GET", "/metrics");
    assert.match(figures, /carillon_failed_logins_total 26/);
  } finally {
    await other.stop();
  }
});

test("replicas that start together make one first key between them", async () => {
  const { start } = await import("#main.ts");
  const { readConfig } = await import("#config/read.ts");
  const { createLog } = await import("#telemetry/log.ts");
  const { freshDatabase } = await import("../support/postgres.ts");
  const database = await freshDatabase();
  const config = await readConfig({ env: { DATABASE_URL: database.url, PORT: "0" }, cwd: import.meta.dirname });
  const lines: string[] = [];
  const replicas = await Promise.all(
    Array.from({ length: 4 }, () => start(config, createLog("silent"), (line) => lines.push(line))),
  );
  const keys = lines.filter((line) => line.startsWith("admin key"));
  assert.equal(keys.length, 1);
  assert.equal(lines.filter((line) => line.startsWith("carillon listening on http://127.0.0.1:")).length, 4);
  const key = keys[0]?.split(": ")[1];
  for (const { url } of replicas) {
    assert.equal((await fetch(`${url}/v1/keys`, { headers: { authorization: `Bearer ${key}` } })).status, 200);
  }
  await Promise.all(replicas.map(({ stop }) => stop()));
  await database.drop();
});
