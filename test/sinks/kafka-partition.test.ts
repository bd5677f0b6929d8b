// A fact goes to the partition that every other client would choose for its key.

import assert from "node:assert/strict";
import { test } from "node:test";
import { compatibilityPartitioner } from "@platformatic/kafka";
import { partitionOf } from "#sinks/kafka-partition.ts";

test("the partition of a key is the one that Kafka's own clients choose", () => {
  // By Kafka's own Utils.murmur2, as its tests have them.
  const known = { "21": -973932308, foobar: -790332482, "a-little-bit-long-string": -985981536, abc: 479470107 };
  for (const [key, hash] of Object.entries(known)) assert.equal(partitionOf(Buffer.from(key)), hash & 0x7fffffff, key);
});

test("and the one that the client would choose, whatever the key", () => {
  const keys = [Buffer.alloc(0), Buffer.from([0xff, 0x80, 0x00, 0xfe, 0x81])];
  for (let n = 0; n < 500; n++) keys.push(Buffer.from(crypto.randomUUID()));
  for (let n = 0; n < 500; n++) keys.push(Buffer.from(crypto.getRandomValues(new Uint8Array(n % 41))));
  for (const key of keys)
    assert.equal(partitionOf(key), compatibilityPartitioner({ topic: "facts", value: key }, key), key.toString("hex"));
});
