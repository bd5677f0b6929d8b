// How many slots a way has, and who waits for it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Passage } from "#guards/passage.ts";
import { Held } from "#roles/held.ts";
import { Share } from "#roles/share.ts";
import { type Sender, Slots } from "#roles/slots.ts";
import type { Ready } from "#roles/starts.ts";
import { Unproven } from "#roles/unproven.ts";
import { Ways } from "#roles/ways.ts";
import { claimedWith } from "../support/walk.ts";

const NORMAL = 2;
const lease = { handle: 1, meanBytes: 0, endsAt: 1e9, claimedAtMs: 0, claimedAt: 0, answeredAt: 0 };
const turn = (seq: number) => ({ seq, rank: NORMAL, lease, expiresAtMs: undefined });

function account(most = Number.POSITIVE_INFINITY): Passage {
  return new Passage(
    most,
    false,
    () => false,
    () => 0,
  );
}

function receiver(clock: { now: number }): Passage {
  return new Passage(
    18,
    true,
    () => false,
    () => clock.now,
  );
}

function begin(slots: Slots, one: Sender): boolean {
  if (slots.judge(one) !== "go") return false;
  slots.take(one);
  one.passage?.take();
  return true;
}

const sender = (share: Share, passage: Passage): Sender => ({ rank: NORMAL, share, passage });

test("a way alone has as many slots as the concurrency; then others of the same tenant still begin", () => {
  const slots = new Slots(60, 0.25);
  const share = new Share(1);
  const [texts, mail] = [account(), account()];
  while (begin(slots, sender(share, texts)));
  assert.equal(texts.held, 60);
  assert.equal(slots.judge(sender(share, texts)), "way");
  assert.ok(begin(slots, sender(share, mail)));
});

test("a way that holds its part waits while slots are short, and whoever holds less begins", () => {
  const slots = new Slots(60, 0.25);
  const [slow, quick] = [account(), account()];
  const tenants = Array.from({ length: 40 }, (_, n) => new Share(n));
  let isGoing = true;
  while (isGoing) isGoing = tenants.map((share) => begin(slots, sender(share, slow))).includes(true);
  assert.ok(slow.held >= 60 && slow.held <= 76, `${slow.held} of all tenants together`);
  for (let n = 0; n < 4; n++) assert.ok(begin(slots, sender(new Share(100 + n), quick)), `the ${n}th`);
  slots.free(sender(tenants[0] as Share, slow));
  slow.free();
  assert.equal(slots.judge(sender(new Share(200), slow)), "way");
  assert.equal(slots.judge(sender(new Share(200), quick)), "go");
});

test("who has nothing under way begins at once beside a tenant that has all it may through the same way", () => {
  const slots = new Slots(60, 0.25);
  const [hog, other] = [new Share(1), new Share(2)];
  const way = account();
  while (begin(slots, sender(hog, way)));
  let count = 0;
  while (begin(slots, sender(other, way))) count++;
  assert.ok(count >= 10, `${count}`);
});

test("a receiver gets one at a time until it answers, and again after a failure; an urgent one besides", () => {
  const clock = { now: 1_000 };
  const way = receiver(clock);
  way.take();
  assert.deepEqual([way.hasPlace(NORMAL), way.hasPlace(0)], [false, true]);
  way.prove();
  for (let n = 1; n < 16; n++) way.take();
  assert.deepEqual([way.hasPlace(NORMAL), way.hasPlace(0)], [false, true], "two are kept");
  for (let n = 0; n < 15; n++) way.free();
  way.doubt();
  assert.equal(way.hasPlace(NORMAL), false);
  way.prove();
  clock.now += 3_600_000;
  assert.equal(way.hasPlace(NORMAL), false, "it was long ago");
});

test("who waits for a receiver that hangs is sent away, one after the other, for as long as it has been silent", () => {
  const clock = { now: 1_000 };
  const way = receiver(clock);
  way.take();
  assert.equal(way.awayMs(turn(1), 5, 0), 0, "it may answer yet");
  clock.now += 5_000;
  const away = Array.from({ length: 400 }, (_, n) => way.awayMs(turn(n), 0, 0));
  assert.deepEqual([away[0], away[1], away[399]], [5_005, 5_010, 7_000]);
});

