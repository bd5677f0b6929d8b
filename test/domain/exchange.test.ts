// What may stand in the record of what went over the wire.

import assert from "node:assert/strict";
import { test } from "node:test";
import { kept, MOST_KEPT, redactor } from "#domain/exchange.ts";

const KEY = "SG.planted-0123456789";
const redact = redactor({
  type: "sendgrid",
  from: "news@example.com",
  apiKey: KEY,
  apiUrl: "https://user:hunter2hunter2@api.example.com/planted-path/v3",
  nested: { privateKey: "-----BEGIN KEY-----\nabcdefghijklmnop\n-----END KEY-----" },
});

test("whatever a provider was told that may be a secret is starred out, however it is said back", () => {
  for (const [said, secret] of [
    [`the key ${KEY} is wrong`, KEY],
    [`key=${encodeURIComponent(KEY)}`, KEY],
    [Buffer.from(KEY).toString("base64"), Buffer.from(KEY).toString("base64")],
    ["GET /planted-path/v3", "planted-path"],
    ["hunter2hunter2", "hunter2hunter2"],
    ["-- abcdefghijklmnop --", "abcdefghijklmnop"],
    ["Authorization: Bearer abcdef123456", "abcdef123456"],
    ["authorization: Basic QUMxOnRva2Vu", "QUMxOnRva2Vu"],
    ['{"api_key": "something"}', "something"],
    ["password=correct-horse&x=1", "correct-horse"],
    ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "eyJzdWIiOiIxIn0"],
  ] as const) {
    const clean = redact(said);
    assert.ok(!clean.includes(secret), clean);
    assert.equal(clean.length, said.length);
  }
  assert.equal(
    redact("news@example.com is not verified, see api.example.com"),
    "news@example.com is not verified, see api.example.com",
  );
});

test("the beginning is kept, and no part of a secret at its end", () => {
  const body = kept(KEY.repeat(1_000), redact);
  assert.equal(body, "*".repeat(MOST_KEPT));
  assert.ok(!kept("x".repeat(MOST_KEPT - 5) + KEY, redact).includes("SG.pl"));
  assert.equal(kept("a\0b\ud800", redact), "ab\ufffd");
});
