// Whatever name can be stored can be read, listed and deleted by it, at its longest and oddest.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { createClient } from "#client/client.ts";
import { createInboxApi } from "../../web/inbox/api.ts";
import { byHand } from "../support/by-hand.ts";
import { ADMIN_KEY, type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

/** Not repeated, as PostgreSQL compresses what repeats before it asks whether it fits into an index. */
const random = (length: number) => randomBytes(length).toString("base64url").slice(0, length);
const emoji = (length: number) =>
  Array.from(randomBytes(length), (byte) => String.fromCodePoint(0x1f600 + (byte % 64))).join("");
const anything = (length: number) => [
  random(length),
  emoji(length),
  "a/b",
  "/",
  "../x",
  "...",
  "a?b#c",
  "100%",
  "%2F",
  "%252e",
  "%",
  " a  b ",
  "a+b&c=d;e",
  "Zoë 👩‍🚀 e\u0301 \u202e",
  "\\\"'<>`{}|^[]",
  ":id",
  "*",
  "__proto__",
];
const printable = (length: number) => anything(length).filter((id) => /^[!-~]+$/.test(id));
const plain = (length: number) => [random(length), "...", ".a", "~", "a:b@c", "-", "_", "batch", "next"];

const notification = { channel: "console", content: { body: "Hello" } };
const user = "u/17 é";
const encoded = encodeURIComponent;

type Resource = {
  ids: string[];
  path: (id: string) => string;
  body: object;
  /** What the answer and the list call it. */
  field: string;
  /** What is kept of a name that is not kept as it is. */
  keptAs?: (id: string) => string;
  list: string | ((id: string) => string);
  reads?: (path: string) => string[];
};

const RESOURCES: { [name: string]: Resource } = {
  templates: {
    ids: plain(128),
    path: (id) => `/v1/templates/${encoded(id)}`,
    body: { channel: "console", name: "x", content: { body: "Hello" } },
    field: "id",
    list: "/v1/templates",
    reads: (path) => [path, `${path}/versions`],
  },
  schedules: {
    ids: plain(200),
    path: (id) => `/v1/schedules/${encoded(id)}`,
    body: { every: "P1D", notification },
    field: "key",
    list: "/v1/schedules",
    reads: (path) => [path, `${path}/next`, `${path}/runs`],
  },
  reminders: {
    ids: plain(200),
    path: (id) => `/v1/reminders/${encoded(id)}`,
    body: { at: "2099-01-01T00:00:00Z", before: ["PT1H"], notification },
    field: "key",
    list: "/v1/reminders",
    reads: (path) => [path],
  },
  "reminder scopes": {
    ids: printable(128).map((id) => `guild:${id}`),
    path: (id) => `/v1/reminder-scopes/${encoded(id)}`,
    body: { before: ["PT1H"] },
    field: "scope",
    list: "/v1/reminder-scopes",
    reads: (path) => [path],
  },
  suppressions: {
    ids: [...printable(254), emoji(254), "İ".repeat(254)].map((id) => `${id}@x`.slice(-254)),
    keptAs: (id) => id.toLowerCase(),
    path: (id) => `/v1/suppressions/${encoded(id)}`,
    body: {},
    field: "address",
    list: "/v1/suppressions",
  },
  "devices of a user": {
    ids: [...anything(4096), random(163)],
    path: (id) => `/v1/users/${encoded(user)}/devices/${encoded(id)}`,
    body: { platform: "android" },
    field: "token",
    list: `/v1/users/${encoded(user)}/devices`,
  },
  "users with a device": {
    ids: anything(256),
    keptAs: () => "a/b",
    path: (id) => `/v1/users/${encoded(id)}/devices/a%2Fb`,
    body: { platform: "ios" },
    field: "token",
    list: (id) => `/v1/users/${encoded(id)}/devices`,
  },
};

async function listed(first: string, field: string): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { status, body } = await service.ask("GET", `${first}${cursor && `?limit=2&cursor=${encoded(cursor)}`}`);
    assert.equal(status, 200, `${first.slice(0, 60)} after ${cursor.slice(0, 40)}`);
    found.push(...body.data.map((item: { [name: string]: string }) => item[field]));
    cursor = body.nextCursor ?? null;
  }
  return found;
}

for (const [name, { ids, path, body, field, list, keptAs = (id: string) => id, reads = () => [] }] of Object.entries(
  RESOURCES,
)) {
  test(`${name} can be kept, read, listed and deleted under any name that they may have`, async () => {
    const listOf = (id: string) => (typeof list === "string" ? list : list(id));
    for (const id of ids) {
      const shown = id.slice(0, 40);
      const kept = await service.ask("PUT", path(id), body);
      assert.ok(kept.status === 200 || kept.status === 201, `${shown}: ${kept.status} ${kept.body.code}`);
      assert.equal(kept.body[field], keptAs(id));
      for (const read of reads(path(id)))
        assert.equal((await service.ask("GET", read)).status, 200, `GET ${read.slice(0, 100)}`);
      assert.ok((await listed(listOf(id), field)).includes(keptAs(id)), `${shown} is in the list`);
      // A token belongs to one user at a time: the next of them may take it.
      if (typeof list !== "string") assert.equal((await service.ask("DELETE", path(id))).status, 204);
    }
    if (typeof list !== "string") return;
    assert.deepEqual((await listed(list, field)).toSorted(), ids.map(keptAs).toSorted(), "all, page by page");
    for (const id of ids) assert.equal((await service.ask("DELETE", path(id))).status, 204);
    assert.deepEqual(await listed(list, field), []);
  });
}

