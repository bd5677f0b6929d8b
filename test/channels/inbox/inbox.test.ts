// The provider of the channel inbox, with a store in memory.

import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import type { Message } from "#channels/channel.ts";
import { inboxProvider } from "#channels/inbox/inbox.ts";
import type { NewItem } from "#domain/inbox.ts";

const options = { idempotencyKey: "k", timeoutMs: 1_000, signal: new AbortController().signal };
const message = (n: number, content: Message["request"]["content"] = { title: `n${n}` }): Message => ({
  notificationId: `id-${n}`,
  tenant: 1,
  attempt: 1,
  request: { channel: "inbox", recipient: { userId: "u" }, content },
});

test("messages that come together share a commit", async () => {
  const batches: string[][] = [];
  const provider = inboxProvider(async (items) => void batches.push(items.map(({ id }) => id)));
  const replies = await Promise.all(Array.from({ length: 50 }, (_, n) => provider.send(message(n), options)));
  assert.ok(replies.every(({ kind }) => kind === "accepted"));
  assert.equal(batches.flat().length, 50);
  assert.ok(batches.length <= 2, `${batches.length} commits`);
});

const refusal = (code: string) => Object.assign(new pg.DatabaseError("it says: secret content", 1, "error"), { code });

test("one that the store will never have is rejected, alone; one that it will not have now is tried again", async () => {
  const stored: string[] = [];
  const provider = inboxProvider(async (items) => {
    if (items.some(({ id }) => id === "id-3")) throw refusal("22P05");
    if (items.some(({ id }) => id === "id-5")) throw refusal("40P01");
    stored.push(...items.map(({ id }) => id));
  });
  const replies = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => provider.send(message(n), options)));
  assert.deepEqual(
    replies.map(({ kind }) => kind),
    ["accepted", "accepted", "rejected", "accepted", "unavailable", "accepted"],
  );
  assert.deepEqual(stored.sort(), ["id-1", "id-2", "id-4", "id-6"]);
  assert.ok(!JSON.stringify(replies).includes("secret"));
});

test("however many the store will never have, all others are stored", async () => {
  const stored: string[] = [];
  const provider = inboxProvider(async (items) => {
    if (items.some(({ title }) => title === "bad")) throw refusal("22021");
    stored.push(...items.map(({ id }) => id));
  });
  const sends = Array.from({ length: 100 }, (_, n) =>
    provider.send(message(n, { title: n % 10 === 0 ? "bad" : "good" }), options),
  );
  const replies = await Promise.all(sends);
  assert.equal(replies.filter(({ kind }) => kind === "rejected").length, 10);
  assert.equal(stored.length, 90);
});

test("a store that is away is asked a few times for a batch, not once for each", async () => {
  let asked = 0;
  const provider = inboxProvider(async () => {
    asked++;
    throw Object.assign(new Error("away"), { code: "ECONNREFUSED" });
  });
  const replies = await Promise.all(Array.from({ length: 100 }, (_, n) => provider.send(message(n), options)));
  assert.ok(replies.every(({ kind }) => kind === "unavailable"));
  assert.ok(asked < 10, `${asked} times`);
});

test("a category is cut between characters", async () => {
  const items: NewItem[] = [];
  const provider = inboxProvider(async (some) => void items.push(...some));
  const data = { category: `${"x".repeat(127)}🔔` };
  await provider.send(message(1, { title: "t", data }), options);
  assert.equal(items[0]?.category, "x".repeat(127));
});

test("only http, https and paths are links", async () => {
  const provider = inboxProvider(async () => undefined);
  for (const [clickAction, isGood] of [
    ["https://example.com/a", true],
    ["HTTP://example.com", true],
    ["/orders/17?a=b:c", true],
    ["orders/17", true],
    ["javascript:alert(1)", false],
    ["JAVASCRIPT:alert(1)", false],
    ["  javascript:alert(1)", false],
    ["data:text/html,x", false],
    ["blob:x", false],
  ] as const) {
    const { request } = message(1, { title: "t", clickAction });
    assert.equal(provider.validate?.(request).length, isGood ? 0 : 1, clickAction);
    const reply = await provider.send({ ...message(1), request }, options);
    assert.equal(reply.kind, isGood ? "accepted" : "rejected", clickAction);
  }
});
