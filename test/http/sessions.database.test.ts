// Signing in: a key is shown once, a cookie stands for it, and nobody else's page can use it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openStream } from "../support/event-stream.ts";
import { ADMIN_KEY, type Answered, asking, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

const OWN = { "sec-fetch-site": "same-origin" };
const cookieOf = (answer: Answered): string => answer.headers.get("set-cookie")?.split(";")[0] ?? "";

/** As a browser comes: with the cookie, and with what it says of the page. */
const by = (cookie: string, headers: { [name: string]: string } = OWN) => ({
  ask: (method: string, path: string, body?: unknown) =>
    service.ask(method, path, body, { key: null, headers: { cookie, ...headers } }),
});

async function signIn(key: string = ADMIN_KEY, body?: object, headers: { [name: string]: string } = {}) {
  const answer = await service.ask("POST", "/v1/sessions", body, { key, headers });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return { answer, cookie: cookieOf(answer) };
}

test("a key shown once becomes a cookie that no script and no other site can use", async () => {
  const key = await service.makeKey({ scopes: ["read"] });
  const { answer, cookie } = await signIn(key);
  const said = answer.headers.get("set-cookie") ?? "";
  assert.match(
    said,
    /^carillon_session=cs_[a-z0-9]{12}_[a-z0-9]{48}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  );
  assert.ok(!JSON.stringify(answer.body).includes("cs_"), "the token is in the cookie alone");
  const { status, body } = await by(cookie).ask("GET", "/v1/sessions");
  assert.equal(status, 200);
  assert.deepEqual([body.scopes, body.tenant, body.session.id], [["read"], "default", answer.body.session.id]);
  const inAnHour = Date.parse(body.session.expiresAt) - Date.now();
  assert.ok(inAnHour > 11 * 3_600_000 && inAnHour <= 12 * 3_600_000 + 60_000);
  const { rows } = await service.db.query("select * from carillon.sessions where id = $1", [body.session.id]);
  assert.ok(!JSON.stringify(rows).includes(cookie.split("_").at(-1) ?? ""), "only its hash is kept");
});

test("behind TLS the cookie is Secure, and one that a plain connection could have set is not taken", async () => {
  const forwarded = { "x-forwarded-proto": "https" };
  const { answer, cookie } = await signIn(ADMIN_KEY, undefined, forwarded);
  assert.match(answer.headers.get("set-cookie") ?? "", /^__Host-carillon_session=.*; Secure$/);
  const own = { ...OWN, ...forwarded };
  assert.equal((await by(cookie, own).ask("GET", "/v1/sessions")).status, 200);
  const plain = cookie.replace("__Host-", "");
  assert.equal((await by(plain, own).ask("GET", "/v1/sessions")).status, 401);
});

test("a session may do what its key may, and no more", async () => {
  const { cookie } = await signIn(await service.makeKey({ scopes: ["read"] }));
  assert.equal((await by(cookie).ask("GET", "/v1/notifications")).status, 200);
  const refused = await by(cookie).ask("POST", "/v1/keys", { name: "mine", scopes: ["admin"] });
  assert.deepEqual([refused.status, refused.body.code], [403, "FORBIDDEN"]);
  const again = await by(cookie).ask("POST", "/v1/sessions");
  assert.equal(again.status, 403, "it cannot prolong itself");
});

test("a change by cookie is taken from the service's own pages only", async () => {
  const { cookie } = await signIn();
  const change = (headers: { [name: string]: string }) =>
    by(cookie, headers).ask("PATCH", "/v1/tenants/default", { weight: 1 });
  const host = new URL(service.url).host;
  for (const headers of [
    {},
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "none" },
    { origin: "https://elsewhere.example" },
    { origin: "null" },
    { origin: `http://${host}`, "sec-fetch-site": "same-site" },
    { origin: "https://elsewhere.example", "sec-fetch-site": "same-origin" },
  ]) {
    const { status, body } = await change(headers);
    assert.deepEqual([status, body.code], [403, "FORBIDDEN"], JSON.stringify(headers));
  }
  assert.equal((await change({ "sec-fetch-site": "same-origin" })).status, 200);
  assert.equal((await change({ origin: `http://${host}` })).status, 200, "a browser that says no more than Origin");
  for (const site of ["cross-site", "same-site"]) {
    assert.equal((await by(cookie, { "sec-fetch-site": site }).ask("GET", "/v1/queue")).status, 403);
  }
  assert.equal((await by(cookie, { "sec-fetch-site": "none" }).ask("GET", "/v1/queue")).status, 200);
});

