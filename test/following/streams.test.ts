// Streams of events: what a quiet tenant, a reader that is stuck and a stop mean for them.

import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { PassThrough, Writable } from "node:stream";
import { test } from "node:test";
import { type Position, writtenPosition } from "#domain/fact.ts";
import type { FactBody } from "#domain/fact-body.ts";
import { createEventStreams, type FactPage } from "#following/streams.ts";

const at = (key: number): Position => ({ epoch: 1, key, seq: 1, ordinal: 0 });
const factAt = (key: number): FactBody => ({
  position: writtenPosition(at(key)),
  id: `a:${key}`,
  type: "sent",
  at: "2027-01-01T09:00:00.000Z",
  notificationId: "019a8c52-6f0e-7c11-9a53-2f1b7f6a4c10",
});
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A stream of tenant 7, and what was asked for and written; a page is answered with as many facts as `pages` says. */
function opened(out: PassThrough | Writable = new PassThrough()) {
  let nowMs = 1_000_000;
  const streams = createEventStreams(
    () => nowMs,
    () => 0.5,
  );
  const asked: number[] = [];
  const pages: FactPage[] = [];
  const admitted = {
    tenant: 7,
    position: at(10),
    async read(after: Position): Promise<FactPage> {
      asked.push(after.key);
      return pages.shift() ?? { data: [], next: after, isAtEnd: true };
    },
    isAllowed: async () => true,
  };
  const follower = streams.admit(admitted);
  streams.open(follower, out as unknown as ServerResponse);
  const pass = (ms: number) => {
    nowMs += ms;
    streams.tick();
  };
  return { streams, admitted, asked, pages, out, pass, text: () => String((out as PassThrough).read() ?? "") };
}

test("who is quiet reads nothing while others are busy, and is moved on: the heartbeat says how far", async () => {
  const { streams, asked, pages, pass, text } = opened();
  await turn();
  assert.deepEqual(asked, [10]);
  assert.match(text(), /^retry: \d+\nid: 1:10:1:0\n\n$/);
  for (const key of [20, 30, 40]) streams.tell(new Set([8, 9]), at(key));
  await turn();
  assert.deepEqual(asked, [10]);
  pass(25_000);
  assert.equal(text(), ":\nid: 1:40:1:0\n\n");
  pages.push({ data: [factAt(45)], next: at(50), isAtEnd: true });
  streams.tell(new Set([7]), at(50));
  await turn();
  assert.deepEqual(asked, [10, 40]);
  assert.match(text(), /^id: 1:45:1:0\nevent: fact\ndata: /);
  // What was read already is not gone back to.
  streams.tell(new Set([8]), at(49));
  streams.tell(new Set([7]), at(50));
  await turn();
  assert.deepEqual(asked, [10, 40, 50]);
});

test("one that is reading is not moved past what it has not read", async () => {
  const { streams, admitted, asked } = opened();
  await turn();
  let answer: (page: FactPage) => void = () => {};
  const { read } = admitted;
  const slow = streams.admit({
    ...admitted,
    read: (after) => (asked.length === 1 ? new Promise((resolve) => (answer = resolve)) : read(after)),
  });
  streams.open(slow, new PassThrough() as unknown as ServerResponse);
  streams.tell(new Set([8]), at(90));
  assert.deepEqual(slow.position, at(10));
  asked.push(0);
  answer({ data: [], next: at(20), isAtEnd: false });
  await turn();
  assert.deepEqual(asked, [10, 0, 20]);
});

test("a reader that takes nothing costs one page, and is cut off after ten seconds", async () => {
  const stuck = new Writable({ highWaterMark: 64, write: () => {} });
  const { streams, asked, pages, out, pass } = opened(stuck);
  pages.push(...[11, 12, 13].map((key) => ({ data: [factAt(key)], next: at(key), isAtEnd: false })));
  await turn();
  for (const key of [20, 21, 22]) {
    streams.tell(new Set([7]), at(key));
    await turn();
  }
  assert.deepEqual(asked, [10, 10], "it waits to be read from");
  pass(9_000);
  await turn();
  assert.deepEqual([out.destroyed, streams.size()], [false, 1]);
  pass(2_000);
  assert.deepEqual([out.destroyed, streams.size()], [true, 0]);
});

test("a stream ends after about ten minutes, and all end when the process stops, which takes no more", async () => {
  const { streams, admitted, pass, out, text } = opened();
  await turn();
  text();
  const other = new PassThrough();
  streams.open(streams.admit(admitted), other as unknown as ServerResponse);
  pass(599_000);
  assert.equal(streams.size(), 2);
  pass(2_000);
  assert.equal(streams.size(), 0);
  assert.ok(out.writableEnded && other.writableEnded);
  const last = streams.admit(admitted);
  const late = new PassThrough();
  streams.drain();
  streams.open(last, late as unknown as ServerResponse);
  assert.ok(late.writableEnded);
  assert.throws(() => streams.admit(admitted), { code: "SHUTTING_DOWN" });
});
