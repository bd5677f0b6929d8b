// Connections to an SMTP server, lent out one mail at a time.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { type ConnectionsOptions, createConnections } from "#channels/email/smtp-connections.ts";
import { startSmtpStandIn } from "../../support/smtp-stand-in.ts";

async function opened(t: TestContext, more: Partial<ConnectionsOptions> = {}) {
  const server = await startSmtpStandIn();
  t.after(() => server.close());
  const connections = createConnections({
    connect: { host: "127.0.0.1", port: server.port, ignoreTLS: true },
    mayLoginInTheClear: true,
    most: 1,
    mailsPerConnection: 100,
    idleMs: 60_000,
    ...more,
  });
  t.after(() => connections.close());
  const take = (signal = AbortSignal.timeout(10_000)) => connections.take(signal);
  return { server, connections, take };
}

test("a connection that is given back is lent again, to those who wait first", async (t) => {
  const { server, take } = await opened(t);
  const first = await take();
  const order: string[] = [];
  const waiting = ["second", "third"].map(async (name) => {
    const lent = await take();
    order.push(name);
    lent.giveBack();
    return lent;
  });
  first.giveBack();
  const lent = await Promise.all(waiting);
  assert.deepEqual(order, ["second", "third"]);
  assert.deepEqual(
    [first, ...lent].map(({ isUsed }) => isUsed),
    [false, true, true],
  );
  assert.equal(server.connections().ever, 1);
});

test("who gives up waiting does not take the turn of the next", async (t) => {
  const { take } = await opened(t);
  const first = await take();
  const leaving = new AbortController();
  const left = take(leaving.signal);
  const next = take();
  leaving.abort(new Error("gone"));
  await assert.rejects(left, /gone/);
  first.giveBack();
  assert.equal((await next).isUsed, true);
});

test("who is woken and gives up in the same moment passes the turn on", async (t) => {
  const { take } = await opened(t);
  const first = await take();
  const leaving = new AbortController();
  const left = take(leaving.signal);
  const next = take();
  first.giveBack();
  leaving.abort(new Error("gone"));
  await assert.rejects(left, /gone/);
  assert.equal((await next).isUsed, true);
});

test("a place whose connection could not be opened is free for the next", async (t) => {
  const { server, take } = await opened(t);
  server.say("greeting", "421 later");
  await assert.rejects(take(), /421 later/);
  const [one, two] = [take(), take()];
  await assert.rejects(one, /421 later/);
  await assert.rejects(two, /421 later/);
  server.say("greeting", "220 hello");
  assert.equal((await take()).isUsed, false);
});

test("a connection that ended while it was lent is not lent again", async (t) => {
  const { server, take } = await opened(t);
  const first = await take();
  const ended = once(first.connection, "end");
  await server.dropConnections();
  await ended;
  first.giveBack();
  assert.equal((await take()).isUsed, false);
});

test("a connection is closed after so many mails, and after lying idle for so long", async (t) => {
  const { server, take } = await opened(t, { mailsPerConnection: 2, idleMs: 20 });
  (await take()).giveBack();
  (await take()).giveBack();
  await server.forsaken();
  (await take()).giveBack();
  await server.reached("quit");
  await server.forsaken();
  assert.equal(server.connections().ever, 2);
});

test("giving back or dropping twice frees one place only", async (t) => {
  const { server, take } = await opened(t);
  const first = await take();
  first.drop();
  first.drop();
  first.giveBack();
  const second = await take();
  const third = take();
  second.giveBack();
  second.giveBack();
  assert.equal((await third).isUsed, true);
  assert.equal(server.connections().ever, 2);
});

test("one that breaks off while it is reset leaves its place to the next", async (t) => {
  const { server, take } = await opened(t);
  server.say("rset", "reset");
  (await take()).resetAndGiveBack();
  assert.equal((await take()).isUsed, false);
});

test("when closed, those who wait are told", async (t) => {
  const { server, connections, take } = await opened(t);
  const lent = await take();
  const waiting = take();
  connections.close();
  await assert.rejects(waiting, /closed/);
  lent.giveBack();
  await server.forsaken();
});
