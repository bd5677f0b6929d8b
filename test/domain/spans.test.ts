// A range of time put together from what tallies are kept in.

import assert from "node:assert/strict";
import { test } from "node:test";
import { spansOf } from "#domain/spans.ts";
import { GRAIN_MS, KEPT_DAYS } from "#domain/statistics.ts";
import { seeded } from "../support/load.ts";

const NOW = new Date("2027-03-10T12:34:56.789Z");
const DAY_MS = GRAIN_MS.day;
const spans = (since: string, until = NOW.toISOString()) =>
  spansOf({ since: new Date(since), until: new Date(until) }, NOW).spans.map(
    ({ grain, since: from, until: to }) =>
      `${grain} ${from.toISOString().slice(0, 16)} ${to.toISOString().slice(0, 16)}`,
  );

test("a month is days, with hours where it begins and hours and minutes where it ends", () => {
  assert.deepEqual(spans("2027-02-08T12:34:56.789Z"), [
    "hour 2027-02-08T12:00 2027-02-09T00:00",
    "day 2027-02-09T00:00 2027-03-10T00:00",
    "hour 2027-03-10T00:00 2027-03-10T12:00",
    "minute 2027-03-10T12:00 2027-03-10T12:35",
  ]);
  assert.deepEqual(spans("2027-03-10T12:10:01Z", "2027-03-10T12:20:00Z"), ["minute 2027-03-10T12:10 2027-03-10T12:20"]);
  assert.deepEqual(spans("2020-01-01T10:00:00Z", "2020-01-03T09:00:00Z"), ["day 2020-01-01T00:00 2020-01-04T00:00"]);
  assert.deepEqual(spans("2027-03-12T00:00:00Z", "9999-12-31T00:00:00Z"), [], "of what is to come there is nothing");
  assert.deepEqual(spans("2027-03-10T12:00:00Z", "2027-03-10T11:00:00Z"), []);
});

test("whatever the range, its spans follow one another, cover it, are still kept, and are few", () => {
  const random = seeded(7);
  const ago = () => NOW.getTime() - random() ** 4 * 900 * DAY_MS;
  for (let n = 0; n < 5_000; n += 1) {
    const [since = 0, until = 0] = [ago(), ago()].sort((a, b) => a - b);
    const counted = spansOf({ since: new Date(since), until: new Date(until) }, NOW);
    const title = `${new Date(since).toISOString()} to ${new Date(until).toISOString()}`;
    assert.ok(counted.since.getTime() <= since && counted.until.getTime() >= until, title);
    assert.ok(since - counted.since.getTime() < DAY_MS && counted.until.getTime() - until < DAY_MS, title);
    let at = counted.since.getTime();
    for (const span of counted.spans) {
      assert.equal(span.since.getTime(), at, title);
      assert.equal(at % GRAIN_MS[span.grain], 0, title);
      at = span.until.getTime();
      assert.equal(at % GRAIN_MS[span.grain], 0, title);
      const isKept = span.since.getTime() > NOW.getTime() - KEPT_DAYS[span.grain] * DAY_MS;
      assert.ok(span.grain === "day" || isKept, title);
    }
    assert.equal(at, counted.until.getTime(), title);
    assert.ok(counted.spans.length <= 5, title);
  }
});
