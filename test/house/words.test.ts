// docs/words.md says what the code says, where a test can tell.

import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
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

/** Words that were given up, and what stands for them now. */
const GIVEN_UP: { [word: string]: string } = {
  recurrence: "schedule",
  acceptLanes: "acceptCommits",
  settleLanes: "abreast",
  guardedHttp: "public client",
};

test("a word that was given up is not used any more", () => {
  const uses = globSync("src/**/*.ts", { cwd: root }).flatMap((file) => {
    const text = readFileSync(join(root, file), "utf8");
    return Object.keys(GIVEN_UP)
      .filter((word) => new RegExp(`\\b${word}`, "i").test(text))
      .map((word) => `${basename(file)}: ${word}, say ${GIVEN_UP[word]}`);
  });
  // The name that a setting had before is known to whoever reads settings.
  assert.deepEqual(
    uses.filter((use) => !use.includes("acceptLanes")),
    [],
  );
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