test("signing out ends the session, not only the cookie", async () => {
  const { cookie } = await signIn();
  const answer = await by(cookie).ask("DELETE", "/v1/sessions");
  assert.equal(answer.status, 204);
  assert.match(answer.headers.get("set-cookie") ?? "", /^carillon_session=; Path=\/; Max-Age=0;/);
  assert.equal((await by(cookie).ask("GET", "/v1/sessions")).status, 401);
});

test("revoking a key ends its sessions, and the streams that they opened", async () => {
  const made = (await service.ask("POST", "/v1/keys", { name: "short", scopes: ["read"] })).body;
  const { cookie } = await signIn(made.key);
  const stream = await openStream(`${service.url}/v1/events`, { accept: "text/event-stream", cookie, ...OWN });
  await service.ask("DELETE", `/v1/keys/${made.id}`);
  const { status, body } = await by(cookie).ask("GET", "/v1/notifications");
  assert.deepEqual([status, body.code], [401, "UNAUTHENTICATED"]);
  await stream.ended;
});

test("a session ends when its time is over, and is forgotten", async () => {
  const { cookie, answer } = await signIn(ADMIN_KEY, { expiresInSeconds: 1 });
  await until(async () => ((await by(cookie).ask("GET", "/v1/sessions")).status === 401 ? true : undefined));
  const { forgetSessions } = await import("#store/sessions.ts");
  await until(async () => ((await forgetSessions(service.db, 10)) > 0 ? true : undefined));
  const { rowCount } = await service.db.query("select from carillon.sessions where id = $1", [answer.body.session.id]);
  assert.equal(rowCount, 0);
  for (const expiresInSeconds of [0, 604_801]) {
    assert.equal((await service.ask("POST", "/v1/sessions", { expiresInSeconds })).status, 422);
  }
});

test("with another key in the environment the sessions of the one before are over", async () => {
  const { cookie } = await signIn();
  const other = await startService({ databaseUrl: service.databaseUrl, apiKey: "another-admin-key" });
  const { status } = await asking(other.url)("GET", "/v1/sessions", undefined, {
    key: null,
    headers: { cookie, ...OWN },
  });
  await other.stop();
  assert.equal(status, 401);
});

test("of one key's sessions the newest are kept, and others' are left alone", async () => {
  const { cookie: others } = await signIn();
  const key = await service.makeKey({ scopes: ["send"] });
  const first = await signIn(key);
  for (let n = 0; n < 50; n++) await signIn(key);
  const id = key.split("_")[1];
  const { rows } = await service.db.query("select count(*)::int from carillon.sessions where key = $1", [id]);
  assert.equal(rows[0].count, 50);
  const { rowCount } = await service.db.query("select from carillon.sessions where id = $1", [
    first.answer.body.session.id,
  ]);
  assert.equal(rowCount, 0);
  assert.equal((await by(others).ask("GET", "/v1/sessions")).status, 200);
});

test("the audit log says which key it was, and through which session", async () => {
  const key = await service.makeKey({ scopes: ["admin"] });
  const { cookie, answer } = await signIn(key);
  await by(cookie).ask("PUT", "/v1/templates/signed-in", { channel: "sms", name: "n", content: { body: "b" } });
  await by(cookie).ask("DELETE", "/v1/sessions");
  const { data } = (await service.ask("GET", `/v1/audit?actor=${key.split("_")[1]}`)).body;
  const { id } = answer.body.session;
  assert.deepEqual(
    data.map((line: { action: string; actor: { kind: string; session?: string } }) => [
      line.action,
      line.actor.kind,
      line.actor.session,
    ]),
    [
      ["session.end", "key", id],
      ["template.keep", "key", id],
      ["session.begin", "key", undefined],
    ],
  );
});

test("whoever guesses tokens of sessions is told to wait, and is let in with a right one all the same", async () => {
  const own = await startService({ databaseUrl: service.databaseUrl });
  const { cookie } = await signIn();
  const guess = (n: number) => {
    const guessed = `carillon_session=cs_${"a".repeat(12)}_${String(n).padStart(48, "0")}`;
    return asking(own.url)("GET", "/v1/queue", undefined, { key: null, headers: { cookie: guessed, ...OWN } });
  };
  const codes = [];
  for (let n = 0; n < 21; n++) codes.push((await guess(n)).body.code);
  assert.deepEqual([codes[0], codes[20]], ["UNAUTHENTICATED", "TOO_MANY_FAILED_LOGINS"]);
  const right = await asking(own.url)("GET", "/v1/queue", undefined, { key: null, headers: { cookie, ...OWN } });
  await own.stop();
  assert.equal(right.status, 200);
});
