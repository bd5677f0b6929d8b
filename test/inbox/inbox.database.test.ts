// Inboxes over HTTP: what comes in, who may read it, and how it is marked.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { NewItem } from "#domain/inbox.ts";
import { storeItems } from "#store/inbox.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService({
    roles: ["api", "worker", "scheduler", "keeper"],
    allowOrigins: ["https://app.example.com"],
  });
});
after(() => service.stop());

let users = 0;
const newUser = () => `user ${++users}/é`;
const path = (userId: string, rest = "") => `/v1/inbox/${encodeURIComponent(userId)}${rest}`;

async function send(userId: string, content: object = {}, more: object = {}): Promise<string> {
  const body = { channel: "inbox", recipient: { userId }, content: { title: "Hello", ...content }, ...more };
  const answer = await service.ask("POST", "/v1/notifications", body);
  assert.equal(answer.status, 202, JSON.stringify(answer.body));
  return answer.body.notificationId;
}
const record = async (id: string) => (await service.ask("GET", `/v1/notifications/${id}`)).body;
const reaches = (id: string, status: string) =>
  until(async () => {
    const found = await record(id);
    return found.status === status ? found : undefined;
  });
const list = async (userId: string, query = "") => (await service.ask("GET", path(userId, query))).body;
const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id);
const tokenFor = async (userId: string, body?: object, key?: string): Promise<string> => {
  const options = key === undefined ? {} : { key };
  return (await service.ask("POST", path(userId, "/tokens"), body, options)).body.token;
};

test("a notification for the inbox is sent once its item is stored, whether or not anybody looks", async () => {
  const user = newUser();
  const data = { category: "orders", orderId: 17 };
  const id = await send(user, { body: "It is on its way", clickAction: "/orders/17", data });
  const { attempts } = await reaches(id, "sent");
  assert.deepEqual([attempts[0].provider, attempts[0].outcome], ["inbox", "accepted"]);
  const { data: items, unread, nextCursor } = await list(user);
  assert.deepEqual([unread, nextCursor, items.length], [1, null, 1]);
  const { createdAt, ...item } = items[0];
  assert.ok(Date.parse(createdAt) > Date.now() - 60_000);
  assert.deepEqual(item, {
    id,
    category: "orders",
    title: "Hello",
    body: "It is on its way",
    data,
    link: "/orders/17",
    readAt: null,
    archivedAt: null,
  });
});

test("the category may stand in the metadata", async () => {
  const user = newUser();
  await reaches(await send(user, {}, { metadata: { category: "news" } }), "sent");
  assert.equal((await list(user)).data[0].category, "news");
});

test("half an emoji in a tenant's category holds up nobody's inbox", async () => {
  const key = await service.makeKey({ tenant: "hostile", scopes: ["send"] });
  const half = { category: `${"x".repeat(127)}🔔` };
  const bad = { channel: "inbox", recipient: { userId: "u" }, content: { title: "Hi", data: half } };
  const notifications = Array.from({ length: 30 }, () => bad);
  assert.equal((await service.ask("POST", "/v1/notifications/batch", { notifications }, { key })).status, 200);
  const ids = await Promise.all(Array.from({ length: 10 }, () => send(newUser())));
  for (const id of ids) assert.equal((await reaches(id, "sent")).attempts.length, 1);
  const { rows } = await service.db.query("select state from carillon.breakers where account = 'inbox'");
  assert.deepEqual(rows, []);
});

test("what a template makes that no inbox can hold is rejected, and others are stored", async () => {
  const template = { channel: "inbox", name: "NUL", content: { title: "{{ 'a%00b' | url_decode }}", body: "b" } };
  assert.ok((await service.ask("PUT", "/v1/templates/nul", template)).status < 300);
  const content = { templateId: "nul", title: undefined };
  const bad = await Promise.all(Array.from({ length: 5 }, () => send(newUser(), content)));
  const good = await Promise.all(Array.from({ length: 5 }, () => send(newUser())));
  for (const id of good) assert.equal((await reaches(id, "sent")).attempts.length, 1);
  for (const id of bad) {
    const { attempts } = await reaches(id, "failed");
    assert.deepEqual([attempts.length, attempts[0].outcome], [1, "rejected"]);
  }
});

test("a link that could run a script is refused", async () => {
  for (const clickAction of ["javascript:alert(1)", " JavaScript:alert(1)", "data:text/html,x", "vbscript:x"]) {
    const { attempts } = await reaches(await send(newUser(), { clickAction }), "failed");
    assert.match(attempts[0].error, /clickAction must be/);
  }
});

