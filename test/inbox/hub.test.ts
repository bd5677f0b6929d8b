// Open streams over real sockets, with a table in memory and a clock in hand.

import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { InboxItem } from "#domain/inbox.ts";
import { createHub, type End, type Hub, type HubOptions } from "#inbox/hub.ts";
import type { News, Reading } from "#store/inbox-news.ts";
import { openStream } from "../support/event-stream.ts";
import { until } from "../support/until.ts";

const PAGE = 100;
const inbox = { tenant: 1, userId: "u" };

/** What the database would answer, at one instant. */
function createTable() {
  const items: InboxItem[] = [];
  return {
    add(body: string | null = null): void {
      const seq = items.length + 1;
      const at = new Date(0);
      const rest = { category: null, title: `n${seq}`, data: null, link: null, readAt: null, archivedAt: null };
      items.push({ id: `i${seq}`, seq, body, createdAt: at, ...rest });
    },
    read: (readings: readonly Reading[]): News[] =>
      readings.map(({ afterSeq }) => ({
        epoch: 7,
        lastSeq: items.length,
        forgottenSeq: 0,
        unread: items.length,
        items: items.filter(({ seq }) => seq > afterSeq).slice(0, PAGE),
      })),
  };
}

type Opened = { hub: Hub; url: string; ends: End[]; outs: ServerResponse[] };

