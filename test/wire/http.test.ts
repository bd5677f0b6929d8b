// How providers' HTTP client tells what was sent from what was not.

import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { createHttp, retryAfterMs } from "#wire/http.ts";
import { startStandIn } from "../support/stand-in.ts";

test("a signal that aborts while the name is resolved ends the request at once, and nothing is sent later", async (t) => {
  const standIn = await startStandIn();
  standIn.answer({ status: 200 });
  let resolveName = () => {};
  let isLooking = () => {};
  const looking = new Promise<void>((resolve) => {
    isLooking = resolve;
  });
  const http = createHttp({
    lookup: (_host, _options, done) => {
      resolveName = () => done(null, [{ address: "127.0.0.1", family: 4 }]);
      isLooking();
    },
  });
  t.after(async () => {
    await http.close();
    await standIn.close();
  });
  const url = standIn.url.replace("127.0.0.1", "slow.example.test");
  const stop = new AbortController();
  const asked = http.ask({ url, body: "first", signal: stop.signal });
  await looking;
  stop.abort();
  assert.deepEqual(await asked, { kind: "unavailable", reason: "no answer in time", category: "timeout" });
  const second = http.ask({ url, body: "second", signal: AbortSignal.timeout(10_000) });
  resolveName();
  assert.ok("status" in (await second));
  assert.deepEqual(
    standIn.received.map(({ body }) => body),
    ["second"],
  );
});

test("of requests that were given up, those that arrived are ambiguous, and none waits for a connection of another", async (t) => {
  const standIn = await startStandIn();
  standIn.answer("hang");
  const http = createHttp();
  t.after(async () => {
    await http.close();
    await standIn.close();
  });
  const stop = new AbortController();
  const asked = Array.from({ length: 40 }, () => http.ask({ url: standIn.url, body: "x", signal: stop.signal }));
  await standIn.arrived(40);
  stop.abort();
  for (const reply of await Promise.all(asked)) assert.ok("kind" in reply && reply.kind === "ambiguous");
});

test("what it took to get a connection is not taken from the time of the answer", async (t) => {
  const standIn = await startStandIn();
  standIn.answer({ status: 200, delayMs: 900 });
  const http = createHttp({
    lookup: (_host, _options, done) => setTimeout(() => done(null, [{ address: "127.0.0.1", family: 4 }]), 900),
  });
  t.after(async () => {
    await http.close();
    await standIn.close();
  });
  const url = standIn.url.replace("127.0.0.1", "slow.example.test");
  const answer = await http.ask({ url, signal: new AbortController().signal, timeoutMs: 1_600 });
  assert.ok("status" in answer, JSON.stringify(answer));
});

test("time is up for what was not reached, and for what was not answered", async (t) => {
  const standIn = await startStandIn();
  standIn.answer("hang");
  const http = createHttp();
  const never = createHttp({ lookup: () => undefined });
  t.after(async () => {
    await http.close();
    await never.close();
    await standIn.close();
  });
  const time = { signal: new AbortController().signal, timeoutMs: 100 };
  const category = "timeout";
  assert.deepEqual(await http.ask({ url: standIn.url, ...time }), {
    kind: "ambiguous",
    reason: "no answer in time",
    category,
  });
  assert.deepEqual(await never.ask({ url: "http://slow.example.test", ...time }), {
    kind: "unavailable",
    reason: "no answer in time",
    category,
  });
});

/** A server that answers as it is told, piece by piece. */
async function startServer(t: TestContext, answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_request, response) => answer(response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test("an answer is read whole, with its headers, whatever was said before it; one without an end is cut off", async (t) => {
  let isEndless = false;
  const url = await startServer(t, (response) => {
    response.writeEarlyHints({ link: "</a.css>; rel=preload" });
    response.writeHead(201, { "X-Twice": "a" });
    response.write("in two ");
    if (!isEndless) return response.end("pieces: ä");
    const more = () => {
      while (!response.destroyed && response.write("x".repeat(65_536)));
    };
    response.on("drain", more);
    more();
  });
  const http = createHttp();
  t.after(http.close);
  const { signal } = new AbortController();
  const whole = await http.ask({ url, signal });
  assert.ok("status" in whole);
  assert.deepEqual([whole.status, whole.header("x-twice"), whole.text], [201, "a", "in two pieces: ä"]);
  isEndless = true;
  const cut = await http.ask({ url, signal });
  assert.ok("status" in cut);
  assert.equal(cut.status, 201);
  assert.ok(cut.text.startsWith("in two xxx") && cut.text.length < 4_000_000, `${cut.text.length}`);
});

test("an answer that breaks off or does not go on is ambiguous, whatever its status", async (t) => {
  let isBroken = true;
  const url = await startServer(t, (response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("half", () => {
      if (isBroken) response.destroy();
    });
  });
  const http = createHttp();
  t.after(http.close);
  const time = { signal: new AbortController().signal, timeoutMs: 300 };
  const broken = await http.ask({ url, signal: time.signal });
  assert.ok("kind" in broken && broken.kind === "ambiguous" && broken.category === "network", JSON.stringify(broken));
  isBroken = false;
  assert.deepEqual(await http.ask({ url, ...time }), {
    kind: "ambiguous",
    reason: "no answer in time",
    category: "timeout",
  });
});

test("what cannot be sent at all is a failure of its own", async (t) => {
  const url = await startServer(t, (response) => response.end());
  const http = createHttp();
  t.after(http.close);
  const { signal } = new AbortController();
  for (const request of [{ url: "nowhere" }, { url, headers: { "x-bad": "a\nb" } }]) {
    const reply = await http.ask({ ...request, signal });
    assert.ok("kind" in reply && reply.kind === "unavailable", JSON.stringify(reply));
  }
  const gone = await http.ask({ url, signal: AbortSignal.abort() });
  assert.ok("kind" in gone && gone.kind === "unavailable");
});

test("Retry-After is read in seconds or as a date, and is at most a day", () => {
  const now = Date.parse("2027-01-01T09:00:00Z");
  assert.equal(retryAfterMs("120", now), 120_000);
  assert.equal(retryAfterMs("Fri, 01 Jan 2027 09:01:00 GMT", now), 60_000);
  for (const far of ["99999999999999", "Fri, 01 Jan 9999 00:00:00 GMT"])
    assert.equal(retryAfterMs(far, now), 86_400_000);
  for (const none of [undefined, "", "soon", "-1", "0", "Fri, 01 Jan 2021 00:00:00 GMT"])
    assert.equal(retryAfterMs(none, now), undefined);
});
