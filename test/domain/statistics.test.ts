// Ranges of statistics, and quantiles of histograms.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BOUNDS_MS, PLACES, quantile } from "#domain/histogram.ts";
import { type Asked, rangeOf } from "#domain/statistics.ts";

const NOW = new Date("2027-03-10T12:34:56.789Z");
const asked = (query: Asked) => {
  const range = rangeOf(query, NOW);
  return Array.isArray(range)
    ? range.map(({ path }) => path)
    : [range.grain, range.since.toISOString(), range.until.toISOString()];
};

test("a range goes outwards to where its steps begin, and steps are put together from the coarsest that fits", () => {
  assert.deepEqual(asked({}), ["minute", "2027-03-10T11:34:00.000Z", "2027-03-10T12:35:00.000Z"]);
  assert.deepEqual(asked({ step: "PT5M" }), ["minute", "2027-03-10T07:30:00.000Z", "2027-03-10T12:35:00.000Z"]);
  const week = { since: "2027-03-03T12:34:00Z" };
  assert.deepEqual(asked({ ...week, step: "PT6H" }), ["hour", "2027-03-03T12:00:00.000Z", "2027-03-10T18:00:00.000Z"]);
  assert.deepEqual(asked({ ...week, step: "P1D" }), ["day", "2027-03-03T00:00:00.000Z", "2027-03-11T00:00:00.000Z"]);
  assert.deepEqual(asked(week), ["hour", "2027-03-03T12:00:00.000Z", "2027-03-10T13:00:00.000Z"]);
  assert.deepEqual(asked({ since: "2026-01-01T00:00:00Z" })[0], "day");
});

test("what cannot be answered is named", () => {
  assert.deepEqual(asked({ since: NOW.toISOString(), until: NOW.toISOString() }), ["/until"]);
  assert.deepEqual(asked({ since: "2027-03-01T00:00:00Z", step: "PT1M" }), ["/since", "/step"]);
  assert.deepEqual(asked({ since: "2027-03-10T00:00:00Z", step: "PT1M" }), ["/step"]);
  assert.deepEqual(asked({ since: "2026-12-01T00:00:00Z", step: "PT6H" }), ["/since"]);
  assert.deepEqual(asked({ since: "1970-01-01T00:00:00Z" }), ["/since"]);
  assert.deepEqual(asked({ until: "9999-12-31T00:00:00Z", since: "2027-03-10T12:00:00Z", step: "P1D" }), ["/step"]);
});

test("a quantile is found to within its place", () => {
  const counts = Array<number>(PLACES).fill(0);
  assert.equal(quantile(counts, 0.5), undefined);
  for (let ms = 0.5; ms < 1_000; ms += 1) {
    const place = BOUNDS_MS.findIndex((bound) => ms < bound);
    counts[place] = (counts[place] ?? 0) + 1;
  }
  for (const part of [0.01, 0.5, 0.9, 0.99, 1]) {
    const found = quantile(counts, part) ?? 0;
    assert.ok(Math.abs(found - part * 1_000) <= 10, `${part}: ${found}`);
  }
  counts.fill(0);
  counts[PLACES - 1] = 3;
  assert.equal(quantile(counts, 0.5), 100_000, "beyond the last bound it is that");
});
