// When recurring schedules fire.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { faultOfCron, faultOfEvery, judgeTick, nextTick, nextTicks, type Schedule } from "#domain/schedule.ts";
import { isTimeZone } from "#domain/time-zone.ts";

const cron = (expression: string, timezone = "UTC", more: Partial<Schedule> = {}): Schedule => ({
  cron: expression,
  every: null,
  timezone,
  from: new Date("2026-01-01T00:00:00Z"),
  until: null,
  ...more,
});
const every = (duration: string, from: string, timezone = "UTC", until: string | null = null): Schedule => ({
  cron: null,
  every: duration,
  timezone,
  from: new Date(from),
  until: until === null ? null : new Date(until),
});
const ticks = (schedule: Schedule, after: string, count: number) =>
  nextTicks(schedule, new Date(after), count).map((tick) => tick.toISOString().slice(0, 16));

test("a daily schedule keeps its time on the wall when the clocks go forward and back", () => {
  const daily = cron("0 9 * * *", "Europe/Paris");
  assert.deepEqual(ticks(daily, "2027-03-26T12:00:00Z", 3), [
    "2027-03-27T08:00",
    "2027-03-28T07:00",
    "2027-03-29T07:00",
  ]);
  assert.deepEqual(ticks(daily, "2027-10-29T12:00:00Z", 3), [
    "2027-10-30T07:00",
    "2027-10-31T08:00",
    "2027-11-01T08:00",
  ]);
});

test("in the hour that is skipped a schedule fires once, in the hour that comes twice once too", () => {
  const half = cron("30 2 * * *", "Europe/Paris");
  const spring = ticks(half, "2027-03-27T12:00:00Z", 2);
  assert.deepEqual(
    spring.map((tick) => tick.slice(0, 10)),
    ["2027-03-28", "2027-03-29"],
  );
  const autumn = ticks(half, "2027-10-30T12:00:00Z", 2);
  assert.deepEqual(
    autumn.map((tick) => tick.slice(0, 10)),
    ["2027-10-31", "2027-11-01"],
  );
});

test("leap days and month ends come when they come", () => {
  assert.deepEqual(ticks(cron("0 0 29 2 *"), "2026-01-01T00:00:00Z", 2), ["2028-02-29T00:00", "2032-02-29T00:00"]);
  assert.deepEqual(ticks(cron("0 12 L * *"), "2027-01-15T00:00:00Z", 3), [
    "2027-01-31T12:00",
    "2027-02-28T12:00",
    "2027-03-31T12:00",
  ]);
  assert.deepEqual(ticks(every("P1M", "2027-01-31T12:00:00Z"), "2027-01-31T12:00:00Z", 3), [
    "2027-02-28T12:00",
    "2027-03-31T12:00",
    "2027-04-30T12:00",
  ]);
});

test("every counts from the first instant, by the calendar of the zone", () => {
  assert.deepEqual(ticks(every("P1D", "2027-03-26T08:00:00Z", "Europe/Paris"), "2027-03-26T08:00:00Z", 3), [
    "2027-03-27T08:00",
    "2027-03-28T07:00",
    "2027-03-29T07:00",
  ]);
  assert.deepEqual(ticks(every("PT15M", "2027-01-01T00:05:00Z"), "2026-12-01T00:00:00Z", 2), [
    "2027-01-01T00:05",
    "2027-01-01T00:20",
  ]);
  assert.deepEqual(
    ticks(every("PT1H", "2027-01-01T00:00:00Z", "UTC", "2027-01-01T02:00:00Z"), "2027-01-01T00:00:00Z", 9),
    ["2027-01-01T01:00", "2027-01-01T02:00"],
  );
});

