// What several processes have counted, put together as one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Counter, Gauge, Registry } from "prom-client";
import { createFigures } from "#supervisor/figures.ts";
import { tallyHistogram } from "#telemetry/tally.ts";

/** A process that has accepted so many, sees a queue of so many and is so far behind with its own work. */
function processWith({ accepted, depth, lag }: { accepted: number; depth: number; lag: number }) {
  const registry = new Registry();
  const registers = [registry];
  new Counter({ name: "accepted_total", help: "h", labelNames: ["channel"], registers }).inc(
    { channel: "sms" },
    accepted,
  );
  new Gauge({ name: "depth", help: "h", aggregator: "max", registers }).set(depth);
  new Gauge({ name: "streams", help: "h", registers }).set(accepted);
  new Gauge({ name: "nodejs_eventloop_lag_p99_seconds", help: "h", aggregator: "average", registers }).set(lag);
  const waits = tallyHistogram(registry, { name: "waits", help: "h", label: "lane", buckets: [1, 2] });
  for (let n = 0; n < accepted; n++) waits.observe("low", 1.5);
  return registry.getMetricsAsJSON();
}

const linesOf = async (text: Promise<string>) =>
  (await text).split("\n").filter((line) => line && !line.startsWith("#"));

test("counters, histograms and what each has for itself are summed; the one database's figures and the worst lag are not", async () => {
  const figures = createFigures();
  figures.say(1, await processWith({ accepted: 3, depth: 40, lag: 0.01 }));
  figures.say(2, await processWith({ accepted: 4, depth: 40, lag: 0.5 }));
  const lines = await linesOf(figures.text([]));
  for (const line of [
    'accepted_total{channel="sms"} 7',
    "streams 7",
    "depth 40",
    "nodejs_eventloop_lag_p99_seconds 0.5",
    'waits_bucket{le="1",lane="low"} 0',
    'waits_bucket{le="2",lane="low"} 7',
    'waits_sum{lane="low"} 10.5',
    'waits_count{lane="low"} 7',
  ]) {
    assert.ok(lines.includes(line), `${line} in\n${lines.join("\n")}`);
  }
});

test("what a process has counted stays counted when it is gone and another takes its place; what it had open does not", async () => {
  const figures = createFigures();
  figures.say(1, await processWith({ accepted: 3, depth: 40, lag: 0 }));
  figures.say(2, await processWith({ accepted: 4, depth: 40, lag: 0 }));
  for (let deaths = 1; deaths <= 2; deaths++) {
    figures.leave(2);
    const without = await linesOf(figures.text([]));
    assert.ok(without.includes(`accepted_total{channel="sms"} ${3 + 4 * deaths}`), without.join("\n"));
    assert.ok(without.includes("streams 3"));
    figures.say(2, await processWith({ accepted: 4, depth: 40, lag: 0 }));
  }
  const lines = await linesOf(figures.text([]));
  assert.ok(lines.includes('accepted_total{channel="sms"} 15'), lines.join("\n"));
  assert.ok(lines.includes('waits_count{lane="low"} 15'));
  assert.ok(lines.includes("streams 7"));
});
