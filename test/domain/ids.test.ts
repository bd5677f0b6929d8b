// Ids: UUIDv7 in the order they were made.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createIds, isId } from "#domain/ids.ts";

test("ids of one process strictly increase, even within a millisecond and when the clock jumps back", () => {
  let ms = 1_800_000_000_000;
  const newId = createIds(() => ms);
  let last = "";
  for (let n = 0; n < 20_000; n++) {
    if (n === 5_000) ms += 3;
    if (n === 12_000) ms -= 60_000;
    const id = newId();
    assert.ok(id > last, `${id} after ${last}`);
    last = id;
  }
});

test("an id is a version 7 UUID that carries its time", () => {
  const newId = createIds(() => 0x0123456789ab);
  const id = newId();
  assert.ok(isId(id));
  assert.match(id, /^01234567-89ab-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test("ids do not repeat across processes", () => {
  const ids = new Set<string>();
  for (let p = 0; p < 50; p++) {
    const newId = createIds(() => 1_800_000_000_000);
    for (let n = 0; n < 200; n++) ids.add(newId());
  }
  assert.equal(ids.size, 10_000);
});