test("the next tick is always later, and none lies between", () => {
  const durations = ["PT1S", "PT7M", "PT36H", "P1D", "P10D", "P1M", "P1Y", "P1M1DT1H"];
  const instants = { min: new Date("2024-01-01"), max: new Date("2034-01-01"), noInvalidDate: true };
  fc.assert(
    fc.property(
      fc.constantFrom(...durations),
      fc.constantFrom("UTC", "Europe/Paris", "America/St_Johns"),
      fc.date(instants),
      fc.integer({ min: 0, max: 3 * 365 * 86_400 }),
      (duration, zone, from, seconds) => {
        const schedule = every(duration, from.toISOString(), zone);
        const after = new Date(from.getTime() + seconds * 1000);
        const tick = nextTick(schedule, after);
        assert.ok(tick && tick > after);
        // Walking there tick by tick from a little before arrives at the same one.
        const before = nextTick(schedule, new Date(after.getTime() - 40 * 86_400_000)) as Date;
        let walked = before;
        for (let n = 0; walked <= after && n < 5_000; n++) walked = nextTick(schedule, walked) as Date;
        if (walked > after) assert.equal(walked.toISOString(), tick.toISOString());
      },
    ),
    { numRuns: 60 },
  );
});

test("whatever the spelling of a time zone, what is kept for it is kept once", () => {
  const { DateTimeFormat } = Intl;
  const spell = (n: number) =>
    [..."america/argentina/ushuaia"].map((c, at) => ((n >> (at % 16)) & 1 ? c.toUpperCase() : c)).join("");
  let made = 0;
  Intl.DateTimeFormat = class extends DateTimeFormat {
    constructor(...given: ConstructorParameters<typeof DateTimeFormat>) {
      super(...given);
      made += 1;
    }
  } as typeof DateTimeFormat;
  try {
    const ticks = Array.from({ length: 300 }, (_, n) => {
      const timezone = spell(n);
      assert.ok(isTimeZone(timezone), timezone);
      const daily: Schedule = { ...cron("0 9 * * *", timezone), cron: null, every: "P1D" };
      return [
        nextTick(cron("0 9 * * *", timezone), new Date("2027-01-01T00:00:00Z")),
        nextTick(daily, daily.from),
      ].join();
    });
    assert.equal(new Set(ticks).size, 1);
  } finally {
    Intl.DateTimeFormat = DateTimeFormat;
  }
  assert.ok(made < 10, `${made} formats for one zone`);
});

test("what cannot come true is refused", () => {
  assert.match(faultOfCron("0 0 30 2 *", "UTC", new Date()) ?? "", /some day/);
  assert.match(faultOfCron("nonsense", "UTC", new Date()) ?? "", /cron expression/);
  assert.match(faultOfCron("61 * * * *", "UTC", new Date()) ?? "", /cron expression/);
  assert.equal(faultOfCron("*/5 * * * *", "Europe/Paris", new Date()), undefined);
  assert.match(faultOfEvery("PT0S") ?? "", /duration/);
  assert.equal(faultOfEvery("PT1S"), undefined);
});

test("ticks that nobody was there for fire once, for the last of them, or not at all", () => {
  const hourly = cron("0 * * * *");
  const tick = new Date("2027-01-01T01:00:00Z");
  const now = new Date("2027-01-01T05:30:00Z");
  const next = new Date("2027-01-01T06:00:00Z");
  assert.deepEqual(judgeTick(hourly, "once", tick, now), { fires: new Date("2027-01-01T05:00:00Z"), skipped: 4, next });
  assert.deepEqual(judgeTick(hourly, "skip", tick, now), { fires: undefined, skipped: 5, next });
  const soon = new Date("2027-01-01T01:00:30Z");
  const two = new Date("2027-01-01T02:00:00Z");
  assert.deepEqual(judgeTick(hourly, "skip", tick, soon), { fires: tick, skipped: 0, next: two });
});

test("years of missed seconds are judged at once", () => {
  const { fires, next } = judgeTick(
    every("PT1S", "2020-01-01T00:00:00Z"),
    "once",
    new Date("2020-01-01T00:00:01Z"),
    new Date("2027-01-01T00:00:00.500Z"),
  );
  assert.ok(fires);
  assert.equal(next?.toISOString(), "2027-01-01T00:00:01.000Z");
});
