// ISO durations and the calendar of a zone.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatDuration, offsetMs, parseDuration, shift } from "#domain/duration.ts";

const HOUR = 3_600_000;
const moved = (at: string, duration: string, times: number, zone: string): string => {
  const parsed = parseDuration(duration);
  assert.ok(parsed, duration);
  return shift(new Date(at), parsed, times, zone).toISOString();
};

test("durations are read, and written in one way only", () => {
  const cases: [string, string][] = [
    ["P1D", "P1D"],
    ["PT60M", "PT1H"],
    ["PT90M", "PT1H30M"],
    ["P2W", "P14D"],
    ["P14M", "P1Y2M"],
    ["PT0S", "PT0S"],
    ["P1DT12H", "P1DT12H"],
    ["PT25H", "PT25H"],
  ];
  for (const [written, canonical] of cases) {
    const parsed = parseDuration(written);
    assert.ok(parsed, written);
    assert.equal(formatDuration(parsed), canonical);
  }
  for (const wrong of ["", "P", "PT", "P1DT", "1D", "P-1D", "P1.5D", "PT1H1D", "p1d", "P1D "]) {
    assert.equal(parseDuration(wrong), undefined, wrong);
  }
});

test("a day before eight o'clock is eight o'clock, across a change of the clocks too", () => {
  // Europe/Paris: forward on 28 March 2027 at 02:00, back on 31 October 2027 at 03:00.
  assert.equal(moved("2027-03-28T18:00:00Z", "P1D", -1, "Europe/Paris"), "2027-03-27T19:00:00.000Z");
  assert.equal(moved("2027-10-31T19:00:00Z", "P1D", -1, "Europe/Paris"), "2027-10-30T18:00:00.000Z");
  assert.equal(moved("2027-03-28T18:00:00Z", "PT24H", -1, "Europe/Paris"), "2027-03-27T18:00:00.000Z");
  assert.equal(moved("2027-03-28T18:00:00Z", "P1D", -1, "UTC"), "2027-03-27T18:00:00.000Z");
});

test("an hour that does not exist is read by the clocks before it, one that exists twice is its first", () => {
  assert.equal(moved("2027-03-27T01:30:00Z", "P1D", 1, "Europe/Paris"), "2027-03-28T01:30:00.000Z");
  assert.equal(moved("2027-10-30T00:30:00Z", "P1D", 1, "Europe/Paris"), "2027-10-31T00:30:00.000Z");
});

test("months end where they end", () => {
  assert.equal(moved("2027-03-31T12:00:00Z", "P1M", -1, "UTC"), "2027-02-28T12:00:00.000Z");
  assert.equal(moved("2028-03-31T12:00:00Z", "P1M", -1, "UTC"), "2028-02-29T12:00:00.000Z");
  assert.equal(moved("2028-02-29T12:00:00Z", "P1Y", 1, "UTC"), "2029-02-28T12:00:00.000Z");
  assert.equal(moved("2028-02-29T12:00:00Z", "P1Y", 4, "UTC"), "2032-02-29T12:00:00.000Z");
  assert.equal(moved("2027-01-31T12:00:00Z", "P1M", 1, "UTC"), "2027-02-28T12:00:00.000Z");
  assert.equal(moved("2027-01-31T12:00:00Z", "P1M", 2, "UTC"), "2027-03-31T12:00:00.000Z");
  assert.equal(moved("2026-12-31T23:00:00Z", "P1D", 1, "Pacific/Auckland"), "2027-01-01T23:00:00.000Z");
});

test("steps of the calendar keep the time on the wall, exact time keeps the distance", () => {
  const zones = ["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns"];
  fc.assert(
    fc.property(
      fc.date({ min: new Date("2020-01-01"), max: new Date("2035-01-01"), noInvalidDate: true }),
      fc.integer({ min: 1, max: 500 }),
      fc.constantFrom(...zones),
      (at, n, zone) => {
        const exact = shift(at, { months: 0, days: 0, ms: n * HOUR }, -1, zone);
        assert.equal(at.getTime() - exact.getTime(), n * HOUR);
        const there = shift(at, { months: 0, days: n, ms: 0 }, 1, zone);
        const wall = (x: Date) =>
          (((x.getTime() + offsetMs(x.getTime(), zone)) % 86_400_000) + 86_400_000) % 86_400_000;
        // Only the hour that the clocks skip cannot be kept.
        const kept = Math.abs(wall(there) - wall(at));
        assert.ok(kept === 0 || kept <= HOUR, `${at.toISOString()} + ${n} days in ${zone} is ${there.toISOString()}`);
        const days = (there.getTime() - at.getTime()) / 86_400_000;
        assert.ok(Math.abs(days - n) <= 2 / 24, `${days} days instead of ${n}`);
      },
    ),
  );
});
