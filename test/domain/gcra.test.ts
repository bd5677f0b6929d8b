// The arithmetic of limits: never more than the burst and the rate allow, wherever one looks.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { after, blockOf, burstOf, intervalMs, PERIOD_MS, PERIODS, type Rate, roomAt, waitMs } from "#domain/gcra.ts";

const table: [name: string, rate: Rate, burst: number, interval: number][] = [
  ["one a second comes once a second", { per: "second", most: 1 }, 1, 1_000],
  ["small limits are spread evenly", { per: "second", most: 10 }, 1, 100],
  ["a twentieth may come at once", { per: "minute", most: 300 }, 15, 60_000 / 286],
  ["a burst of all leaves one per period", { per: "hour", most: 20, burst: 20 }, 20, 3_600_000],
];
for (const [name, rate, burst, interval] of table) {
  test(name, () => {
    assert.equal(burstOf(rate), burst);
    assert.equal(intervalMs(rate), interval);
  });
}

test("without a burst of its own at least 95 % of a limit can be used steadily", () => {
  for (const per of PERIODS) {
    for (let most = 1; most < 5_000; most++) {
      const steady = PERIOD_MS[per] / intervalMs({ per, most });
      assert.ok(steady >= 0.95 * most && steady < most + 1e-6, `${most} per ${per}: ${steady}`);
    }
  }
});

const anyRate = fc
  .record({
    per: fc.constantFrom(...PERIODS),
    most: fc.integer({ min: 1, max: 2_000 }),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ per, most, share }): Rate => ({ per, most, burst: Math.max(1, Math.floor(share * most)) }));

test("over any interval there are at most burst + rate x time, and never more than `most` in a period", () => {
  fc.assert(
    fc.property(
      anyRate,
      fc.array(fc.tuple(fc.double({ min: 0, max: 3, noNaN: true }), fc.integer({ min: 1, max: 5 })), {
        maxLength: 200,
      }),
      (rate, steps) => {
        const interval = intervalMs(rate);
        const grants: number[] = [];
        let now = 1_700_000_000_000;
        let tat = 0;
        for (const [gap, n] of steps) {
          now += gap * interval;
          if (n > burstOf(rate) || waitMs(tat, now, rate, n) > 0) continue;
          tat = after(tat, now, rate, n);
          for (let i = 0; i < n; i++) grants.push(now);
        }
        for (let i = 0; i < grants.length; i++) {
          for (let j = i; j < grants.length; j++) {
            const passed = (grants[j] as number) - (grants[i] as number);
            assert.ok(j - i + 1 <= burstOf(rate) + passed / interval + 1e-3, `${j - i + 1} in ${passed} ms`);
            if (passed < PERIOD_MS[rate.per] - 1) assert.ok(j - i + 1 <= rate.most);
          }
        }
      },
    ),
    { numRuns: 300 },
  );
});

test("whoever waits as long as told may go, and not a hair earlier", () => {
  fc.assert(
    fc.property(anyRate, fc.integer({ min: 0, max: 50 }), (rate, taken) => {
      let tat = 0;
      const now = 1_000_000;
      for (let n = 0; n < taken; n++) tat = after(tat, now, rate);
      const wait = waitMs(tat, now, rate);
      assert.ok(waitMs(tat, now + wait, rate) < 1e-6);
      if (wait > 1) assert.ok(waitMs(tat, now + wait - 0.5, rate) > 0);
      assert.equal(roomAt(tat, now, rate), Math.max(0, burstOf(rate) - taken));
    }),
  );
});

test("blocks are taken only where rates are high, and never more than a burst", () => {
  assert.equal(blockOf([{ per: "second", most: 1 }]), 1);
  assert.equal(blockOf([{ per: "second", most: 50 }]), 1);
  assert.equal(blockOf([{ per: "second", most: 1_000 }]), 19);
  assert.equal(
    blockOf([
      { per: "second", most: 1_000 },
      { per: "day", most: 50_000 },
    ]),
    1,
  );
  assert.equal(blockOf([{ per: "second", most: 1_000, burst: 4 }]), 4);
});