const item = (userId: string, n: number, more: Partial<NewItem> = {}): NewItem => ({
  id: `0197b6a0-0000-7000-8000-${String(n).padStart(12, "0")}`,
  tenant: 1,
  userId,
  category: null,
  title: `n${n}`,
  body: null,
  data: null,
  link: null,
  ...more,
});

test("a resend makes no second item and leaves no hole in the numbering", async () => {
  const user = newUser();
  await storeItems(service.db, [item(user, 1), item(user, 2), item(user, 1)]);
  await storeItems(service.db, [item(user, 2), item(user, 3), item(user, 1)]);
  const { rows } = await service.db.query(
    "select seq::int, title from carillon.inbox_items where user_id = $1 order by seq",
    [user],
  );
  assert.deepEqual(rows, [
    { seq: 1, title: "n1" },
    { seq: 2, title: "n2" },
    { seq: 3, title: "n3" },
  ]);
});

test("many batches at once for the same users number each inbox without gaps or doubles", async () => {
  const names = Array.from({ length: 5 }, newUser);
  let n = 1_000;
  const batches = Array.from({ length: 40 }, () =>
    [...names].sort(() => Math.random() - 0.5).flatMap((user) => [item(user, ++n), item(user, ++n)]),
  );
  await Promise.all(batches.map((batch) => storeItems(service.db, batch)));
  for (const user of names) {
    const { rows } = await service.db.query(
      "select array_agg(seq::int order by seq) as seqs from carillon.inbox_items where user_id = $1",
      [user],
    );
    assert.deepEqual(
      rows[0].seqs,
      Array.from({ length: 80 }, (_, k) => k + 1),
    );
  }
});

test("a list goes page by page, and by category, by unread and by archived", async () => {
  const user = newUser();
  const made = Array.from({ length: 7 }, (_, k) => item(user, 100 + k, { category: k % 2 ? "odd" : "even" }));
  await storeItems(service.db, made);
  const newestFirst = made.map(({ id }) => id).reverse();
  const pages: string[] = [];
  let cursor = "";
  do {
    const page = await list(user, `?limit=3${cursor && `&cursor=${cursor}`}`);
    pages.push(...idsOf(page));
    cursor = page.nextCursor;
    assert.equal(page.unread, 7);
  } while (cursor);
  assert.deepEqual(pages, newestFirst);

  assert.equal((await list(user, "?category=odd")).data.length, 3);
  const [first = "", second = ""] = newestFirst;
  const archived = await service.ask("POST", path(user, "/archive"), { ids: [first] });
  assert.deepEqual(archived.body, { marked: 1, unread: 6 });
  const read = await service.ask("POST", path(user, "/read"), { ids: [second, first] });
  assert.deepEqual(read.body, { marked: 2, unread: 5 });
  assert.deepEqual(idsOf(await list(user)), newestFirst.slice(1));
  assert.deepEqual(idsOf(await list(user, "?unread=true")), newestFirst.slice(2));
  assert.deepEqual(idsOf(await list(user, "?archived=true")), [first]);
  assert.ok((await list(user)).data[0].readAt);

  const odd = await service.ask("POST", path(user, "/read-all"), { category: "odd" });
  assert.deepEqual(odd.body, { marked: 2, unread: 3 });
  const all = await service.ask("POST", path(user, "/read-all"));
  assert.deepEqual(all.body, { marked: 3, unread: 0 });
  assert.deepEqual((await service.ask("GET", path(user, "/unread"))).body, { unread: 0 });
  for (const query of ["?cursor=%25", "?limit=0", "?unread=yes", "?order=asc"]) {
    assert.equal((await service.ask("GET", path(user, query))).status, 422, query);
  }
});

test("an ack makes it delivered, once, with the time it took", async () => {
  const user = newUser();
  const id = await send(user);
  await reaches(id, "sent");
  const acks = await Promise.all(
    Array.from({ length: 5 }, () => service.ask("POST", path(user, "/ack"), { ids: [id] })),
  );
  assert.deepEqual(acks.map(({ body }) => body.marked).sort(), [0, 0, 0, 0, 1]);
  const { events } = await reaches(id, "delivered");
  const told = events.filter(({ type }: { type: string }) => type === "delivered");
  assert.equal(told.length, 1);
  assert.deepEqual([told[0].from, told[0].to, told[0].provider], ["sent", "delivered", "inbox"]);
  const { rows } = await service.db.query(
    "select latency_ms from carillon.events where notification_id = $1 and type = 'delivered'",
    [id],
  );
  assert.ok(rows[0].latency_ms >= 0 && rows[0].latency_ms < 60_000);
  assert.equal((await list(user)).unread, 1, "to have it is not to have read it");
});

