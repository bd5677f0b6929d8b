// Files stay small enough to be read in one go. Functions are held to eighty lines by the linter (biome.json).

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..", "..");
const files = ["src", "web"].flatMap((room) =>
  readdirSync(join(root, room), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => {
      const text = readFileSync(join(root, room, name), "utf8");
      return { name: `${room}/${name}`, text, lines: text.split("\n").length - 1 };
    }),
);

test("half of the files have 80 lines or fewer", () => {
  const sizes = files.map(({ lines }) => lines).sort((a, b) => a - b);
  const median = sizes[Math.floor(sizes.length / 2)] ?? 0;
  assert.ok(sizes.length > 200 && median <= 80, `${sizes.length} files, the median has ${median} lines`);
});

test("a file over 300 lines says in its header why it is long", () => {
  const headerOf = (text: string) => text.slice(0, text.search(/^(?!\/\/|#!)/m));
  const long = files.filter(({ text, lines }) => lines > 300 && !/\blong\b/i.test(headerOf(text)));
  assert.deepEqual(
    long.map(({ name, lines }) => `${name}: ${lines}`),
    [],
  );
});
