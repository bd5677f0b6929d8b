// Requests side by side over HTTP/2, and what a failure means for each of them.

import assert from "node:assert/strict";
import { once } from "node:events";
import { constants, type Settings } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { createHttp2, type Http2, type Http2Options } from "#wire/http2.ts";
import type { Said } from "../support/scripted.ts";
import { startHttp2StandIn } from "../support/stand-in-http2.ts";

const OK: Said = { status: 200, body: "ok" };

async function opened(t: TestContext, settings: Settings = {}, options: Partial<Http2Options> = {}) {
  const standIn = await startHttp2StandIn(settings);
  t.after(() => standIn.close());
  const http = createHttp2({ origin: standIn.url, ...options });
  t.after(() => http.close());
  standIn.answer(OK);
  return { standIn, http };
}
const ask = (http: Http2, signal = AbortSignal.timeout(20_000)) =>
  http.ask({ path: "/x", headers: {}, body: "hello", signal });
const many = (http: Http2, count: number) => Array.from({ length: count }, () => ask(http));
const kinds = (answers: Awaited<ReturnType<typeof ask>>[]) =>
  answers.map((answer) => ("kind" in answer ? answer.kind : answer.status));

test("as many requests share a connection as the server allows", async (t) => {
  const { standIn, http } = await opened(t, { maxConcurrentStreams: 50 });
  standIn.answer("hang");
  const asking = many(http, 50);
  await standIn.arrived(50);
  assert.deepEqual([standIn.connections().ever, standIn.mostAtOnce()], [1, 50]);
  standIn.release(OK);
  assert.ok(kinds(await Promise.all(asking)).every((status) => status === 200));
});

test("when a connection is full another is opened, up to the bound; the rest waits", async (t) => {
  const { standIn, http } = await opened(t, { maxConcurrentStreams: 2 }, { connections: 3 });
  standIn.answer("hang");
  const asking = many(http, 10);
  await standIn.arrived(6);
  assert.equal(standIn.connections().ever, 3);
  standIn.answer(OK);
  standIn.release(OK);
  assert.ok(kinds(await Promise.all(asking)).every((status) => status === 200));
  assert.equal(standIn.received.length, 10);
  assert.deepEqual([standIn.connections().ever, standIn.mostAtOnce()], [3, 2]);
});

test("a server that allows more later gets more, as APNs does once it has seen a token", async (t) => {
  const { standIn, http } = await opened(t, { maxConcurrentStreams: 1 }, { connections: 1 });
  standIn.answer("hang");
  const asking = many(http, 20);
  await standIn.arrived(1);
  assert.equal(standIn.mostAtOnce(), 1);
  standIn.settle({ maxConcurrentStreams: 100 });
  await standIn.arrived(20);
  standIn.release(OK);
  assert.ok(kinds(await Promise.all(asking)).every((status) => status === 200));
});

test("a thousand requests pass over few connections", async (t) => {
  const { standIn, http } = await opened(t, { maxConcurrentStreams: 100 }, { connections: 2 });
  assert.ok(kinds(await Promise.all(many(http, 1000))).every((status) => status === 200));
  assert.ok(standIn.connections().ever <= 2);
  assert.ok(standIn.mostAtOnce() <= 100);
});

test("whoever waits for room and runs out of time was not sent", async (t) => {
  const { standIn, http } = await opened(t, { maxConcurrentStreams: 1 }, { connections: 1 });
  standIn.answer("hang");
  const first = ask(http);
  await standIn.arrived(1);
  const stop = new AbortController();
  const second = ask(http, stop.signal);
  stop.abort();
  assert.deepEqual(await second, { kind: "unavailable", reason: "no connection in time", category: "timeout" });
  standIn.release(OK);
  assert.deepEqual(kinds([await first]), [200]);
  assert.equal(standIn.received.length, 1);
});

test("one request that is given up leaves the others on its connection alone", async (t) => {
  const { standIn, http } = await opened(t);
  standIn.answer("hang");
  const stop = new AbortController();
  const [given, kept] = [ask(http, stop.signal), ask(http)];
  await standIn.arrived(2);
  stop.abort();
  assert.deepEqual(await given, { kind: "ambiguous", reason: "no answer in time", category: "timeout" });
  standIn.release(OK);
  assert.deepEqual(kinds([await kept]), [200]);
  assert.equal(standIn.connections().ever, 1);
});

