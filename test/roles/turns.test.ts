// Who is next of those who wait in hand, and who may have a slot.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Share, Shares } from "#roles/share.ts";
import { type Sender, Slots } from "#roles/slots.ts";
import { Turns, type Verdict } from "#roles/turns.ts";

const [URGENT, HIGH, NORMAL, LOW] = [0, 1, 2, 3] as const;

type One = { name: string; rank: number; share: Share; order: number };

function setUp() {
  const turns = new Turns<One>();
  const shares = new Shares();
  let added = 0;
  const add = (tenant: number, rank: number, ...names: string[]) => {
    for (const name of names) turns.add({ name, rank, share: shares.of(tenant), order: added++ });
  };
  const next = (judge: (one: One) => Verdict = () => "go") => turns.next(judge)?.name;
  const order = (count: number) => Array.from({ length: count }, () => next()).join(" ");
  return { turns, shares, add, next, order };
}

test("higher lanes go first, whenever they came; within a lane it is first in, first out", () => {
  const { add, order } = setUp();
  add(1, LOW, "l1");
  add(1, NORMAL, "n1", "n2");
  add(1, HIGH, "h1");
  add(1, URGENT, "u1");
  assert.equal(order(2), "u1 h1");
  add(1, URGENT, "u2");
  assert.equal(order(5), "u2 n1 n2 l1 ");
});

test("within a lane tenants take turns, and one that comes is no longer behind another's many", () => {
  const { add, order } = setUp();
  add(1, NORMAL, "a1", "a2", "a3", "a4", "a5");
  assert.equal(order(2), "a1 a2");
  add(2, NORMAL, "b1", "b2");
  add(3, NORMAL, "c1");
  assert.equal(order(6), "a3 b1 c1 a4 b2 a5");
});

test("a tenant's turn is as long as its weight", () => {
  const { add, order, shares } = setUp();
  shares.of(1).weight = 3;
  add(1, NORMAL, "a1", "a2", "a3", "a4", "a5", "a6");
  add(2, NORMAL, "b1", "b2", "b3");
  assert.equal(order(9), "a1 a2 a3 b1 a4 a5 a6 b2 b3");
});

test("who may not begin stands aside and keeps its order; it comes back when something of it ends, or nobody else is left", () => {
  const { turns, add, next, shares } = setUp();
  add(1, NORMAL, "a1", "a2");
  add(2, NORMAL, "b1", "b2", "b3");
  const asked: string[] = [];
  const notA = (one: One): Verdict => {
    asked.push(one.name);
    return one.share.tenant === 1 ? "tenant" : "go";
  };
  assert.deepEqual([next(notA), next(notA)], ["b1", "b2"]);
  assert.deepEqual(asked, ["a1", "b1", "b2"], "it is not asked with every pick");
  turns.recall(shares.of(1));
  assert.deepEqual([next(), next(), next()], ["b3", "a1", "a2"]);
  add(1, NORMAL, "a3");
  assert.equal(next(notA), undefined);
  assert.equal(next(), "a3", "others may have made room");
});

test("those who come back from waiting for their way are first, in the order in which they came", () => {
  const { turns, add, order } = setUp();
  add(1, NORMAL, "a1", "a2", "a3", "a4");
  const out: One[] = [];
  turns.next(
    (one) => (one.name === "a4" ? "slot" : "way"),
    (one) => out.push(one),
  );
  const [a1, a2, a3] = out as [One, One, One];
  // Two places are free before there is a slot for the first.
  turns.putBack(a1);
  turns.putBack(a2);
  add(1, NORMAL, "a5");
  turns.putBack(a3);
  assert.equal(order(5), "a1 a2 a3 a4 a5");
});

test("a lane without a slot leaves none for those below it", () => {
  const { add, next } = setUp();
  add(1, NORMAL, "n1");
  add(2, LOW, "l1");
  assert.equal(
    next((one) => (one.rank === NORMAL ? "slot" : "go")),
    undefined,
  );
});

test("a thousand tenants of whom one may begin cost a pick each, not a look at all of them", () => {
  const { add, next } = setUp();
  for (let tenant = 1; tenant <= 1_000; tenant++) add(tenant, NORMAL, ...Array.from({ length: 20 }, (_, n) => `${n}`));
  let asked = 0;
  const onlyOne = (one: One): Verdict => {
    asked++;
    return one.share.tenant === 500 ? "go" : "tenant";
  };
  for (let n = 0; n < 20; n++) assert.equal(next(onlyOne), `${n}`);
  assert.ok(asked < 1_000 + 20 + 20 * 8, `${asked} were asked`);
});

/** Takes slots for tenants in turn until nobody gets another. */
function fill(slots: Slots, wanting: readonly Sender[]): number[] {
  let isGoing = true;
  while (isGoing) {
    isGoing = false;
    for (const one of wanting) {
      if (slots.judge(one) !== "go") continue;
      slots.take(one);
      isGoing = true;
    }
  }
  return wanting.map(({ share }) => share.held);
}

const one = (tenant: number, rank: number = NORMAL, weight = 1) => {
  const share = new Share(tenant);
  share.weight = weight;
  return { rank, share, passage: undefined };
};

test("one tenant alone has as many slots as the concurrency, and a third as many are left for others", () => {
  const slots = new Slots(60, 0.25);
  assert.deepEqual(fill(slots, [one(1)]), [60]);
  assert.deepEqual(fill(slots, [one(2)]), [15], "three quarters of what is left");
  assert.equal(slots.judge(one(3)), "go");
});

test("however many want all slots, they get equal parts by weight, and something is left", () => {
  const two = fill(new Slots(60, 0.25), [one(1), one(2)]);
  assert.deepEqual(two, [35, 34], "three sevenths");
  // Turns go by weight too.
  const [heavy, light] = [one(1, NORMAL, 4), one(2)];
  assert.deepEqual(fill(new Slots(300, 0.25), [heavy, heavy, heavy, heavy, light]).slice(3), [300, 75]);
  const slots = new Slots(60, 0.25);
  fill(
    slots,
    Array.from({ length: 20 }, (_, n) => one(n)),
  );
  assert.equal(slots.judge(one(21)), "go");
});

test("with all slots taken urgent and high ones still begin, also those of the tenants who took them, and no others", () => {
  const slots = new Slots(40, 0.25);
  const tenants = Array.from({ length: 200 }, (_, n) => one(n));
  fill(slots, tenants);
  assert.equal(slots.judge(one(300)), "slot");
  const [first] = tenants;
  assert.ok(first);
  const urgent = fill(slots, [{ ...first, rank: URGENT }]);
  assert.ok((urgent[0] ?? 0) >= 4, "it has its part of the reserve");
  assert.equal(slots.judge(one(301, HIGH)), "go", "nobody's urgent ones take the whole reserve");
  assert.equal(slots.judge(one(302, LOW)), "slot");
});
