// Finding notifications, and dead letters by what they have in common.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { makeDead } from "../support/dead-letters.ts";
import { type Service, startService } from "../support/service.ts";

let service: Service;
before(async () => {
  service = await startService();
});
after(() => service.stop());

const send = async (request: object): Promise<string> => {
  const { status, body } = await service.ask("POST", "/v1/notifications", request);
  assert.equal(status, 202, JSON.stringify(body));
  return body.notificationId;
};
const search = async (query: { [name: string]: string }, key?: string) => {
  const { status, body } = await service.ask(
    "GET",
    `/v1/notifications?${new URLSearchParams(query)}`,
    undefined,
    key ? { key } : {},
  );
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};
const idsOf = ({ data }: { data: { notificationId: string }[] }) => data.map(({ notificationId }) => notificationId);

test("a notification is found by where it goes, its template, its id and what went wrong", async () => {
  const mail = await send({
    channel: "email",
    recipient: { email: "Grace@Example.com", userId: "grace" },
    content: { templateId: "welcome" },
  });
  const text = await send({ channel: "sms", recipient: { phone: "+33612345678" }, content: { body: "b" } });
  const slack = await send({ channel: "slack", recipient: { slackChannel: "#Alerts" }, content: { body: "b" } });
  const [failed = ""] = await makeDead(service.db, 1, { error: "554 Mailbox <x> is FULL", provider: "ses" });
  for (const [query, id] of [
    [{ recipient: "grace@example.COM" }, mail],
    [{ recipient: "+33612345678" }, text],
    [{ recipient: "#alerts" }, slack],
    [{ templateId: "welcome" }, mail],
    [{ templateId: "welcome", userId: "grace", channel: "email" }, mail],
    [{ id: text }, text],
    [{ error: "mailbox <x> is full" }, failed],
    [{ error: "full", status: "failed", provider: "ses" }, failed],
    [{ status: "failed", channel: "console" }, failed],
  ] as const) {
    const found = await search(query);
    assert.deepEqual(idsOf(found), [id], JSON.stringify(query));
    assert.equal(found.nextCursor, null);
    assert.equal(found.searchedUntil, undefined, "everything was looked at");
  }
  assert.deepEqual(idsOf(await search({ recipient: "example.com" })), []);
  assert.deepEqual(idsOf(await search({ error: "full", status: "sent" })), []);
  const theirs = await service.makeKey({ tenant: "other", scopes: ["read"] });
  assert.deepEqual(idsOf(await search({ recipient: "grace@example.com" }, theirs)), []);
});

test("a rare value is looked for page by page, and each says how far it has looked", async () => {
  const rare = await send({
    channel: "email",
    recipient: { email: "rare@example.com" },
    content: { subject: "s", textBody: "t" },
  });
  await service.db.query(
    `insert into carillon.notifications (tenant, id, seq, channel, priority, accepted_at, request)
     select 1, carillon.first_id(carillon.now() + interval '1 s' + n * interval '1 ms'), nextval('carillon.acceptance'), 'console', 2, carillon.now(),
       '{"recipient": {"email": "common@example.com"}, "content": {}}' from generate_series(1, 20500) as n`,
  );
  const first = await search({ recipient: "rare@example.com" });
  assert.deepEqual([idsOf(first), first.looked], [[], 20_000]);
  assert.ok(Date.parse(first.searchedUntil) > Date.now() - 600_000);
  const second = await search({ recipient: "rare@example.com", cursor: first.nextCursor });
  assert.deepEqual([idsOf(second), second.nextCursor], [[rare], null]);
  assert.ok(second.looked < 20_000);
  // A page that is full was not looked for in vain.
  const full = await search({ recipient: "common@example.com", limit: "10" });
  assert.deepEqual([full.data.length, full.looked], [10, 10], "and no further than it goes");
  assert.notEqual(full.nextCursor, null);
});

test("dead letters are grouped by cause, provider and channel, whatever tells one message from another", async () => {
  const theirs = await service.makeKey({ tenant: "grouped", scopes: ["read", "send"] });
  const { rows } = await service.db.query("select id from carillon.tenants where name = 'grouped'");
  const tenant = rows[0].id;
  for (const n of [1, 2, 3]) {
    const error = `550 5.1.1 <u${n}@example.com> unknown, id 0198c1d${n}-aaaa-7bbb-8ccc-1234567890ab after ${100 + n} ms`;
    await makeDead(service.db, 1, { tenant, error, provider: "ses", channel: "email" });
  }
  await makeDead(service.db, 2, { tenant, error: "HTTP 503", provider: "hooks" });
  await makeDead(service.db, 1, { tenant, error: "HTTP 429", provider: "hooks" });
  const groups = async (query = "") => {
    const { status, body } = await service.ask("GET", `/v1/dead-letters/groups${query}`, undefined, { key: theirs });
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  const { data, total, nextCursor, searchedUntil } = await groups();
  assert.deepEqual([total, nextCursor, searchedUntil], [6, null, undefined]);
  type Group = { cause: string; provider: string; channel: string; count: number; examples: string[] };
  assert.deepEqual(
    data.map(({ cause, provider, channel, count, examples }: Group) => [
      cause,
      provider,
      channel,
      count,
      examples.length,
    ]),
    [
      ["550 5.1.1 # unknown, id # after # ms", "ses", "email", 3, 3],
      ["HTTP 503", "hooks", "console", 2, 2],
      ["HTTP 429", "hooks", "console", 1, 1],
    ],
  );
  const one = await groups("?provider=hooks&limit=1");
  assert.deepEqual([one.data.length, one.total], [1, 3]);
  // A group can be planned by its cause.
  const { body } = await service.ask(
    "POST",
    "/v1/plans",
    { kind: "requeue", filter: { cause: data[0].cause } },
    { key: theirs },
  );
  assert.equal(body.count, 3);
});

test("groups are of the newest ten thousand failures, and say so", async () => {
  await service.makeKey({ tenant: "many", scopes: ["read"] }).then(async (key) => {
    const { rows } = await service.db.query("select id from carillon.tenants where name = 'many'");
    await makeDead(service.db, 10_003, { tenant: rows[0].id, error: "HTTP 500" });
    const ask = async (cursor = "") =>
      (await service.ask("GET", `/v1/dead-letters/groups${cursor}`, undefined, { key })).body;
    const first = await ask();
    assert.deepEqual([first.total, first.looked, first.data[0].count], [10_000, 10_000, 10_000]);
    assert.ok(first.searchedUntil);
    const second = await ask(`?cursor=${first.nextCursor}`);
    assert.deepEqual([second.total, second.nextCursor], [3, null]);
  });
});