test("of many who wait for a receiver's first answer the last are sent away before it is taken for one that hangs", () => {
  const clock = { now: 1_000 };
  const way = receiver(clock);
  way.take();
  clock.now += 40;
  const kept = Array.from({ length: 400 }, (_, ahead) => way.awayMs(turn(ahead), ahead, 0)).filter((ms) => ms === 0);
  assert.ok(kept.length > 50 && kept.length < 100, `${kept.length} may wait`);
  way.free();
  way.prove();
  way.take();
  assert.equal(way.awayMs(turn(1), 399, 0), 0, "it answers, and many have places");
});

test("an account that answers slowly keeps few waiting; the others come back at its pace", () => {
  const clock = { now: 0 };
  const way = new Passage(
    2,
    false,
    () => false,
    () => clock.now,
  );
  way.take();
  way.take();
  for (let n = 0; n < 100; n++) {
    clock.now += 500;
    way.free();
    way.take();
  }
  assert.equal(way.awayMs(turn(1), 3, 0), 0);
  assert.equal(Math.round(way.awayMs(turn(2), 5, 0) / 100), 30);
  assert.equal(Math.round(way.awayMs(turn(3), 5, 0) / 100), 35);
});

test("new receivers have a quarter of the slots; those that hang leave their places to others, and no tenant has all", () => {
  const clock = { now: 0 };
  const unproven = new Unproven(80, () => clock.now);
  const [one, other] = [new Share(1), new Share(2)];
  const begun: Sender[] = [];
  const fill = (share: Share) => {
    let count = 0;
    for (; unproven.hasPlace(share); count++) {
      const next = sender(share, receiver(clock));
      unproven.take(next);
      begun.push(next);
    }
    return count;
  };
  assert.equal(fill(one), 15);
  assert.ok(fill(other) >= 3);
  clock.now += 1_000;
  assert.ok(fill(one) >= 12, "after a while the first are taken for hanging");
  clock.now += 1_000;
  fill(one);
  assert.ok(begun.length <= 40, "and of these there are no more than another quarter");
  for (const each of begun) assert.ok(unproven.leave(each));
  assert.deepEqual([unproven.free, one.unproven, other.unproven], [20, 0, 0]);
});

/** Those who wait for a way, and who of them were sent away or called back. */
function waitingFor(way: Passage, share: Share, slots: Slots, clock: { now: number }) {
  const state = { away: [] as number[], back: 0, isWanted: false };
  const ways = new Ways({
    slots,
    monotonic: () => clock.now,
    comeBack: () => state.back++,
    sendAway: (_, waitMs) => state.away.push(waitMs),
    isWanted: () => state.isWanted,
  });
  for (let seq = 1; seq <= 40; seq++) {
    const one = new Held(claimedWith({ seq, lease }), share, 1_000, () => undefined);
    one.passage = way;
    ways.park(one as Ready);
  }
  return { ways, state };
}

test("who waits for a slot is sent away after a moment where somebody else waits for one too, and not before long where nobody does", () => {
  const clock = { now: 1_000 };
  const way = receiver(clock);
  way.prove();
  const slots = new Slots(3, 0.25);
  const share = new Share(1);
  while (begin(slots, sender(share, way)));
  assert.ok(way.hasPlace(NORMAL));
  const { ways, state } = waitingFor(way, share, slots, clock);
  clock.now += 3_000;
  ways.see();
  assert.deepEqual([state.away, state.back], [[], 1], "one is called, to look whether there is a slot");
  state.isWanted = true;
  ways.see();
  assert.deepEqual([state.away.length, state.away[0], state.away[38]], [39, 1_005, 1_195]);
});

test("who waits for a slot that nobody else waits for is sent away in the end, as something may wait behind it unseen", () => {
  const clock = { now: 1_000 };
  const way = receiver(clock);
  way.prove();
  const slots = new Slots(3, 0.25);
  const share = new Share(1);
  while (begin(slots, sender(share, way)));
  const { ways, state } = waitingFor(way, share, slots, clock);
  clock.now += 5_000;
  ways.see();
  assert.equal(state.away.length, 40);
});

test("a place that is free for a moment sends nobody away who waits for the next", () => {
  const clock = { now: 1_000 };
  const way = receiver(clock);
  way.prove();
  while (way.hasPlace(NORMAL)) way.take();
  const { ways, state } = waitingFor(way, new Share(1), new Slots(100, 0.25), clock);
  state.isWanted = true;
  clock.now += 600;
  way.free();
  ways.see();
  assert.deepEqual([state.away, state.back], [[], 1]);
});
