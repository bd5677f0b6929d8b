// Streams of inboxes, over real connections: each item once and in order, or a reset; and never somebody else's.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ROLES } from "#config/server.ts";
import type { NewItem } from "#domain/inbox.ts";
import { storeItems } from "#store/inbox.ts";
import { type EventStream, openStream } from "../support/event-stream.ts";
import { controllableServer } from "../support/postgres.ts";
import { ADMIN_KEY, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

let service: Service;
/** Another replica on the same database, which does nothing but stream. */
let replica: Service;
before(async () => {
  service = await startService({ roles: ROLES, streamsPerUser: 5 });
  replica = await startService({ roles: ["stream"], databaseUrl: service.databaseUrl, maxStreams: 3 });
});
after(async () => {
  await replica.stop();
  await service.stop();
});

let users = 0;
const newUser = () => `u${++users}`;
let ids = 0;
const item = (userId: string, more: Partial<NewItem> = {}): NewItem => ({
  id: `0197b6a0-0000-7000-8000-${String(++ids).padStart(12, "0")}`,
  tenant: 1,
  userId,
  category: null,
  title: `n${ids}`,
  body: null,
  data: null,
  link: null,
  ...more,
});
const store = (...items: NewItem[]) => storeItems(service.db, items);

type OpenOptions = { after?: string; lastEventId?: string; key?: string; headers?: object };
const open = (userId: string, options: OpenOptions = {}, from: { url: string } = service): Promise<EventStream> => {
  const { after: position, lastEventId, key = ADMIN_KEY, headers = {} } = options;
  return openStream(`${from.url}/v1/inbox/${userId}/stream${position ? `?after=${position}` : ""}`, {
    authorization: `Bearer ${key}`,
    ...(lastEventId && { "last-event-id": lastEventId }),
    ...headers,
  });
};
async function send(userId: string, title = "Hello"): Promise<string> {
  const body = { channel: "inbox", recipient: { userId }, content: { title } };
  const answer = await service.ask("POST", "/v1/notifications", body);
  assert.equal(answer.status, 202);
  return answer.body.notificationId;
}
const status = async (id: string) => (await service.ask("GET", `/v1/notifications/${id}`)).body.status;
const titleOf = ({ data }: { data: string }) => JSON.parse(data).title;
const seqOf = ({ id = "" }: { id: string | undefined }) => Number(id.split(":")[1]);

test("what is sent arrives at once, with an id, the item and the count", async () => {
  const user = newUser();
  const stream = await open(user);
  assert.equal(stream.status, 200);
  assert.match(stream.headers.get("content-type") ?? "", /^text\/event-stream/);
  assert.match(stream.headers.get("cache-control") ?? "", /no-transform/);
  assert.equal(stream.headers.get("x-accel-buffering"), "no");
  assert.equal(stream.headers.get("x-content-type-options"), "nosniff");
  assert.ok(stream.headers.get("x-request-id"));
  const first = await stream.next();
  assert.deepEqual([first.name, first.data, first.id], ["unread", "0", "0:0"]);
  assert.equal(stream.retries.length, 1);

  const id = await send(user, "Ding");
  const told = await stream.next("notification");
  assert.match(told.id ?? "", /^\d+:1$/);
  const { createdAt, ...rest } = JSON.parse(told.data);
  assert.ok(createdAt);
  const nothing = { category: null, body: null, data: null, link: null, readAt: null, archivedAt: null };
  assert.deepEqual(rest, { id, title: "Ding", ...nothing });
  assert.equal((await stream.next("unread")).data, "1");
  stream.close();
});

test("through broken connections every item arrives once and in order", async () => {
  const user = newUser();
  const TOTAL = 400;
  const sending = (async () => {
    for (let n = 0; n < TOTAL; n += 8) {
      const four = () => [item(user), item(user), item(user), item(user)];
      await Promise.all([store(...four()), store(...four())]);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  const got: number[] = [];
  let lastEventId = "0:0";
  let connections = 0;
  while (got.length < TOTAL) {
    const from = connections++ % 2 ? replica : service;
    const stream = await open(user, { lastEventId }, from);
    const take = 1 + Math.floor(Math.random() * 40);
    for (let n = 0; n < take && got.length < TOTAL; n++) {
      const event = await stream.next();
      assert.notEqual(event.name, "reset");
      if (event.name !== "notification") continue;
      got.push(seqOf(event));
      lastEventId = event.id ?? "";
    }
    stream.close();
  }
  await sending;
  assert.deepEqual(
    got,
    Array.from({ length: TOTAL }, (_, n) => n + 1),
  );
  assert.ok(connections > 5);
});

test("who was told nothing yet resumes from where the stream began", async () => {
  const user = newUser();
  const stream = await open(user);
  const { id } = await stream.next("unread");
  stream.close();
  await store(item(user, { title: "while away" }));
  const again = await open(user, { lastEventId: id ?? "" });
  assert.equal(titleOf(await again.next("notification")), "while away");
  again.close();
});

test("a stream opened after the position of a list misses nothing in between", async () => {
  const user = newUser();
  await store(item(user));
  const { position } = (await service.ask("GET", `/v1/inbox/${user}`)).body;
  await store(item(user, { title: "in between" }));
  const stream = await open(user, { after: position });
  assert.equal(titleOf(await stream.next("notification")), "in between");
  // A browser repeats the URL; the header knows better.
  const further = await open(user, { after: position, lastEventId: position.replace(/:.*/, ":2") });
  await store(item(user, { title: "third" }));
  assert.equal(titleOf(await further.next("notification")), "third");
  stream.close();
  further.close();
});

test("what cannot be resumed is a reset, and goes on from there", async () => {
  const user = newUser();
  await store(item(user), item(user), item(user));
  const { position } = (await service.ask("GET", `/v1/inbox/${user}`)).body;
  const [epoch] = position.split(":");
  for (const lastEventId of ["1:2", `${epoch}:99`, "nonsense", `${Number(epoch) + 1}:3`]) {
    const stream = await open(user, { lastEventId });
    const reset = await stream.next();
    assert.deepEqual([reset.name, reset.id], ["reset", position], lastEventId);
    stream.close();
  }
  await service.db.query("update carillon.inboxes set forgotten_seq = 2 where user_id = $1", [user]);
  const early = await open(user, { lastEventId: `${epoch}:1` });
  assert.equal((await early.next()).name, "reset", "the retention took what it had not seen");
  await store(item(user, { title: "next" }));
  assert.equal(titleOf(await early.next("notification")), "next");
  early.close();
  const late = await open(user, { lastEventId: `${epoch}:2` });
  assert.equal(seqOf(await late.next()), 3);
  late.close();
});

test("who is far behind is told to load the list, and hundreds are told one by one", async () => {
  const user = newUser();
  await store(...Array.from({ length: 350 }, () => item(user, { body: "x".repeat(1_000) })));
  const stream = await open(user, { lastEventId: "0:0" });
  for (let seq = 1; seq <= 350; seq++) assert.equal(seqOf(await stream.next("notification")), seq);
  stream.close();
  await store(...Array.from({ length: 700 }, () => item(user)));
  const behind = await open(user, { lastEventId: "0:0" });
  assert.equal((await behind.next()).name, "reset");
  behind.close();
});

test("an inbox that was emptied and begun anew has another epoch", async () => {
  const user = newUser();
  await store(item(user), item(user));
  const live = await open(user);
  const { id: before } = await live.next("unread");
  await service.db.query("delete from carillon.inbox_items where user_id = $1", [user]);
  await service.db.query("delete from carillon.inboxes where user_id = $1", [user]);
  await store(item(user));
  const reset = await live.next("reset");
  assert.notEqual(reset.id?.split(":")[0], before?.split(":")[0]);
  live.close();
  const stream = await open(user, { lastEventId: before ?? "" });
  assert.equal((await stream.next()).name, "reset");
  stream.close();
});

test("the next Last-Event-ID says what has arrived: it is delivered then", async () => {
  const user = newUser();
  const stream = await open(user);
  const [one, two] = [await send(user), await send(user)];
  const first = await stream.next("notification");
  const second = await stream.next("notification");
  stream.close();
  const order = [JSON.parse(first.data).id, JSON.parse(second.data).id];
  assert.deepEqual([...order].sort(), [one, two].sort());
  const again = await open(user, { lastEventId: first.id ?? "" });
  await until(async () => ((await status(order[0])) === "delivered" ? true : undefined));
  assert.equal(await status(order[1]), "sent");
  again.close();
  const last = await open(user, { lastEventId: second.id ?? "" });
  await until(async () => ((await status(order[1])) === "delivered" ? true : undefined));
  last.close();
});

test("who reads on one replica is told what was sent by another", async () => {
  const user = newUser();
  const [here, there] = [await open(user), await open(user, {}, replica)];
  await there.next("unread");
  await here.next("unread");
  const id = await send(user);
  for (const stream of [here, there]) assert.equal(JSON.parse((await stream.next("notification")).data).id, id);
  for (const stream of [here, there]) assert.equal((await stream.next("unread")).data, "1");
  await service.ask("POST", `/v1/inbox/${user}/read`, { ids: [id] });
  for (const stream of [here, there]) assert.equal((await stream.next("unread")).data, "0");
  for (const stream of [here, there]) stream.close();
});

/** Right after a look there is none for a second: what comes sooner was hinted at. A busy machine may need some tries. */
const toldByHint = (user: string, stream: Awaited<ReturnType<typeof open>>) =>
  until(async () => {
    await send(user);
    await stream.next("notification");
    const sentAt = performance.now();
    await send(user);
    await stream.next("notification");
    return performance.now() - sentAt < 700 ? true : undefined;
  }, 60_000);

test("a hint reaches the readers of every replica sooner than a look would", async () => {
  const user = newUser();
  for (const at of [service, replica]) {
    const stream = await open(user, {}, at);
    await toldByHint(user, stream);
    stream.close();
  }
});

test("a hint that is lost is made up for by looking", async () => {
  const user = newUser();
  const stream = await open(user);
  await stream.next("unread");
  await store(item(user));
  await stream.next("notification");
  stream.close();
});

test("what commits late is not missed, however much committed before it", async () => {
  const [slow, quick] = [newUser(), newUser()];
  const streams = [await open(slow), await open(quick)] as const;
  for (const stream of streams) await stream.next("unread");
  const client = await service.db.connect();
  await client.query("begin");
  await storeItems(client as never, [item(slow, { title: "late" })]);
  for (let n = 0; n < 3; n++) {
    await send(quick);
    await streams[1].next("notification");
  }
  assert.deepEqual(streams[0].waiting(), []);
  await client.query("commit");
  client.release();
  assert.equal(titleOf(await streams[0].next("notification")), "late");
  for (const stream of streams) stream.close();
});

test("streams live through the loss of all connections to the database", async () => {
  const user = newUser();
  const stream = await open(user);
  await stream.next("unread");
  await service.db.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'carillon %'",
  );
  await store(item(user, { title: "after the loss" }));
  assert.equal(titleOf(await stream.next("notification")), "after the loss");
  await until(async () => {
    const sql =
      "select from pg_stat_activity where datname = current_database() and application_name = 'carillon stream'";
    return (await service.db.query(sql)).rowCount === 2 ? true : undefined;
  });
  await toldByHint(user, stream);
  stream.close();
});

test("streams live through a restart of PostgreSQL", async () => {
  const server = await controllableServer();
  const own = await startService({ roles: ROLES, databaseUrl: server.url });
  const stream = await open("u", {}, own);
  await stream.next("unread");
  await storeItems(own.db, [item("u", { title: "before" })]);
  assert.equal(titleOf(await stream.next("notification")), "before");
  await server.stop("immediate");
  const refused = await open("v", {}, own);
  assert.deepEqual([refused.status, refused.problem?.code], [503, "DATABASE_UNAVAILABLE"]);
  await server.start();
  await until(async () => {
    const body = { channel: "inbox", recipient: { userId: "u" }, content: { title: "after" }, idempotencyKey: "k" };
    return (await own.ask("POST", "/v1/notifications", body)).status < 300 ? true : undefined;
  });
  assert.equal(titleOf(await stream.next("notification")), "after");
  stream.close();
  await own.stop();
  await server.remove();
});

test("nobody is told of another's inbox", async () => {
  const [mine, theirs] = [newUser(), newUser()];
  const key = (await service.ask("POST", `/v1/inbox/${mine}/tokens`)).body.token;
  const refused = await open(theirs, { key });
  assert.deepEqual([refused.status, refused.problem.code], [403, "FORBIDDEN"]);
  assert.equal((await open(mine, { key: "ct_x.y" })).status, 401);
  const admin = await service.makeKey({ tenant: "others", scopes: ["admin"] });
  const sender = await service.makeKey({ scopes: ["send"] });
  assert.equal((await open(mine, { key: sender })).status, 403);
  const [own, foreign] = [await open(mine, { key }), await open(mine, { key: admin })];
  await Promise.all([own.next("unread"), foreign.next("unread")]);
  await store(item(theirs), item(mine, { title: "mine" }));
  assert.equal(titleOf(await own.next("notification")), "mine");
  const tenant = await service.db.query("select id from carillon.tenants where name = 'others'");
  await store(item(mine, { title: "of the others", tenant: tenant.rows[0].id }));
  assert.equal(titleOf(await foreign.next("notification")), "of the others");
  assert.deepEqual(
    own
      .waiting()
      .map(({ name }) => name)
      .filter((name) => name !== "unread"),
    [],
  );
  own.close();
  foreign.close();
});

test("a stream ends when its token does", async () => {
  const user = newUser();
  const { token, expiresAt } = (await service.ask("POST", `/v1/inbox/${user}/tokens`, { expiresInSeconds: 3 })).body;
  const stream = await open(user, { key: token });
  assert.equal(stream.status, 200);
  await stream.ended;
  assert.ok(Date.now() >= Date.parse(expiresAt) - 100);
  assert.equal((await open(user, { key: token })).status, 401);
});

test("a session's cookie opens a stream, for its own origin only", async () => {
  const user = newUser();
  const token = (await service.ask("POST", `/v1/inbox/${user}/tokens`)).body.token;
  const begun = await service.ask("POST", `/v1/inbox/${user}/session`, undefined, { key: token });
  const cookie = begun.headers.get("set-cookie")?.split(";")[0] ?? "";
  const url = `${service.url}/v1/inbox/${user}/stream`;
  const stream = await openStream(url, { cookie });
  await stream.next("unread");
  await store(item(user));
  assert.equal(seqOf(await stream.next("notification")), 1);
  stream.close();
  assert.equal((await openStream(url, { cookie, origin: "https://evil.example.com" })).status, 403);
  assert.equal((await openStream(url)).status, 401);
});

test("clients that give up early leave no place taken", async () => {
  const { hostname, port } = new URL(service.url);
  const ask = `GET /v1/inbox/${newUser()}/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ADMIN_KEY}\r\n\r\n`;
  await Promise.all(
    Array.from({ length: 40 }, async (_, n) => {
      const socket = connect(Number(port), hostname).on("error", () => {});
      await once(socket, "connect");
      socket.write(ask);
      await sleep(n / 4);
      socket.destroy();
    }),
  );
  await until(async () => {
    const { body } = await service.ask("GET", "/metrics");
    return /^carillon_streams 0$/m.test(body) ? true : undefined;
  });
});

test("a HEAD takes no place and does not hang", async () => {
  const { status } = await fetch(`${service.url}/v1/inbox/${newUser()}/stream`, { method: "HEAD" });
  assert.equal(status, 405);
});

test("a user and a process have only so many streams, and get places back", async () => {
  const user = newUser();
  const five = await Promise.all(Array.from({ length: 5 }, () => open(user)));
  const sixth = await open(user);
  assert.deepEqual([sixth.status, sixth.problem.code], [429, "TOO_MANY_STREAMS"]);
  assert.ok(Number(sixth.headers.get("retry-after")) > 0);
  five[0]?.close();
  const again = await until(async () => {
    const stream = await open(user);
    return stream.status === 200 ? stream : undefined;
  });
  for (const stream of [...five, again]) stream.close();

  const three = await until(async () => {
    const streams = await Promise.all([1, 2, 3].map(() => open(newUser(), {}, replica)));
    if (streams.every(({ status }) => status === 200)) return streams;
    for (const stream of streams) stream.close();
    return undefined;
  });
  const fourth = await open(newUser(), {}, replica);
  assert.deepEqual([fourth.status, fourth.problem.code], [503, "OVERLOADED"]);
  for (const stream of three) stream.close();
});

test("a process that stops lets its streams go, and says when to come back", async () => {
  const leaving = await startService({ roles: ["stream"], databaseUrl: service.databaseUrl });
  const streams = await Promise.all(Array.from({ length: 30 }, () => open(newUser(), {}, leaving)));
  for (const stream of streams) await stream.next("unread");
  const stoppedAt = performance.now();
  await leaving.stop();
  assert.ok(performance.now() - stoppedAt < 20_000, "not only when the time for that was over");
  await Promise.all(streams.map(({ ended }) => ended));
  const retries = new Set(streams.map(({ retries }) => retries.at(-1)));
  assert.ok(streams.every(({ retries }) => retries.length === 2));
  assert.ok(retries.size > 10, "not all at the same time");
});