test("an inbox can be read and marked whatever its user is called, by the web component as well", async () => {
  for (const userId of anything(256)) {
    const minted = await service.ask("POST", `/v1/inbox/${encoded(userId)}/tokens`);
    assert.equal(minted.body.userId, userId);
    const api = createInboxApi(service.url, userId, () => minted.body.token);
    const page = await api.list({});
    assert.ok(page.ok, userId.slice(0, 40));
    assert.deepEqual(page.value.data, []);
    assert.ok((await api.mark("read-all", {})).ok);
    const { notificationId } = await client().send({
      channel: "inbox",
      recipient: { userId },
      content: { title: "Hello" },
    });
    const sent = await client().list({ userId });
    assert.deepEqual(
      sent.data.map((record) => record.notificationId),
      [notificationId],
    );
  }
});

test("the client reaches schedules, reminders and scopes under any name", async () => {
  const { schedules, reminders } = client();
  const notice = { channel: "console" as const, content: { body: "Hello" } };
  for (const key of plain(200)) {
    await schedules.put(key, { every: "P1D", notification: notice });
    await reminders.put(key, { at: "2099-01-01T00:00:00Z", before: [], notification: notice });
    assert.deepEqual([(await schedules.get(key)).key, (await reminders.get(key)).key], [key, key]);
    assert.deepEqual((await schedules.runs(key)).data, []);
    await schedules.pause(key);
    await schedules.delete(key);
    await reminders.delete(key);
  }
  for (const scope of RESOURCES["reminder scopes"]?.ids ?? []) {
    await reminders.putScope(scope, ["PT1H"]);
    assert.equal((await reminders.getScope(scope)).scope, scope);
  }
});

test("nobody is called . or .., which most clients take for another path", async () => {
  for (const path of ["templates/..", "schedules/..", "reminders/.", "users/../devices/x", "users/x/devices/."]) {
    assert.equal(await statusOf("PUT", `/v1/${path}`), 422, path);
    assert.equal(await statusOf("PUT", `/v1/${path.replaceAll(".", "%2e")}`), 422, path);
  }
  assert.equal(await statusOf("POST", "/v1/inbox/../tokens"), 404);
  const sent = await service.ask("POST", "/v1/notifications", {
    channel: "inbox",
    recipient: { userId: ".." },
    content: { title: "Hello" },
  });
  assert.deepEqual([sent.status, sent.body.errors[0].path], [422, "/recipient/userId"]);
});

test("a name with NUL is refused on every path and in every query, and so is one that is too long", async () => {
  const { paths } = (await service.ask("GET", "/openapi.json")).body;
  const named = Object.entries<object>(paths).flatMap(([path, methods]) =>
    path.includes("{") ? Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() })) : [],
  );
  assert.ok(named.length > 30);
  for (const { path, method } of named) {
    // Each route has its own limits: this is over all of them.
    for (const name of ["%00", "a%00b", "x".repeat(5_000)]) {
      const status = await statusOf(method, path.replace(/\{\w+\}/g, name));
      assert.equal(status, method === "PUT" ? 422 : 404, `${method} ${path} with ${name.slice(0, 10)}`);
    }
  }
  for (const [path, methods] of Object.entries<{ get?: object }>(paths)) {
    if (!methods.get || !path.startsWith("/v1")) continue;
    const { status } = await service.ask("GET", `${path.replace(/\{\w+\}/g, "x:1")}?cursor=%00&userId=a%00`);
    assert.ok(status === 422 || status === 404, `${status} for ${path}`);
  }
});

const client = () => createClient({ url: service.url, key: ADMIN_KEY });

const statusOf = async (method: string, path: string): Promise<number> =>
  (await byHand(service.url, method, path, method.startsWith("P") ? "{}" : undefined)).status;

test("`since` and `until` before 1970 mean what they say", async () => {
  const { notificationId } = await client().send({
    channel: "console",
    content: { body: "Hello" },
    metadata: { at: "1970" },
  });
  for (const since of [
    "1000-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "1970-01-01T00:00:00Z",
    "1970-01-02T00:00:00Z",
  ]) {
    const { data } = await client().list({ since, metadata: { at: "1970" } });
    assert.deepEqual(
      data.map((record) => record.notificationId),
      [notificationId],
      since,
    );
    assert.deepEqual((await client().list({ until: since })).data, [], since);
    const costs = await service.ask("GET", `/v1/costs?since=${since}`);
    assert.deepEqual([costs.status, costs.body.since.slice(0, 4)], [200, since.slice(0, 4)]);
    assert.equal((await service.ask("GET", `/v1/dead-letters?since=${since}`)).status, 200);
    const requeued = await service.ask("POST", "/v1/dead-letters/requeue", { filter: { until: since } });
    assert.deepEqual([requeued.status, requeued.body.matched], [200, 0]);
  }
});
