// docs/operations.md lists the keeper's chores as they are.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { choresOf } from "#wiring/chores.ts";

const UNITS: { [unit: string]: number } = { s: 1_000, h: 3_600_000 };
const msOf = (text = ""): number => {
  const [count, unit] = text.split(" ");
  return Number(count) * (UNITS[unit ?? ""] ?? Number.NaN);
};

test("docs/operations.md lists every chore with its interval, its limit and its size", () => {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "operations.md"), "utf8");
  const rows = page.matchAll(/^\| `([a-z ]+)` \| (\d+ [sh]) \| (\d+ s) \| (\d+) \| [^|]+ \|$/gm);
  const listed = [...rows].map(([, name, every, limit, size]) => ({
    name,
    everyMs: msOf(every),
    limitMs: msOf(limit),
    size: Number(size),
  }));
  const queue = { expire: async () => 0, bringBack: async () => 0 };
  const known = choresOf({ queue, sweepMs: 5_000, silentMs: 15_000, retentionDays: 90, auditDays: 400, feedDays: 7 });
  assert.deepEqual(
    listed,
    known.map(({ name, everyMs, limitMs, size }) => ({ name, everyMs, limitMs, size })),
  );
});
