// The breaker: when it opens, how it finds its way back, and what never trips it.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type BreakerView, createBreaker, DEFAULT_BREAKER } from "#guards/breaker.ts";

function setUp(more: Partial<typeof DEFAULT_BREAKER> = {}) {
  let now = 5_000;
  const seen: BreakerView[] = [];
  const settings = { ...DEFAULT_BREAKER, ...more };
  const breaker = createBreaker({ now: () => now, settings, onChange: (view) => seen.push(view) });
  return {
    breaker,
    seen,
    pass: (ms: number) => {
      now += ms;
    },
    fail: (n = 1) => {
      for (let i = 0; i < n; i++) breaker.fail(breaker.admit());
    },
    succeed: (n = 1) => {
      for (let i = 0; i < n; i++) breaker.succeed(breaker.admit());
    },
    state: () => breaker.view().state,
  };
}

test("it opens after so many failures in a row, and a success in between starts the count anew", () => {
  const { fail, succeed, state, breaker } = setUp({ failuresInRow: 5, minVolume: 1_000 });
  fail(4);
  succeed();
  fail(4);
  assert.equal(state(), "closed");
  fail();
  assert.equal(state(), "open");
  assert.equal(breaker.admit(), -1);
});

test("it opens when too large a share of the window failed, but not on a small sample", () => {
  const { fail, succeed, state } = setUp({ minVolume: 20, failureShare: 0.5, failuresInRow: 1_000 });
  for (let n = 0; n < 9; n++) {
    succeed();
    fail();
  }
  assert.equal(state(), "closed", "18 answers are too few");
  succeed();
  fail();
  assert.equal(state(), "open");
});

test("what failed longer ago than the window is forgotten", () => {
  const { fail, succeed, state, pass } = setUp({ minVolume: 20, failuresInRow: 1_000, windowMs: 10_000 });
  fail(15);
  pass(11_000);
  succeed(4);
  fail(1);
  assert.equal(state(), "closed");
});

test("open times double up to a cap, and are short again after a recovery", () => {
  const { fail, pass, succeed, seen, breaker, state } = setUp({ failuresInRow: 1 });
  fail();
  const times = [];
  for (let n = 0; n < 8; n++) {
    const { openMs } = seen.at(-1) as BreakerView;
    times.push(openMs);
    pass(openMs - 1);
    assert.equal(breaker.admit(), -1, "not before its time");
    pass(1);
    fail();
  }
  assert.deepEqual(times, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  pass(60_000);
  succeed(5);
  assert.equal(state(), "closed");
  fail();
  assert.equal(seen.at(-1)?.openMs, 1_000);
});

test("half-open, one probe passes first, then more with each success, up to the cap; enough successes close it", () => {
  const { fail, pass, breaker, state } = setUp({ failuresInRow: 1, maxProbes: 4, successesToClose: 8 });
  fail();
  pass(1_000);
  const allowed: number[] = [];
  for (let round = 0; round < 7; round++) {
    const tickets = [];
    for (let ticket = breaker.admit(); ticket >= 0; ticket = breaker.admit()) tickets.push(ticket);
    allowed.push(tickets.length);
    breaker.succeed(tickets.pop() as number);
    for (const ticket of tickets) breaker.release(ticket);
  }
  assert.deepEqual(allowed, [1, 1, 2, 3, 4, 4, 4]);
  assert.equal(state(), "half-open");
  breaker.succeed(breaker.admit());
  assert.equal(state(), "closed");
});

test("answers that belong to the time before count no more", () => {
  const { pass, breaker, state } = setUp({ failuresInRow: 3 });
  const tickets = Array.from({ length: 200 }, () => breaker.admit());
  for (const ticket of tickets.slice(0, 3)) breaker.fail(ticket);
  assert.equal(state(), "open");
  pass(1_000);
  const probe = breaker.admit();
  assert.ok(probe >= 0);
  for (const ticket of tickets.slice(3)) breaker.fail(ticket);
  assert.equal(state(), "half-open", "a storm of late timeouts does not open it again");
  breaker.succeed(probe);
  for (let n = 0; n < 4; n++) breaker.succeed(breaker.admit());
  assert.equal(state(), "closed");
});

test("a hint opens a closed one and closes an open one, and is told to nobody", () => {
  const { breaker, state, seen, pass } = setUp();
  breaker.adopt({ state: "open", openMs: 3_000, openings: 2 });
  assert.equal(state(), "open");
  pass(2_999);
  assert.equal(breaker.admit(), -1);
  breaker.adopt({ state: "closed", openMs: 0, openings: 0 });
  assert.equal(state(), "closed");
  breaker.adopt({ state: "open", openMs: 0, openings: 1 });
  breaker.adopt({ state: "half-open", openMs: 0, openings: 1 });
  assert.equal(state(), "closed");
  assert.deepEqual(seen, []);
});

test("in any storm: open means nobody passes, half-open at most the allowed probes, and no ticket is lost", () => {
  const event = fc.oneof(
    fc.constant("admit" as const),
    fc.constant("fail" as const),
    fc.constant("succeed" as const),
    fc.constant("release" as const),
    fc.integer({ min: 1, max: 5_000 }),
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 300 }), (events) => {
      const { breaker, pass, state } = setUp({ failuresInRow: 3, minVolume: 5 });
      let tickets: number[] = [];
      let era = "closed";
      for (const one of events) {
        if (typeof one === "number") pass(one);
        else if (one === "admit") {
          const isShut = state() === "open" && breaker.waitMs() > 0;
          const ticket = breaker.admit();
          if (isShut) assert.equal(ticket, -1);
          if (state() !== era) tickets = [];
          era = state();
          if (ticket >= 0) tickets.push(ticket);
          if (state() === "half-open") assert.ok(tickets.length <= DEFAULT_BREAKER.maxProbes);
        } else {
          const ticket = tickets.pop();
          if (ticket !== undefined) breaker[one](ticket);
        }
        if (state() !== era) tickets = [];
        era = state();
      }
      // Whatever happened, it comes back once the provider does.
      for (const ticket of tickets) breaker.release(ticket);
      pass(60_000);
      for (let n = 0; n < 5; n++) breaker.succeed(breaker.admit());
      assert.equal(state(), "closed");
    }),
  );
});

test("how long it has been silent counts from when it was last closed, through failed probes, and ends with the outage", () => {
  const { breaker, fail, succeed, pass } = setUp({ failuresInRow: 2, successesToClose: 2 });
  pass(1_000);
  assert.equal(breaker.silentMs(), 0);
  fail(2);
  for (let n = 0; n < 10; n++) {
    pass(DEFAULT_BREAKER.maxOpenMs);
    fail();
  }
  pass(DEFAULT_BREAKER.maxOpenMs);
  assert.equal(breaker.silentMs(), 11 * DEFAULT_BREAKER.maxOpenMs);
  succeed(2);
  assert.equal(breaker.silentMs(), 0);
  fail(2);
  pass(500);
  assert.equal(breaker.silentMs(), 500);
});
