// GET /v1/events with Accept: text/event-stream: whoever waits is told as it happens.

import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { openStream } from "../support/event-stream.ts";
import { email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
before(async () => {
  service = await startService({ roles: ["api"] });
});
after(() => service.stop());

const send = async (key: string, request: object = {}): Promise<string> =>
  (await service.ask("POST", "/v1/notifications", { ...email(), ...request }, { key })).body.notificationId;
const makeKey = (tenant: string) => service.makeKey({ tenant, scopes: ["send", "read"] });

async function wait(t: TestContext, key: string, query = "", headers: { [name: string]: string } = {}) {
  const stream = await openStream(`${service.url}/v1/events${query}`, {
    authorization: `Bearer ${key}`,
    accept: "text/event-stream",
    ...headers,
  });
  t.after(() => stream.close());
  return stream;
}
const factOf = ({ data }: { data: string }) => JSON.parse(data);

test("who waits is told what happens from then on, its own alone, and comes back without a gap", async (t) => {
  const [key, other] = [await makeKey("waits"), await makeKey("other")];
  await send(key);
  await until(async () =>
    (await service.ask("GET", "/v1/events", undefined, { key })).body.data[0] ? true : undefined,
  );
  const stream = await wait(t, key);
  assert.equal(stream.headers.get("content-type"), "text/event-stream; charset=utf-8");
  await send(other);
  const first = await send(key);
  const told = await stream.next("fact");
  const { position, type, notificationId, channel } = factOf(told);
  assert.deepEqual([type, notificationId, channel], ["accepted", first, "email"]);
  assert.equal(told.id, position);
  stream.close();

  const second = await send(key);
  await send(key, { scheduledFor: new Date(Date.now() + 60_000).toISOString() });
  const back = await wait(t, key, "?types=accepted,sent", { "last-event-id": told.id ?? "" });
  assert.equal(factOf(await back.next("fact")).notificationId, second);
  assert.equal(factOf(await back.next("fact")).to, "pending");
  assert.deepEqual(back.waiting(), []);
});

test("who asks for types, or for one notification, is told of these", async (t) => {
  const key = await makeKey("some");
  const later = { scheduledFor: new Date(Date.now() + 60_000).toISOString() };
  const [one, two] = [await send(key, later), await send(key, later)];
  const [types, single] = [
    await wait(t, key, "?types=cancelled"),
    await wait(t, key, `?notification=${two}&after=1:0:0:0`),
  ];
  assert.equal(factOf(await single.next("fact")).type, "accepted");
  for (const id of [one, two]) await service.ask("POST", `/v1/notifications/${id}/cancel`, {}, { key });
  assert.deepEqual(
    [factOf(await types.next("fact")), factOf(await types.next("fact"))].map(({ notificationId }) => notificationId),
    [one, two],
  );
  assert.deepEqual(
    [factOf(await single.next("fact"))].map(({ type, notificationId }) => [type, notificationId]),
    [["cancelled", two]],
  );
});

test("a stream ends when its key is revoked", async (t) => {
  const key = await makeKey("revoked");
  const stream = await wait(t, key);
  assert.equal(stream.status, 200);
  assert.equal((await service.ask("DELETE", `/v1/keys/${key.split("_")[1]}`)).status, 204);
  await stream.ended;
});

test("a tenant has no more than twenty streams, and others have theirs all the same", async (t) => {
  const [key, other] = [await makeKey("many"), await makeKey("few")];
  await Promise.all(Array.from({ length: 20 }, () => wait(t, key)));
  const refused = await wait(t, key);
  assert.deepEqual([refused.status, refused.problem.code], [429, "TOO_MANY_STREAMS"]);
  assert.equal((await wait(t, other)).status, 200);
});

test("a position that cannot be told from is refused before anything is told", async (t) => {
  const key = await makeKey("lost");
  const { status, problem } = await wait(t, key, "", { "last-event-id": "77:0:0:0" });
  assert.deepEqual([status, problem.code], [410, "RESET"]);
  assert.equal((await wait(t, key, "", { "last-event-id": "nonsense" })).status, 422);
});