test("an ack that outruns the sender's own commit counts as soon as it is sent", async () => {
  const user = newUser();
  const { body } = await service.ask("POST", "/v1/notifications", {
    channel: "inbox",
    recipient: { userId: user },
    content: { title: "later" },
    scheduledFor: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const id = body.notificationId;
  await storeItems(service.db, [item(user, 500, { id })]);
  assert.equal((await service.ask("POST", path(user, "/ack"), { ids: [id] })).body.marked, 1);
  assert.equal((await record(id)).status, "pending", "what waits is not delivered");
  await service.ask("PATCH", `/v1/notifications/${id}`, { scheduledFor: new Date().toISOString() });
  const { events } = await reaches(id, "delivered");
  assert.equal(events.at(-1).type, "delivered");
  assert.equal((await list(user)).data.length, 1);
});

test("a subscriber's token reads and marks its own inbox and does nothing else", async () => {
  const [mine, other] = [newUser(), newUser()];
  await storeItems(service.db, [item(mine, 600), item(other, 601)]);
  const key = await tokenFor(mine);
  assert.match(key, /^ct_/);
  const ids = [item(other, 601).id];
  assert.equal((await service.ask("GET", path(mine), undefined, { key })).body.data.length, 1);
  assert.equal((await service.ask("POST", path(mine, "/read"), { ids }, { key })).body.marked, 0, "nor by its id");
  assert.equal((await list(other)).unread, 1);
  for (const [method, where, body] of [
    ["GET", path(other)],
    ["GET", path(other, "/unread")],
    ["POST", path(other, "/read"), { ids }],
    ["POST", path(other, "/read-all")],
    ["POST", path(other, "/session")],
    ["POST", path(mine, "/tokens")],
    ["GET", "/v1/notifications"],
    ["GET", "/v1/queue"],
    ["POST", "/v1/notifications", { channel: "inbox", recipient: { userId: mine }, content: { title: "x" } }],
    ["GET", "/v1/keys"],
  ] as const) {
    const answer = await service.ask(method, where, body, { key });
    assert.deepEqual([answer.status, answer.body.code], [403, "FORBIDDEN"], `${method} ${where}`);
  }
});

test("a token that was changed, has expired or stands in the URL opens nothing", async () => {
  const user = newUser();
  const token = await tokenFor(user, { expiresInSeconds: 60 });
  const [claims = "", signature = ""] = token.slice(3).split(".");
  const forged = Buffer.from(claims, "base64url").toString().replace("user", "User");
  for (const key of [
    `ct_${Buffer.from(forged).toString("base64url")}.${signature}`,
    `ct_${claims}.${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`,
    `ct_${claims}.`,
    `ct_${claims}`,
    "ct_",
  ]) {
    assert.equal((await service.ask("GET", path(user), undefined, { key })).status, 401, key);
  }
  assert.equal((await service.ask("GET", path(user, `?token=${token}`), undefined, { key: null })).status, 401);
  const short = await tokenFor(user, { expiresInSeconds: 1 });
  const refused = await until(async () => {
    const answer = await service.ask("GET", path(user), undefined, { key: short });
    return answer.status === 401 ? answer : undefined;
  });
  assert.equal(refused.body.detail, "the token has expired");
  assert.equal((await service.ask("POST", path(user, "/tokens"), { expiresInSeconds: 86_401 })).status, 422);
});

test("another tenant's inbox of the same name is another inbox", async () => {
  const user = newUser();
  await storeItems(service.db, [item(user, 700)]);
  const theirs = await service.makeKey({ tenant: "others", scopes: ["admin"] });
  const token = await tokenFor(user, undefined, theirs);
  for (const key of [theirs, token]) {
    const { body } = await service.ask("GET", path(user), undefined, { key });
    assert.deepEqual([body.data, body.unread], [[], 0]);
    const marked = await service.ask("POST", path(user, "/read"), { ids: [item(user, 700).id] }, { key });
    assert.equal(marked.body.marked, 0);
  }
  assert.equal((await list(user)).unread, 1);
});

test("a key with the scope read reads any inbox, and marks none", async () => {
  const user = newUser();
  await storeItems(service.db, [item(user, 800)]);
  const key = await service.makeKey({ scopes: ["read"] });
  assert.equal((await service.ask("GET", path(user), undefined, { key })).body.data.length, 1);
  assert.equal((await service.ask("POST", path(user, "/read-all"), undefined, { key })).status, 403);
  assert.equal((await service.ask("POST", path(user, "/tokens"), undefined, { key })).status, 403);
});

test("a session is a cookie that no script reads and no other origin uses", async () => {
  const user = newUser();
  await storeItems(service.db, [item(user, 900)]);
  const key = await tokenFor(user);
  const begun = await service.ask("POST", path(user, "/session"), undefined, { key });
  assert.equal(begun.status, 204);
  const set = begun.headers.get("set-cookie") ?? "";
  assert.match(set, /^carillon_inbox=ct_[^;]+; Path=\/v1\/inbox; Max-Age=3\d{3}; HttpOnly; SameSite=Strict$/);
  const cookie = set.split(";")[0] ?? "";
  const by = (headers: object) => ({ key: null, headers: { cookie, ...headers } });
  assert.equal((await service.ask("GET", path(user), undefined, by({}))).body.data.length, 1);
  assert.equal((await service.ask("GET", path(newUser()), undefined, by({}))).status, 403);
  assert.equal((await service.ask("GET", "/v1/notifications", undefined, by({}))).status, 401);

  const own = by({ origin: service.url });
  const configured = by({ origin: "https://app.example.com" });
  const strange = by({ origin: "https://evil.example.com" });
  assert.equal((await service.ask("POST", path(user, "/read-all"), undefined, strange)).status, 403);
  assert.equal((await list(user)).unread, 1);
  assert.equal((await service.ask("POST", path(user, "/read-all"), undefined, own)).status, 200);
  assert.equal((await service.ask("POST", path(user, "/read-all"), undefined, configured)).status, 200);

  const secure = await service.ask("POST", path(user, "/session"), undefined, {
    key,
    headers: { "x-forwarded-proto": "https" },
  });
  assert.match(secure.headers.get("set-cookie") ?? "", /; Secure$/);
  const ended = await service.ask("DELETE", path(user, "/session"), undefined, by({}));
  assert.match(ended.headers.get("set-cookie") ?? "", /^carillon_inbox=; .*Max-Age=0/);
});

test("pages of configured origins may ask, and of no others", async () => {
  const user = newUser();
  const preflight = (origin: string, where = path(user, "/read")) =>
    service.ask("OPTIONS", where, undefined, {
      key: null,
      headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "authorization" },
    });
  const allowed = await preflight("https://app.example.com");
  assert.equal(allowed.status, 204);
  assert.equal(allowed.headers.get("access-control-allow-origin"), "https://app.example.com");
  assert.equal(allowed.headers.get("access-control-allow-credentials"), "true");
  assert.match(allowed.headers.get("access-control-allow-headers") ?? "", /authorization.*last-event-id/);
  assert.equal(allowed.headers.get("vary"), "origin");
  for (const answer of [
    await preflight("https://evil.example.com"),
    await preflight("https://app.example.com.evil.com"),
    await preflight("null"),
    await preflight("https://app.example.com", "/v1/notifications"),
  ]) {
    assert.equal(answer.headers.get("access-control-allow-origin"), null);
  }
  const origin = "https://app.example.com";
  const read = await service.ask("GET", path(user), undefined, { headers: { origin } });
  assert.equal(read.headers.get("access-control-allow-origin"), origin);
  assert.equal(read.headers.get("cross-origin-resource-policy"), "cross-origin");
  const refused = await service.ask("GET", path(user), undefined, { key: null, headers: { origin } });
  assert.deepEqual([refused.status, refused.headers.get("access-control-allow-origin")], [401, origin]);
});

test("the keeper forgets old items, and inboxes that nobody used since", async () => {
  const [used, left] = [newUser(), newUser()];
  await storeItems(service.db, [item(used, 1_900), item(left, 1_901)]);
  await service.db.query(
    "update carillon.inbox_items set created_at = now() - interval '100 days' where user_id = any ($1)",
    [[used, left]],
  );
  await service.db.query(
    "update carillon.inboxes set changed_at = now() - interval '100 days' where user_id = any ($1)",
    [[used, left]],
  );
  const fresh = "fffffff0-0000-7000-8000-000000000001";
  await storeItems(service.db, [item(used, 0, { id: fresh })]);
  // Ids of the year 2025 are old enough by themselves.
  const { rows } = await service.db.query("select carillon.forget_items(now() - interval '90 days', 1000) as n");
  assert.ok(rows[0].n >= 2);
  await service.db.query("select carillon.forget_items(now() - interval '90 days', 1000)");
  assert.deepEqual(idsOf(await list(used)), [fresh]);
  const boxes = await service.db.query(
    "select user_id, forgotten_seq::int from carillon.inboxes where user_id = any ($1)",
    [[used, left]],
  );
  assert.deepEqual(boxes.rows, [{ user_id: used, forgotten_seq: 1 }]);
});
