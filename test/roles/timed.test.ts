// Timed sources: each on time, whatever becomes of the others, and quiet while nothing is due.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startScheduler } from "#roles/scheduler.ts";
import { startTimed, type Timed } from "#roles/timed.ts";
import { until } from "../support/until.ts";

/** The database's clock, an hour ahead of everything here. */
const nowMs = () => performance.now() + 3_600_000;

/** Due every 20 ms; notes how late it was looked at. */
function punctual() {
  const lateMs: number[] = [];
  let dueAt = performance.now();
  const source: Timed = {
    name: "punctual",
    async fire() {
      const now = performance.now();
      if (now < dueAt) return { nowMs: nowMs(), inMs: dueAt - now };
      lateMs.push(now - dueAt);
      dueAt = now + 20;
      return { nowMs: nowMs(), inMs: 20 };
    },
  };
  return { source, lateMs };
}

/** With something due at those instants of the database's clock, and `looks` counted. */
function waiting(due: number[] = []) {
  const seen = { looks: 0, fired: [] as number[] };
  const source: Timed = {
    name: "waiting",
    async fire() {
      seen.looks++;
      const now = nowMs();
      seen.fired.push(...due.filter((at) => at <= now).map((at) => now - at));
      due = due.filter((at) => at > now);
      return { nowMs: now, inMs: due.length > 0 ? Math.min(...due) - now : undefined };
    },
  };
  return { source, seen, add: (at: number) => due.push(at) };
}

function start(sources: Timed[], more: { wallClock?: () => number; recheckMs?: number } = {}) {
  const failures: string[] = [];
  const scheduler = startScheduler({
    sources,
    recheckMs: more.recheckMs ?? 300_000,
    wallClock: more.wallClock ?? Date.now,
    monotonic: () => performance.now(),
    onFailure: (source) => void failures.push(source),
  });
  return { ...scheduler, failures };
}

test("a source that always throws, and one that never answers, make no other late", async () => {
  const { source, lateMs } = punctual();
  let stop = () => {};
  const never = new Promise<never>((_, reject) => {
    stop = () => reject(new Error("over"));
  });
  const throwing: Timed = { name: "throwing", fire: () => Promise.reject(new Error("no")) };
  const hanging: Timed = { name: "hanging", fire: () => never };
  const alone = start([throwing, hanging, source]);
  try {
    await until(async () => (lateMs.length > 20 ? true : undefined));
    // A source that had to wait for the others would be late by the pause after a failure at least.
    const median = lateMs.toSorted((a, b) => a - b)[10] as number;
    assert.ok(median < 500, `${median} ms late`);
    assert.ok(alone.failures.includes("throwing"), "and it is told of");
  } finally {
    stop();
    await alone.stop();
  }
});

test("what fails is tried again soon, then ever more rarely, and no hint hurries it", async () => {
  const triedAt: number[] = [];
  const failing: Timed = {
    name: "failing",
    fire() {
      triedAt.push(performance.now());
      return Promise.reject(new Error("no"));
    },
  };
  const { hint, stop } = start([failing]);
  try {
    const hurrying = setInterval(() => hint(nowMs()), 5);
    await until(async () => (triedAt.length === 3 ? true : undefined)).finally(() => clearInterval(hurrying));
    const [first = 0, second = 0, third = 0] = triedAt;
    assert.ok(second - first >= 999 && third - second >= 1_999, String(triedAt));
    // Unless hints were missed: what was the trouble may be over.
    hint(undefined);
    await until(async () => (triedAt.length === 4 ? true : undefined));
  } finally {
    await stop();
  }
});

test("a failing look that is told to look again meanwhile does so at once, and once", async () => {
  let fail = () => {};
  const triedAt: number[] = [];
  const failing: Timed = {
    name: "failing",
    fire() {
      triedAt.push(performance.now());
      return new Promise((_, reject) => {
        fail = () => reject(new Error("no"));
      });
    },
  };
  const { hint, stop } = start([failing]);
  try {
    hint(undefined);
    fail();
    await new Promise(setImmediate);
    assert.equal(triedAt.length, 2, "without any pause");
    const failedAt = performance.now();
    fail();
    await until(async () => (triedAt.length === 3 ? true : undefined));
    const waitedMs = (triedAt[2] ?? 0) - failedAt;
    assert.ok(waitedMs >= 1_999, `waited for ${waitedMs} ms`);
  } finally {
    const stopped = stop();
    fail();
    await stopped;
  }
});

test("what fails for long is tried every 5 s at least", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  let now = 0;
  const triedAt: number[] = [];
  const failing: Timed = {
    name: "failing",
    fire() {
      triedAt.push(now);
      return Promise.reject(new Error("no"));
    },
  };
  const running = startTimed(failing, { recheckMs: 300_000, monotonic: () => now, onFailure: () => {} });
  for (; now < 22_000; t.mock.timers.tick(500), now += 500) await new Promise(setImmediate);
  await running.stop();
  assert.deepEqual(triedAt, [0, 1_000, 3_000, 7_000, 12_000, 17_000]);
});

test("a hint is heeded at its instant by every source, and costs nothing before", async () => {
  const [one, other] = [waiting(), waiting()];
  const { hint, stop } = start([one.source, other.source]);
  try {
    await until(async () => (one.seen.looks === 1 && other.seen.looks === 1 ? true : undefined));
    const at = nowMs() + 300;
    one.add(at);
    for (let n = 0; n < 100; n++) hint(at + n * 1_000);
    await until(async () => (one.seen.fired.length === 1 ? true : undefined));
    assert.ok((one.seen.fired[0] as number) >= 0, "never early");
    assert.ok(one.seen.looks <= 4 && other.seen.looks <= 4, `${one.seen.looks} and ${other.seen.looks} looks`);
  } finally {
    await stop();
  }
});

test("what came while it looked is not slept through", async () => {
  const { source, seen, add } = waiting();
  const { hint, stop } = start([
    {
      name: "slow",
      async fire() {
        const next = await source.fire();
        if (seen.looks === 1) {
          // Too late for this look.
          const at = nowMs() + 20;
          add(at);
          hint(at);
        }
        return next;
      },
    },
  ]);
  try {
    await until(async () => (seen.fired.length === 1 ? true : undefined));
  } finally {
    await stop();
  }
});

test("an idle source is looked at once per recheck", async () => {
  const { source, seen } = waiting();
  const startedAt = performance.now();
  const { stop } = start([source], { recheckMs: 200 });
  try {
    await until(async () => (seen.looks >= 4 ? true : undefined));
    assert.ok(seen.looks <= (performance.now() - startedAt) / 200 + 1, `${seen.looks} looks`);
  } finally {
    await stop();
  }
});
