// GET /v1/events: what happened to a tenant's notifications, in order, from any position on.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { findHistory } from "#record/events.ts";
import { attempt } from "../support/feed.ts";
import { email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService({ roles: ["api"] });
});
after(() => service.stop());

const send = async (request: object = {}, key?: string): Promise<string> =>
  (await service.ask("POST", "/v1/notifications", { ...email(), ...request }, key ? { key } : {})).body.notificationId;
const ask = (query: string, key?: string) => service.ask("GET", `/v1/events${query}`, undefined, key ? { key } : {});

type Fact = { position: string; id: string; type: string; notificationId: string; at: string; [name: string]: unknown };

/** Until this many are told; others on the server hold up what happened last. */
const told = (query: string, least: number, key?: string): Promise<{ data: Fact[]; next: string; isAtEnd: boolean }> =>
  until(async () => {
    const { status, body } = await ask(query, key);
    assert.equal(status, 200, JSON.stringify(body));
    return body.data.length >= least ? body : undefined;
  });
const words = (facts: Fact[]) => facts.map(({ type, notificationId }) => `${type} ${notificationId}`);

test("a tenant reads what happened, with what the record says, page by page", async () => {
  const key = await service.makeKey({ tenant: "pages", scopes: ["send", "read"] });
  const later = new Date(Date.now() + 3_600_000).toISOString();
  const first = await send({ priority: "high", recipient: { email: "ada@example.com", userId: "ada" } }, key);
  const second = await send({ scheduledFor: later }, key);
  await service.ask("POST", `/v1/notifications/${second}/cancel`, {}, { key });
  const { data, next } = await told("", 3, key);
  assert.deepEqual(words(data), [`accepted ${first}`, `accepted ${second}`, `cancelled ${second}`]);
  const { position, id, at, acceptedAt, ...rest } = data[2] as Fact;
  assert.ok(Date.parse(String(acceptedAt)) <= Date.parse(at));
  assert.deepEqual(rest, {
    type: "cancelled",
    notificationId: second,
    event: "cancelled",
    from: "pending",
    to: "cancelled",
    channel: "email",
    priority: "normal",
  });
  assert.match(id, new RegExp(`^${second}:\\d+$`));
  assert.equal(data[0]?.id, `${first}:0`);
  assert.deepEqual(
    [data[0]?.to, data[0]?.priority, data[0]?.userId, data[1]?.to],
    ["queued", "high", "ada", "pending"],
  );
  assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000);
  assert.equal(position, next);

  const one = await told("?limit=1", 1, key);
  assert.deepEqual(words(one.data), words(data.slice(0, 1)));
  assert.deepEqual((await ask(`?after=${one.next}`, key)).body.data, data.slice(1));
  assert.deepEqual((await ask(`?after=${next}`, key)).body, { data: [], next, isAtEnd: true });
  assert.deepEqual((await ask(`?types=cancelled,sent`, key)).body.data, data.slice(2));
});

test("nobody is told of another tenant's, and a key that may not read is refused", async () => {
  const [mine, sender] = await Promise.all([
    service.makeKey({ tenant: "mine", scopes: ["send", "read"] }),
    service.makeKey({ tenant: "theirs", scopes: ["send"] }),
  ]);
  const theirs = await send({}, sender);
  const id = await send({}, mine);
  assert.deepEqual(words((await told("", 1, mine)).data), [`accepted ${id}`]);
  assert.deepEqual((await ask(`?notification=${theirs}`, mine)).body.data, []);
  assert.equal((await ask("", sender)).status, 403);
});

test("the facts of one notification are its history, with positions in the feed", async () => {
  const key = await service.makeKey({ tenant: "one", scopes: ["send", "read"] });
  const id = await send({}, key);
  await send({}, key);
  const { rows } = await service.db.query("select id from carillon.tenants where name = 'one'");
  await attempt(service.db, [id], "pending", rows[0].id);
  await service.ask("POST", `/v1/notifications/${id}/cancel`, {}, { key });
  await service.ask("POST", `/v1/notifications/${id}/retry`, {}, { key });
  const { data } = await told(`?notification=${id}`, 4, key);
  assert.deepEqual(
    data.map(({ type }) => type),
    ["accepted", "retrying", "cancelled", "retried"],
  );
  const whole = await told("", 5, key);
  assert.deepEqual(
    data,
    whole.data.filter(({ notificationId }) => notificationId === id),
  );
  const { events } = await findHistory(service.db, rows[0].id, id);
  assert.deepEqual(
    data.map(({ event, at }) => ({ event, at })),
    events.map(({ type, at }) => ({ event: type, at })),
  );
  assert.deepEqual((await ask(`?notification=${id}&after=${data[1]?.position}`, key)).body.data, data.slice(2));
  assert.deepEqual((await ask(`?notification=${id}&limit=2`, key)).body.data, data.slice(0, 2));
});

test("since an instant begins with what happened then", async () => {
  const key = await service.makeKey({ tenant: "since", scopes: ["send", "read"] });
  await send({}, key);
  const second = await send({}, key);
  const { data, next } = await told("", 2, key);
  const at = data[1]?.at as string;
  // A fact's own instant has microseconds.
  const found = (await ask(`?since=${at}`, key)).body;
  assert.ok(words(found.data).includes(`accepted ${second}`));
  const later = new Date(Date.now() + 3_600_000).toISOString();
  const none = (await ask(`?since=${later}`, key)).body;
  assert.deepEqual(none.data, []);
  const third = await send({}, key);
  assert.deepEqual(words((await told(`?after=${none.next}`, 1, key)).data), [`accepted ${third}`]);
  assert.ok(next);
});

test("a position that is none of ours is refused, or reset with where to go on", async () => {
  const { body } = await ask("?after=17");
  assert.deepEqual([body.code, body.errors[0].path], ["VALIDATION_FAILED", "/after"]);
  assert.equal((await ask("?types=sent,nonsense")).status, 422);
  const [epoch] = (await ask("")).body.next.split(":");
  for (const after of [`${epoch}:999999999999999:0:0`, `${Number(epoch) + 1}:0:0:0`]) {
    const { status, body } = await ask(`?after=${after}`);
    assert.deepEqual([status, body.code, body.next], [410, "RESET", `${epoch}:0:0:0`]);
    assert.equal((await ask(`?after=${body.next}`)).status, 200);
  }
});
