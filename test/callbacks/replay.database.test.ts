// What happened is told again to an endpoint that asks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type CallbackReceiver, startReceiver } from "../support/callback-receiver.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
let receiver: CallbackReceiver;
let key: string;
let tenants = 0;
/** By path; 204 where nothing is said. */
const answers = new Map<string, number>();
before(async () => {
  receiver = await startReceiver(({ path }, response) => void response.writeHead(answers.get(path) ?? 204).end());
  service = await startService({ roles: ["api", "worker"], allowAddresses: ["127.0.0.1"] });
});
after(async () => {
  await service.stop();
  receiver.close();
});

const LONG_AGO = "2026-01-01T00:00:00Z";

/** Each test has a tenant of its own, with nothing in its past. */
async function newTenant(): Promise<void> {
  key = await service.makeKey({ tenant: `t${++tenants}`, scopes: ["admin"] });
}
const make = async (path: string, events: string[]): Promise<string> => {
  const { status, body } = await service.ask(
    "POST",
    "/v1/endpoints",
    { url: `${receiver.url}${path}`, events },
    { key },
  );
  assert.equal(status, 201, JSON.stringify(body));
  return body.id;
};
const send = async (more: object = {}): Promise<string> => {
  const request = { channel: "console", content: { body: "b" }, ...more };
  return (await service.ask("POST", "/v1/notifications", request, { key })).body.notificationId;
};
const replay = (id: string, more: object = {}) =>
  service.ask("POST", `/v1/endpoints/${id}/replay`, { since: LONG_AGO, ...more }, { key });
const came = (path: string, count: number) =>
  until(async () => (receiver.at(path).length >= count ? receiver.at(path) : undefined), 60_000);
const told = (path: string) => receiver.at(path).map(({ body }) => body.data.notificationId);
/** Until the caller has passed them, told or not. */
const passed = (count: number) =>
  until(async () => {
    const { body } = await service.ask("GET", "/v1/events?types=sent", undefined, { key });
    if (body.data.length < count) return undefined;
    const [, at, seq] = body.data.at(-1).position.split(":").map(Number);
    const { rows } = await service.db.query(
      "select (key, seq) >= ($1, $2) as is from carillon.followers where name = 'callbacks'",
      [at, seq],
    );
    return rows[0]?.is ? true : undefined;
  }, 60_000);

test("what happened while an endpoint was disabled is replayed once it goes on, with what was told before under the same ids", async () => {
  await newTenant();
  const id = await make("/mended", ["sent"]);
  const first = await send();
  const [before] = await came("/mended", 1);
  answers.set("/mended", 410);
  const gone = await send();
  await until(async () =>
    (await service.ask("GET", `/v1/endpoints/${id}`, undefined, { key })).body.state === "disabled" ? true : undefined,
  );
  const missed = await send();
  await passed(3);
  answers.delete("/mended");
  const refused = await replay(id);
  assert.deepEqual([refused.status, refused.body.code], [409, "ENDPOINT_DISABLED"]);

  await service.ask("POST", `/v1/endpoints/${id}/resume`, undefined, { key });
  const { status, body } = await replay(id);
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(body, { matched: 3, replayed: 3, nextCursor: null, dryRun: false });
  await came("/mended", 5);
  assert.deepEqual(new Set(told("/mended").slice(2)), new Set([first, gone, missed]));
  const again = receiver
    .at("/mended")
    .slice(2)
    .find((one) => one.body.data.notificationId === first);
  assert.equal(again?.headers["webhook-id"], before?.headers["webhook-id"]);
  assert.deepEqual(again?.body, before?.body);
});

test("an endpoint hears of what was before it was made: by type, by notification and between instants, counted first if asked", async () => {
  await newTenant();
  await make("/other", ["failed"]);
  const ids = [await send(), await send(), await send()];
  await passed(3);
  const id = await make("/new", ["accepted", "sent"]);
  const counted = async (more: object) => (await replay(id, { dryRun: true, ...more })).body.matched;
  assert.equal(await counted({}), 6);
  assert.equal(await counted({ types: ["sent"] }), 3);
  assert.equal(await counted({ types: ["failed"] }), 0, "it is told what it asked for");
  assert.equal(await counted({ until: LONG_AGO }), 0);
  assert.equal(await counted({ since: new Date(Date.now() + 3_600_000).toISOString() }), 0);
  assert.equal(receiver.at("/new").length, 0);
  const done = await replay(id, { notification: ids[1], types: ["sent"] });
  assert.equal(done.body.replayed, 1, JSON.stringify(done.body));
  await came("/new", 1);
  assert.deepEqual(told("/new"), [ids[1]]);
});

test("page by page each is told once", async () => {
  await newTenant();
  await make("/someone", ["failed"]);
  for (let n = 0; n < 7; n++) await send();
  await passed(7);
  const id = await make("/paged", ["sent"]);
  let cursor: string | null = null;
  let replayed = 0;
  do {
    const { body }: { body: { replayed: number; nextCursor: string | null } } = await replay(id, {
      limit: 3,
      ...(cursor && { cursor }),
    });
    replayed += body.replayed;
    cursor = body.nextCursor;
  } while (cursor !== null);
  assert.equal(replayed, 7);
  await came("/paged", 7);
  assert.equal(new Set(receiver.at("/paged").map(({ headers }) => headers["webhook-id"])).size, 7);
});

test("what requests asked for is replayed to the URLs that they named", async () => {
  await newTenant();
  const id = await send({ callbackUrl: `${receiver.url}/asked` });
  const [before] = await came("/asked", 1);
  await send();
  await passed(2);
  assert.equal((await replay("requests")).body.replayed, 1);
  const [, again] = await came("/asked", 2);
  assert.equal(again?.body.data.notificationId, id);
  assert.equal(again?.headers["webhook-id"], before?.headers["webhook-id"]);
});

test("what cannot be replayed is refused: nobody's endpoint, no cursor of ours, what is no longer kept", async () => {
  await newTenant();
  const id = await make("/never", ["sent"]);
  assert.equal((await replay("ep_000000000000000000000000")).status, 404);
  const mine = key;
  await newTenant();
  assert.equal((await replay(id)).status, 404);
  key = mine;
  assert.equal((await replay(id, { cursor: "x" })).status, 422);
  assert.equal((await service.ask("POST", `/v1/endpoints/${id}/replay`, {}, { key })).status, 422);
  await service.db.query("update carillon.epochs set forgotten_at = carillon.now()");
  const { status, body } = await replay(id);
  assert.deepEqual([status, body.code], [410, "RESET"]);
  assert.match(body.next, /^\d+:0:0:0$/);
  assert.equal((await replay(id, { cursor: body.next })).status, 200);
});