for (const [title, code] of [
  ["a GOAWAY", constants.NGHTTP2_NO_ERROR],
  ["a GOAWAY with an error", constants.NGHTTP2_ENHANCE_YOUR_CALM],
] as const) {
  test(`after ${title}, what came after the last processed request was not sent`, async (t) => {
    const { standIn, http } = await opened(t);
    standIn.answer("hang");
    const asking = many(http, 3);
    await standIn.arrived(3);
    // A client's requests have the numbers 1, 3, 5.
    standIn.goAway(code, 1);
    const later = await Promise.all(asking.slice(1));
    assert.deepEqual(kinds(later), ["unavailable", "unavailable"]);
    standIn.release(OK);
    // With an error the connection is gone at once; without, the first is still answered.
    assert.deepEqual(kinds([await (asking[0] as ReturnType<typeof ask>)]), [code === 0 ? 200 : "ambiguous"]);
    standIn.answer(OK);
    assert.deepEqual(kinds([await ask(http)]), [200]);
    assert.equal(standIn.connections().ever, 2);
  });
}

test("a request that the server refuses was not sent", async (t) => {
  const { standIn, http } = await opened(t);
  standIn.answer("hang");
  const asking = many(http, 2);
  await standIn.arrived(2);
  standIn.refuse();
  assert.deepEqual(kinds(await Promise.all(asking)), ["unavailable", "unavailable"]);
  standIn.answer(OK);
  assert.deepEqual(kinds([await ask(http)]), [200]);
  assert.equal(standIn.connections().ever, 1);
});

test("a connection that breaks leaves its requests in doubt, and the next gets a new one", async (t) => {
  const { standIn, http } = await opened(t);
  standIn.answer("hang");
  const asking = many(http, 3);
  await standIn.arrived(3);
  standIn.answer("reset");
  const last = ask(http);
  assert.deepEqual(kinds(await Promise.all([...asking, last])), Array(4).fill("ambiguous"));
  standIn.answer(OK);
  assert.deepEqual(kinds([await ask(http)]), [200]);
});

/** Stands before a server and can stop passing anything on, as a firewall does that has forgotten a connection. */
async function startWall(t: TestContext, url: string) {
  const passing = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(new URL(url).port), "127.0.0.1");
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      passing.add(socket);
      socket.on("error", () => other.destroy());
      socket.on("close", () => other.destroy());
      socket.pipe(other);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const socket of passing) socket.destroy();
  });
  const freeze = () => {
    for (const socket of passing) socket.unpipe().pause();
  };
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, freeze };
}

test("a server that is gone without a word is found by a ping", async (t) => {
  const { standIn } = await opened(t);
  const { origin, freeze } = await startWall(t, standIn.url);
  const http = createHttp2({ origin, pingEveryMs: 20, pingAnswerMs: 200 });
  t.after(() => http.close());
  standIn.answer("hang");
  const asking = ask(http);
  await standIn.arrived(1);
  freeze();
  assert.deepEqual(await asking, {
    kind: "ambiguous",
    reason: "the server does not answer a ping",
    category: "network",
  });
  standIn.answer(OK);
  assert.deepEqual(kinds([await ask(http)]), [200]);
});

test("pings that are answered keep a connection", async (t) => {
  const { standIn, http } = await opened(t, {}, { pingEveryMs: 5, pingAnswerMs: 5_000 });
  standIn.answer({ ...OK, delayMs: 100 });
  assert.deepEqual(kinds([await ask(http), await ask(http)]), [200, 200]);
  assert.equal(standIn.connections().ever, 1);
});

test("when no connection can be had, all who wait are told", async () => {
  const http = createHttp2({ origin: "http://127.0.0.1:9" });
  const answers = await Promise.all(many(http, 5));
  assert.deepEqual(kinds(answers), Array(5).fill("unavailable"));
  await http.close();
});

test("a server that does not speak HTTP/2 is unavailable", async (t) => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const http = createHttp2({ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  t.after(() => http.close());
  assert.deepEqual(kinds([await ask(http)]), ["unavailable"]);
});

test("a connection that is only finishing is closed too", async (t) => {
  const { standIn, http } = await opened(t);
  standIn.answer("hang");
  const asking = ask(http);
  await standIn.arrived(1);
  standIn.goAway(constants.NGHTTP2_NO_ERROR, 1);
  // Until the word has arrived, more requests go to the old connection, and come back unprocessed.
  let next = ask(http);
  while (standIn.connections().ever < 2) {
    await Promise.race([next, standIn.arrived(2)]);
    next = ask(http);
  }
  await http.close();
  assert.deepEqual(kinds([await asking]), ["ambiguous"]);
  await standIn.forsaken();
});

test("closing ends what is under way, and nothing begins after it", async (t) => {
  const { standIn, http } = await opened(t, { maxConcurrentStreams: 1 }, { connections: 1 });
  standIn.answer("hang");
  const [sent, waiting] = [ask(http), ask(http)];
  await standIn.arrived(1);
  await http.close();
  assert.deepEqual(kinds(await Promise.all([sent, waiting])), ["ambiguous", "unavailable"]);
  assert.deepEqual(kinds([await ask(http)]), ["unavailable"]);
  await standIn.forsaken();
});
