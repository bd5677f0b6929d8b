// What every limit engine must do. An engine's test file calls this with a way to set one up.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { after as arrivalAfter, burstOf, intervalMs, PERIODS, type Rate, waitMs } from "#domain/gcra.ts";
import type { Limit, Taken } from "#guards/limit/limit.ts";

export type LimitUnderTest = {
  limit: Limit;
  /** Another process's way to the same limits. */
  another: Limit;
  stop(): Promise<void>;
};

export function limitConformance(name: string, setUp: () => Promise<LimitUnderTest>): void {
  let under: LimitUnderTest;
  let key = "";
  let count = 0;
  before(async () => {
    under = await setUp();
  });
  beforeEach(() => {
    key = `account:${name}-${count++}`;
  });
  after(() => under.stop());

  const place = (seq: number, rank = 2) => ({ seq, rank });
  const take = (rates: readonly Rate[], seq: number, patienceMs = 0, limit = under.limit) =>
    limit.take([{ key, rates, n: 1 }], place(seq), patienceMs);
  const waitOf = (taken: Taken) => (taken.isGranted ? -1 : taken.waitMs);

  test(`${name}: a burst is granted, then nothing until the interval has passed`, async () => {
    const rates: Rate[] = [{ per: "hour", most: 60, burst: 3 }];
    const taken = [];
    for (let seq = 1; seq <= 4; seq++) taken.push(await take(rates, seq));
    assert.deepEqual(
      taken.map(({ isGranted }) => isGranted),
      [true, true, true, false],
    );
    const interval = intervalMs(rates[0] as Rate);
    const wait = waitOf(taken[3] as Taken);
    assert.ok(wait > interval / 2 && wait <= interval, `${wait} of ${interval} ms`);
  });

  test(`${name}: it reckons as src/domain/gcra.ts does`, async () => {
    const rates: Rate[] = [
      { per: "second", most: 120, burst: 40 },
      { per: "minute", most: 400 },
      { per: "day", most: 90, burst: 60 },
    ];
    const look = async () => {
      const [state] = await under.limit.look([key]);
      assert.ok(state);
      return state;
    };
    const tatOf = (rate: Rate, tats: number[]) => tats[PERIODS.indexOf(rate.per)] ?? 0;
    // So that there is something to look at, of a period that is not asked for below.
    await take([{ per: "hour", most: 1_000 }], 0);
    let { tats } = await look();
    let granted = 0;
    for (let seq = 1; seq <= 60; seq++) {
      const n = 1 + (seq % 3);
      const longest = (now: number, count: number) =>
        Math.max(...rates.map((rate) => waitMs(tatOf(rate, tats), now, rate, count)));
      const { now: from } = await look();
      const taken = await under.limit.take([{ key, rates, n }], place(seq), 0);
      const { now: to, tats: found } = await look();
      if (taken.isGranted) {
        granted++;
        const count = taken.isFull ? n : 1;
        assert.equal(longest(to, count), 0, "the arithmetic allows it too");
        for (const rate of rates) {
          const least = arrivalAfter(tatOf(rate, tats), from, rate, count);
          const most = arrivalAfter(tatOf(rate, tats), to, rate, count);
          const tat = tatOf(rate, found);
          assert.ok(tat >= least - 0.01 && tat <= most + 0.01, `${least} <= ${tat} <= ${most}`);
        }
      } else assert.ok(longest(from, 1) > 0 || taken.waitMs > 0);
      tats = found;
    }
    assert.ok(granted >= 8 && granted < 60, `${granted} granted`);
  });

  test(`${name}: those who are refused are given instants one after the other, none of them twice`, async () => {
    const rates: Rate[] = [{ per: "minute", most: 2 }];
    const interval = intervalMs(rates[0] as Rate);
    const startedAt = performance.now();
    const waits = [];
    for (let seq = 1; seq <= 20; seq++) {
      const wait = waitOf(await take(rates, seq, 0, seq % 2 ? under.limit : under.another));
      if (wait >= 0) waits.push(performance.now() - startedAt + wait);
    }
    assert.equal(waits.length, 19);
    for (let n = 1; n < waits.length; n++) {
      const distance = (waits[n] as number) - (waits[n - 1] as number);
      assert.ok(Math.abs(distance / interval - 1) < 0.3, `${distance} of ${interval} ms between two who wait`);
    }
  });

  test(`${name}: a newcomer does not overtake those who wait, and who waits is let through when it comes back`, async () => {
    const rates: Rate[] = [{ per: "minute", most: 30 }];
    assert.ok((await take(rates, 1)).isGranted);
    const first = waitOf(await take(rates, 2));
    const second = waitOf(await take(rates, 3));
    assert.ok(second > first);
    await sleep(first + 5);
    assert.equal((await take(rates, 9)).isGranted, false, "the newcomer lines up although there is room");
    assert.equal((await take(rates, 2)).isGranted, true, "the first of the line has its turn");
  });

  test(`${name}: what is urgent does not wait behind a line of what is not`, async () => {
    const rates: Rate[] = [{ per: "minute", most: 5 }];
    const interval = intervalMs(rates[0] as Rate);
    for (let seq = 1; seq <= 30; seq++) await take(rates, seq);
    const urgent = await under.limit.take([{ key, rates, n: 1 }], place(99, 0), 0);
    assert.ok(waitOf(urgent) <= 2 * interval, `${waitOf(urgent)} ms`);
    assert.ok(waitOf(await take(rates, 100)) > 20 * interval);
  });

  test(`${name}: a short wait is granted ahead to the patient, each its own moment`, async () => {
    const rates: Rate[] = [{ per: "second", most: 3 }];
    const startedAt = performance.now();
    const taken = [1, 2, 3].map(async (seq) => {
      const one = await take(rates, seq, 900);
      return one.isGranted ? performance.now() + one.afterMs : 0;
    });
    const moments = (await Promise.all(taken)).sort((a, b) => a - b);
    for (const [n, at] of moments.entries()) {
      const least = n * intervalMs(rates[0] as Rate);
      assert.ok(at - startedAt >= least - 5, `${at - startedAt} ms, not before ${least}`);
    }
  });

  test(`${name}: several limits hold together, and several keys are taken from all or not at all`, async () => {
    const wide: Rate[] = [
      { per: "second", most: 100, burst: 50 },
      { per: "day", most: 5, burst: 5 },
    ];
    const narrow: Rate[] = [{ per: "hour", most: 2, burst: 2 }];
    const both = (seq: number, other: string) =>
      under.limit.take(
        [
          { key, rates: wide, n: 1 },
          { key: `${key}-${other}`, rates: narrow, n: 1 },
        ],
        place(seq),
        0,
      );
    const granted = async (other: string, from: number) => {
      let n = 0;
      for (let seq = from; seq < from + 6; seq++) if ((await both(seq, other)).isGranted) n++;
      return n;
    };
    assert.equal(await granted("a", 1), 2, "the narrow key's limit");
    assert.equal(await granted("b", 10), 2, "a refusal took nothing from the wide key");
    assert.equal(await granted("c", 20), 1, "the wide key's day is used up");
  });

  test(`${name}: a block is granted as a whole, or one of it`, async () => {
    const rates: Rate[] = [{ per: "hour", most: 100, burst: 10 }];
    const full = await under.limit.take([{ key, rates, n: 8 }], place(1), 0);
    const part = await under.limit.take([{ key, rates, n: 8 }], place(2), 0);
    assert.ok(full.isGranted && full.isFull);
    assert.ok(part.isGranted && !part.isFull);
  });

  test(`${name}: after a delay nobody gets anything before its end`, async () => {
    const rates: Rate[] = [{ per: "second", most: 100, burst: 50 }];
    await under.limit.delay(key, 1_500);
    const wait = waitOf(await take(rates, 1, 0, under.another));
    assert.ok(wait > 0 && wait <= 1_500, `${wait} ms`);
    await sleep(wait + 5);
    assert.ok((await take(rates, 1)).isGranted);
  });

  test(`${name}: two processes together never get more than one would`, async () => {
    const rates: Rate[] = [{ per: "second", most: 40, burst: 5 }];
    const [rate] = rates as [Rate];
    const ENOUGH = 50;
    const grants: number[] = [];
    const startedAt = performance.now();
    const caller = async (limit: Limit, base: number) => {
      for (let seq = base; grants.length < ENOUGH; seq += 10) {
        const taken = await limit.take([{ key, rates, n: 1 }], place(seq), 50);
        if (taken.isGranted) {
          await sleep(taken.afterMs + 1);
          grants.push(performance.now());
        } else await sleep(Math.min(taken.waitMs, 20));
      }
    };
    await Promise.all([1, 2, 3, 4].map((n) => caller(n % 2 ? under.limit : under.another, n)));
    // A grant may be noted late, never early: counted from the start, however long it takes, there are never too many.
    for (const [n, at] of grants.entries()) {
      const most = burstOf(rate) + (at - startedAt) / intervalMs(rate);
      assert.ok(n + 1 <= most + 1, `${n + 1} of ${most}`);
    }
  });

  test(`${name}: a limit that is raised holds from the next take on, for those who waited too`, async () => {
    const low: Rate[] = [{ per: "day", most: 2 }];
    for (let seq = 1; seq <= 20; seq++) await take(low, seq);
    const high: Rate[] = [
      { per: "second", most: 100, burst: 50 },
      { per: "day", most: 1_000_000 },
    ];
    const taken = await take(high, 21);
    assert.ok(taken.isGranted || taken.waitMs < 2_000, JSON.stringify(taken));
  });
}
