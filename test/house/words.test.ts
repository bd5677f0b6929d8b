// docs/words.md says what the code says, where a test can tell.

import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROLES } from "#config/server.ts";
import { CHANNELS } from "#domain/notification.ts";
import { PRIORITIES } from "#domain/priority.ts";
import { ENDINGS } from "#domain/status.ts";

const root = join(import.meta.dirname, "..", "..");
const page = readFileSync(join(root, "docs", "words.md"), "utf8");
const rows = [...page.matchAll(/^\| ([^|]+) \| (.+) \|$/gm)].map(([, words = "", meaning = ""]) => ({
  words: words.split(", "),
  meaning,
}));
const meaningOf = (word: string) => rows.find(({ words }) => words.includes(word))?.meaning ?? "";
const quotedIn = (meaning: string) => [...meaning.matchAll(/`([^`]+)`/g)].map(([, name]) => name);

test("no word means two things", () => {
  const words = rows.flatMap((row) => row.words);
  assert.ok(words.length > 60, "the test reads the page");
  assert.deepEqual(
    words.filter((word, n) => words.indexOf(word) !== n),
    [],
  );
});

test("lanes, channels, roles and endings are those of the code", () => {
  assert.deepEqual(quotedIn(meaningOf("lane")), [...PRIORITIES]);
  assert.deepEqual(quotedIn(meaningOf("channel")).sort(), [...CHANNELS].sort());
  assert.deepEqual(quotedIn(meaningOf("role")).sort(), [...ROLES].sort());
  assert.deepEqual(quotedIn(meaningOf("ending")).sort(), [...ENDINGS].sort());
});

/** Words that were given up, what stands for them now, and who may know them still. */
const GIVEN_UP: { word: RegExp; now: string; knownTo?: string }[] = [
  { word: /recurrence/i, now: "schedule" },
  { word: /accept_?lanes/i, now: "acceptCommits", knownTo: "config/database.ts" },
  { word: /settle_?lanes/i, now: "abreast" },
  { word: /guarded_?(http|lookup)/i, now: "public client" },
];

test("a word that was given up is not used any more", () => {
  const files = globSync("**/*.ts", { cwd: join(root, "src") });
  const uses = GIVEN_UP.flatMap(({ word, now, knownTo }) =>
    files
      .filter((file) => file !== knownTo && word.test(readFileSync(join(root, "src", file), "utf8")))
      .map((file) => `${file}: say ${now}`),
  );
  assert.deepEqual(uses, []);
});

test("every file that docs/walk.md names is there", () => {
  const walk = readFileSync(join(root, "docs", "walk.md"), "utf8");
  const named = [...walk.matchAll(/`((?:[a-z-]+\/)+[a-z0-9.-]+\.ts)`/g)].map(([, file = ""]) => file);
  assert.ok(named.length > 25, "the test reads the page");
  assert.deepEqual(
    named.filter((file) => !existsSync(join(root, "src", file)) && !existsSync(join(root, file))),
    [],
  );
});
