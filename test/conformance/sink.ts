// What every sink must do, with a real server. A sink's test file calls this with a way to open one and to read back what arrived.

import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import type { FactBody } from "#domain/fact-body.ts";
import type { Refused, Sink, Told } from "#sinks/sink.ts";
import { whyOf } from "#wire/why.ts";
import type { Server } from "../support/servers/server.ts";
import { tell, tellMany } from "../support/told.ts";
import { until } from "../support/until.ts";

/** A fact as it was read back; `body` as far as the sink keeps it. */
export type Arrived = { id: string; tenant: string; body: Partial<FactBody> };

export type OpenedSink = {
  sink: Sink;
  /** All that has arrived so far; of each notification in the order in which it did. */
  arrived(): Promise<readonly Arrived[]>;
};

export type SinkUnderTest = {
  server: Server;
  /** Each to a place of its own, where nothing has arrived yet. */
  open(): Promise<OpenedSink>;
  /** With this password, which is wrong. */
  openWith(password: string): Promise<Sink>;
  /** One that the server will never take, and what is said of it. Undefined where there is no such thing. */
  refusable?: { told(): Told; error: RegExp };
  stop(): Promise<void>;
};

/** So long that only what hangs takes longer. */
const LIMIT_MS = 60_000;

/** `setUp` answers with undefined where there is no server; `lacking` says so. */
export function sinkConformance(name: string, lacking: string, setUp: () => Promise<SinkUnderTest | undefined>): void {
  let under: SinkUnderTest | undefined;
  before(async () => {
    under = await setUp();
  });
  after(() => under?.stop());

  const withServer = (title: string, act: (under: SinkUnderTest, t: TestContext) => Promise<void>) =>
    test(`${name}: ${title}`, (t) => (under ? act(under, t) : t.skip(lacking)));
  const withSink = (title: string, act: (opened: OpenedSink, under: SinkUnderTest) => Promise<void>) =>
    withServer(title, async (under, t) => {
      const opened = await under.open();
      t.after(() => opened.sink.close());
      await act(opened, under);
    });

  withSink("all facts arrive, whole, and in order for each notification", async ({ sink, arrived }) => {
    const facts = tellMany(60, 5);
    for (const page of pagesOf(facts, 110)) assert.deepEqual(await deliver(sink, page), []);
    assert.deepEqual(await deliver(sink, []), []);
    const found = await arrived();
    assert.equal(found.length, facts.length);
    assertInOrder(found, facts);
    for (const { body, tenant } of facts) {
      const one = found.find(({ id }) => id === body.id);
      assert.deepEqual(one?.body, { ...body, ...one?.body });
      assert.equal(one?.tenant, tenant);
    }
  });

  withSink("what is delivered again is the same by its id", async ({ sink, arrived }) => {
    const facts = tellMany(20, 3);
    await deliver(sink, facts);
    const [first] = await arrived();
    await deliver(sink, facts);
    const found = await arrived();
    assertInOrder(found, facts);
    for (const one of found.filter(({ id }) => id === first?.id)) assert.deepEqual(one, first);
  });

  withServer("what is refused is named, and the others arrive in order", async (under, t) => {
    const { refusable } = under;
    if (refusable === undefined) return;
    const { sink, arrived } = await under.open();
    t.after(() => sink.close());
    const good = tellMany(20, 3);
    const bad = [refusable.told(), refusable.told(), refusable.told()];
    const [first, second, third] = bad as [Told, Told, Told];
    const refused = await deliver(sink, [first, ...good.slice(0, 31), second, ...good.slice(31), third]);
    assert.deepEqual(new Set(refused.map(({ told }) => told)), new Set(bad));
    for (const { error } of refused) assert.match(error, refusable.error);
    assertInOrder(await arrived(), good);
    assert.equal((await deliver(sink, bad)).length, 3);
    assert.deepEqual(await deliver(sink, [tell()]), []);
  });

  withSink("what was ended before the server heard of it never arrives", async ({ sink, arrived }, { server }) => {
    await frozen(server, () => assert.rejects(deliver(sink, tellMany(5, 2), 500)));
    const facts = tellMany(5, 2);
    await deliver(sink, facts);
    await sink.close();
    assertInOrder(await arrived(), facts);
  });

  withSink("what the server has not confirmed is not delivered, and comes again", async ({ sink, arrived }, under) => {
    const before = tellMany(5, 2);
    await deliver(sink, before);
    const facts = tellMany(50, 2);
    await frozen(under.server, () => assert.rejects(deliver(sink, facts, 2_000)));
    await assert.rejects(sink.deliver(facts, AbortSignal.abort(new Error("not now"))), /not now/);
    await deliver(sink, facts);
    assertInOrder(await arrived(), [...before, ...facts]);
  });

  withSink("nothing that was confirmed is lost when the server is killed", async ({ sink, arrived }, { server }) => {
    const isTaken = (page: Told[]) =>
      deliver(sink, page, 5_000).then(
        () => true,
        () => false,
      );
    const delivered = [...tellMany(20, 2)];
    await deliver(sink, delivered);
    const killed = server.kill();
    let page = tellMany(20, 2);
    for (; await isTaken(page); page = tellMany(20, 2)) delivered.push(...page);
    await killed;
    await assert.rejects(deliver(sink, page));
    await server.restart();
    // It may listen before it is ready, and a queue without a leader may forget what it was given meanwhile.
    await until(async () => (await isTaken(page)) || undefined, 3 * LIMIT_MS);
    assertInOrder(await arrived(), [...delivered, ...page]);
  });

  withServer("nothing is left open once it is closed", async (under) => {
    const before = sockets();
    const sink = (await under.open()).sink;
    await deliver(sink, [tell()]);
    await sink.close();
    await sink.close();
    await until(async () => (sockets() <= before ? true : undefined));
  });

  withServer("no error shows a password", async (under, t) => {
    const password = "correct-horse-battery";
    const sink = await under.openWith(password);
    t.after(() => sink.close());
    const error = await deliver(sink, [tell()]).then(
      () => assert.fail("it was let in"),
      (error: unknown) => error,
    );
    for (const said of [whyOf(error), String(error)]) assert.ok(!said.includes(password), said);
  });
}

const deliver = (sink: Sink, facts: readonly Told[], mostMs = LIMIT_MS): Promise<readonly Refused[]> =>
  sink.deliver(facts, AbortSignal.timeout(mostMs));

/** While the server's process is stopped: its connections are open, and it says nothing. */
async function frozen(server: Server, act: () => Promise<void>): Promise<void> {
  process.kill(server.pid(), "SIGSTOP");
  try {
    await act();
  } finally {
    process.kill(server.pid(), "SIGCONT");
  }
}

/** None is missing and none is too many, and of each notification the first arrivals are in order; what came again counts as it came first. */
export function assertInOrder(arrived: readonly Arrived[], expected: readonly { body: { id: string } }[]): void {
  const first = [...new Set(arrived.map(({ id }) => id))];
  assert.deepEqual([...first].sort(), expected.map(({ body }) => body.id).sort());
  const numbers = new Map<string, number>();
  for (const id of first) {
    const [notificationId = "", number = 0] = [id.slice(0, 36), Number(id.slice(37))];
    assert.ok(number > (numbers.get(notificationId) ?? -1), `${id} came after ${numbers.get(notificationId)}`);
    numbers.set(notificationId, number);
  }
}

function pagesOf(facts: readonly Told[], size: number): Told[][] {
  return Array.from({ length: Math.ceil(facts.length / size) }, (_, n) => facts.slice(n * size, (n + 1) * size));
}

const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
