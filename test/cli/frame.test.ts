// The screen of carillon top, drawn of what it is told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { frameOf, type Snapshot } from "#cli/run/frame.ts";

const plain = (_colour: string, text: string) => text;
const endings = { sent: 40, delivered: 0, failed: 2, cancelled: 0, expired: 0, suppressed: 0, ambiguous: 0 };
const worker = (name: string, delivered: number) => ({
  ...{ name, delivered, alive: true, held: 3, sending: 2, takes: {}, engines: [] },
  ...{ startedAt: "2026-11-18T00:00:00.000Z", seenAt: "2026-11-18T00:00:00.000Z" },
});
const snapshot = (more: Partial<Snapshot> = {}): Snapshot => ({
  atMs: 1_000,
  queue: {
    engine: "postgres",
    depth: { urgent: 0, high: 10, normal: 1_500, low: 0 },
    ...{ processing: 4, scheduled: 7, oldestAgeMs: 61_000, paused: [], untaken: [] },
  } as unknown as Snapshot["queue"],
  ledger: { accepted: 1_556, waiting: 1_514, balanced: true, ...endings } as Snapshot["ledger"],
  workers: [worker("one", 40)],
  providers: [],
  ...more,
});

test("a frame has figures, lanes, workers and providers", () => {
  const lines = frameOf("title", snapshot(), undefined, { columns: 80, rows: 40 }, plain);
  assert.deepEqual(lines.slice(0, 9), [
    "title",
    "accepted 1,556   waiting 1,514   sent 40   failed 2",
    "",
    "urgent             0",
    "high              10  #",
    `normal         1,500  ${"#".repeat(30)}`,
    "low                0",
    "being sent 4, later 7, the oldest for 1 min",
    "",
  ]);
  assert.match(lines[10] ?? "", /^one +3 +2 +40$/);
});

test("the frame before gives rates, by the time between", () => {
  const later = snapshot({
    atMs: 3_000,
    ledger: { ...snapshot().ledger, accepted: 1_576, sent: 45 },
    workers: [worker("one", 45), worker("new", 9)],
  });
  const text = frameOf("", later, snapshot(), { columns: 200, rows: 40 }, plain).join("\n");
  assert.match(text, /accepted 1,576 \(10\/s\) .*sent 45 \(2\.5\/s\)/);
  assert.match(text, /^one +3 +2 +45 {2}\(2\.5\/s\)$/m);
  assert.match(text, /^new +3 +2 +9$/m);
});

test("what is wrong stands out, and no line is longer or more than the screen", () => {
  const ill = snapshot({
    ledger: { ...snapshot().ledger, balanced: false },
    workers: [{ ...worker("gone", 1), alive: false }],
    providers: Array.from({ length: 50 }, (_, n) => ({
      ...{ name: `p${n}\u001b[2J`, type: "smtp", channels: [], routes: [], own: false, capabilities: {} },
      ...{ health: { healthy: false, detail: "x".repeat(300) }, spend: { since: "", sent: 1, cost: 0 } },
    })) as unknown as Snapshot["providers"],
  });
  const marked = frameOf("t", ill, undefined, { columns: 60, rows: 20 }, (colour, text) => `<${colour}>${text}`);
  assert.equal(marked.length, 20);
  assert.equal(marked.at(-1), "…");
  assert.ok(marked.includes("<red>the ledger does NOT balance"));
  assert.ok(marked.includes("<red>no worker is alive: nothing is sent"));
  const lines = frameOf("t", ill, undefined, { columns: 60, rows: 20 }, plain);
  assert.ok(lines.every((line) => line.length <= 60 && !line.includes("\u001b")));
});
