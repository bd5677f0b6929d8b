// How providers' HTTP client tells what was sent from what was not.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createHttp, retryAfterMs } from "../../src/channels/http.ts";
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
  const abortedAt = performance.now();
  stop.abort();
  assert.deepEqual(await asked, { kind: "unavailable", reason: "no answer in time", category: "timeout" });
  assert.ok(performance.now() - abortedAt < 200);
  const second = http.ask({ url, body: "second", signal: AbortSignal.timeout(10_000) });
  resolveName();
  assert.ok("status" in (await second));
  assert.deepEqual(
    standIn.received.map(({ body }) => body),
    ["second"],
  );
});

test("of requests that wait for a connection when the signal aborts, only those that arrived are ambiguous", async (t) => {
  const standIn = await startStandIn();
  standIn.answer("hang");
  const http = createHttp({ connections: 2 });
  t.after(async () => {
    await http.close();
    await standIn.close();
  });
  const stop = new AbortController();
  const asked = Array.from({ length: 6 }, () => http.ask({ url: standIn.url, body: "x", signal: stop.signal }));
  await standIn.arrived(2);
  stop.abort();
  const kinds = (await Promise.all(asked)).map((reply) => ("kind" in reply ? reply.kind : "answered"));
  assert.deepEqual(kinds, ["ambiguous", "ambiguous", ...Array(4).fill("unavailable")]);
  assert.equal(standIn.received.length, 2);
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
