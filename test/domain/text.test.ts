// Text is cut between characters, never inside one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { cut, storable } from "#domain/text.ts";

test("a text that is short enough stays as it is", () => {
  for (const text of ["", "abc", "a🔔", "🔔🔔"]) assert.equal(cut(text, 4), text);
});

test("a longer one is cut, and no half of a character is left", () => {
  assert.equal(cut("abcdef", 4), "abcd");
  assert.equal(cut("abc🔔", 4), "abc");
  assert.equal(cut("ab🔔c", 4), "ab🔔");
  assert.equal(cut("🔔", 1), "");
  for (let most = 0; most < 9; most++) assert.ok(cut("🔔a🔔b🔔c", most).isWellFormed(), `${most}`);
});

test("what cannot be stored is marked or left out", () => {
  assert.equal(storable("a\0b"), "ab");
  assert.equal(storable("a\ud83d"), "a\ufffd");
  assert.equal(storable("\udd14🔔"), "\ufffd🔔");
});