/** A server whose every request is a stream of the one inbox. */
async function serve(t: TestContext, options: Partial<HubOptions> & Pick<HubOptions, "read">): Promise<Opened> {
  const ends: End[] = [];
  const outs: ServerResponse[] = [];
  const defaults = { maxStreams: 1_000, perUser: 1_000, now: Date.now, random: Math.random };
  const hub = createHub({ ...defaults, onEnd: (reason) => ends.push(reason), ...options });
  const server = createServer(async (request, out) => {
    outs.push(out);
    const reader = hub.admit(inbox, Number.POSITIVE_INFINITY);
    const [epoch, seq] = (request.headers["last-event-id"] as string | undefined)?.split(":").map(Number) ?? [];
    const first = await hub.begin(reader, epoch === undefined ? undefined : { epoch, seq: seq ?? 0 });
    out.writeHead(200, { "content-type": "text/event-stream" });
    hub.open(reader, out, first);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { hub, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, ends, outs };
}

/** What the stream role does after a change. */
async function look(hub: Hub, read: HubOptions["read"]): Promise<void> {
  const readings = hub.readings([inbox]);
  if (readings.length > 0) await hub.tell(readings, await read(readings));
}

test("whatever comes while a reader joins is told once, by one look for each change", async (t) => {
  /** Few items and no look without a change: what is missed once is missed for good. */
  async function round(): Promise<void> {
    const table = createTable();
    // Answers as of one instant, handed over later, and not in the order of asking.
    const read = async (readings: Reading[]) => {
      await sleep(Math.random() * 4);
      const news = table.read(readings);
      await sleep(Math.random() * 4);
      return news;
    };
    const { hub, url } = await serve(t, { read });
    let looking = Promise.resolve();
    const writing = (async () => {
      for (let n = 0; n < 4; n++) {
        await sleep(Math.random() * 6);
        table.add();
        looking = looking.then(() => look(hub, read));
      }
    })();
    const readers = [1, 2, 3].map(async () => {
      await sleep(Math.random() * 15);
      const stream = await openStream(url, { "last-event-id": "0:0" });
      const got: (string | undefined)[] = [];
      for (let n = 0; n < 4; n++) got.push((await stream.next("notification")).id);
      assert.deepEqual(got, ["7:1", "7:2", "7:3", "7:4"]);
      assert.deepEqual(
        stream.waiting().filter(({ name }) => name !== "unread"),
        [],
      );
      stream.close();
    });
    await Promise.all([writing, ...readers]);
    await looking;
  }
  for (let n = 0; n < 20; n++) await Promise.all(Array.from({ length: 10 }, round));
});

test("a reader who does not read costs one buffer, is cut off, and loses nothing", async (t) => {
  const table = createTable();
  const read = async (readings: Reading[]) =>
    table.read(readings).map((news) => ({ ...news, items: news.items.slice(0, 1) }));
  let nowMs = 0;
  const { hub, url, ends, outs } = await serve(t, { read, now: () => nowMs, limits: { stallMs: 10_000 } });
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.pause();
  socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  await until(async () => (hub.size() === 1 ? true : undefined));
  const good = await openStream(url);
  await good.next("unread");
  // Kernels swallow some megabytes before anybody notices.
  const BODY = "x".repeat(200_000);
  const TOTAL = 100;
  let most = 0;
  for (let n = 0; n < TOTAL; n++) {
    table.add(BODY);
    await look(hub, read);
    await good.next("notification");
    most = Math.max(most, ...outs.map((out) => out.writableLength));
  }
  assert.ok(most < 1_000_000, `${most} bytes waited in one connection, of ${TOTAL * BODY.length}`);
  await hub.tick();
  assert.equal(hub.size(), 2, "it may be slow for a while");
  nowMs += 10_001;
  await hub.tick();
  assert.deepEqual(ends, ["slow"]);
  assert.equal(hub.size(), 1);
  good.close();
  socket.destroy();
});

test("a reader who reads slowly catches up from the table", async (t) => {
  const table = createTable();
  const read = async (readings: Reading[]) =>
    table.read(readings).map((news) => ({ ...news, items: news.items.slice(0, 5) }));
  const { hub, url, outs } = await serve(t, { read });
  const stream = connect(Number(new URL(url).port), "127.0.0.1");
  stream.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  stream.pause();
  await until(async () => (hub.size() === 1 ? true : undefined));
  for (let n = 0; n < 80; n++) {
    table.add("y".repeat(200_000));
    await look(hub, read);
  }
  assert.ok(outs[0]?.writableNeedDrain, "it is behind");
  let text = "";
  stream.setEncoding("utf8").on("data", (part) => {
    text += part;
  });
  stream.resume();
  await until(async () => (text.includes('"title":"n80"') ? true : undefined));
  const got = [...text.matchAll(/"title":"n(\d+)"/g)].map(([, n]) => Number(n));
  assert.deepEqual(
    got,
    Array.from({ length: 80 }, (_, n) => n + 1),
  );
  table.add("last");
  await until(async () => {
    await look(hub, read);
    return text.includes('"title":"n81"') ? true : undefined;
  });
  stream.destroy();
});

test("a silent stream has a heartbeat within 25 seconds, and one that is told things needs none", async (t) => {
  const table = createTable();
  const read = async (readings: Reading[]) => table.read(readings);
  let nowMs = 0;
  const { hub, url } = await serve(t, { read, now: () => nowMs });
  const stream = await openStream(url);
  await stream.next("unread");
  for (nowMs = 500; nowMs <= 24_000; nowMs += 500) await hub.tick();
  await until(async () => (stream.comments() === 1 ? true : undefined));
  nowMs += 20_000;
  table.add();
  await look(hub, read);
  await stream.next("notification");
  nowMs += 20_000;
  await hub.tick();
  table.add();
  await look(hub, read);
  await stream.next("notification");
  assert.equal(stream.comments(), 1);
  stream.close();
});

test("streams end after about ten minutes, not all at once, and say when to come back", async (t) => {
  const table = createTable();
  let nowMs = 0;
  const { hub, url, ends } = await serve(t, { read: async (readings) => table.read(readings), now: () => nowMs });
  const streams = await Promise.all(Array.from({ length: 20 }, () => openStream(url)));
  const sizes: number[] = [];
  for (; nowMs <= 12 * 60_000; nowMs += 30_000) {
    await hub.tick();
    sizes.push(hub.size());
  }
  assert.equal(sizes[15], 20, "none before eight minutes");
  assert.ok(new Set(sizes).size > 3);
  assert.deepEqual(ends, Array(20).fill("age"));
  await Promise.all(streams.map(({ ended }) => ended));
  for (const { retries } of streams) assert.ok((retries.at(-1) ?? 0) >= 1_000);
});

test("who is just joining when the process stops is let go as well", async (t) => {
  const table = createTable();
  const signals = new EventEmitter();
  const read = async (readings: Reading[]) => {
    const answered = once(signals, "answer");
    signals.emit("asked");
    await answered;
    return table.read(readings);
  };
  const { hub, url, ends } = await serve(t, { read });
  const asked = once(signals, "asked");
  const opening = openStream(url);
  await asked;
  await hub.drain(1_000);
  signals.emit("answer");
  await (await opening).ended;
  assert.deepEqual([ends, hub.size()], [["drained"], 0]);
  assert.throws(() => hub.admit(inbox, Number.POSITIVE_INFINITY), { code: "SHUTTING_DOWN" });
});

test("a reading that fails ends the stream, so that the client comes back for the rest", async (t) => {
  const table = createTable();
  let isAway = false;
  const read = async (readings: Reading[]) => {
    if (isAway) throw new Error("away");
    return table.read(readings).map((news) => ({ ...news, items: news.items.slice(0, 1) }));
  };
  const { hub, url, ends } = await serve(t, { read });
  const stream = await openStream(url);
  await stream.next("unread");
  table.add();
  table.add();
  const readings = hub.readings([inbox]);
  const news = await read(readings);
  isAway = true;
  await hub.tell(readings, news);
  assert.match((await stream.next("notification")).id ?? "", /:1$/);
  await stream.ended;
  assert.deepEqual(ends, ["failed"]);
});

test("a tenant that has every stream open gives places up to those who have fewer", async () => {
  const ends: End[] = [];
  const options = { maxStreams: 4, perUser: 10, now: Date.now, random: Math.random };
  const hub = createHub({ ...options, read: async () => [], onEnd: (reason) => ends.push(reason) });
  const admit = (tenant: number, userId: string) => hub.admit({ tenant, userId }, Number.POSITIVE_INFINITY);
  const greedy = ["a", "b", "c", "d"].map((user) => admit(1, user));
  assert.throws(() => admit(1, "e"), { code: "OVERLOADED" });
  admit(2, "a");
  assert.deepEqual(
    greedy.map(({ isEnded }) => isEnded),
    [true, false, false, false],
    "the one that was open longest",
  );
  admit(2, "b");
  assert.throws(() => admit(2, "c"), { code: "OVERLOADED" }, "both have as many");
  admit(3, "a");
  assert.deepEqual([hub.size(), ends], [4, ["crowded", "crowded", "crowded"]]);
});
