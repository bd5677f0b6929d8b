// An engine that does not answer holds up nobody.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine, Entry, Take, TakeAsk } from "#queue/engine.ts";
import { createPatience } from "#queue/patience.ts";

const ENTRY: Entry = { handoff: 8, place: 0, count: 1, rank: 2, tenant: 1, pool: 0, seq: 1 };
const ASK = { count: 1, ranks: [0, 1, 2, 3] } as unknown as TakeAsk;
/** Long after the test. */
const NEVER_MS = 600_000;

/** Answers when it is told to. */
function slowEngine() {
  const asked: { answer(take: Take): void; fail(error: Error): void }[] = [];
  const take = () => new Promise<Take>((answer, fail) => void asked.push({ answer, fail }));
  return { asked, engine: { name: "redis", take } as unknown as Engine };
}

const failing = (error: unknown) => assert.fail(String(error));

test("one that answers is waited for", async () => {
  const { asked, engine } = slowEngine();
  const take = createPatience(engine, failing, NEVER_MS)(ASK);
  asked[0]?.answer({ entries: [ENTRY], hasMore: true, done: () => undefined });
  assert.deepEqual((await take).entries, [ENTRY]);
});

test("one that does not answer gives nothing, is not asked again, and has back what it gives late", async () => {
  const { asked, engine } = slowEngine();
  const take = createPatience(engine, failing, 1);
  const back: unknown[] = [];
  assert.deepEqual([(await take(ASK)).entries, (await take(ASK)).entries, asked.length], [[], [], 1]);
  asked[0]?.answer({ entries: [ENTRY], hasMore: true, done: (...told) => void back.push(told) });
  await new Promise(setImmediate);
  assert.deepEqual(back, [[[ENTRY], []]]);
  await take(ASK);
  assert.equal(asked.length, 2);
});

test("one that fails gives nothing and is asked again, however late it failed", async () => {
  const { asked, engine } = slowEngine();
  const told: unknown[] = [];
  const take = createPatience(engine, (error) => void told.push(error), 1);
  const error = new Error("away");
  await take(ASK);
  asked[0]?.fail(error);
  await new Promise(setImmediate);
  await take(ASK);
  assert.deepEqual([told, asked.length], [[error], 2]);
});
