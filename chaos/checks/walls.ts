// Urgent overtakes, tenants take turns, and what one receiver does is about that receiver.
//
// Of a claim the journal tells whom it passed over, but not whom it was told to leave out; of a hand it does not tell when a claim's answer
// had arrived and was looked at. So neither a single claim nor a single send is judged, but what holds for most of them. Of claims no more than
// a quarter may pass somebody over: of the product's own 0 to 9 in 100 seem to, of those that know no turns about half. Of all that were
// claimed while much else waited in the same hand, for the same way, at least half must have been begun before two thirds of that were: in
// half the cases it is less than a quarter, or on a machine with no time at all a half. Where few were, nine tenths. A hand
// that begins what it has in the order of its claims is always at the end.

import { eachClaim, type Stay } from "../claims.ts";
import { handsOf, type InHand, waitingAt } from "../hands.ts";
import { type Check, groupBy, type History, type Report } from "../history.ts";
import { isWell, wayOf } from "../ways.ts";
import { IN_LANE_MS } from "./order.ts";

/** With fewer in hand, those begun while a claim's answer was on its way would often be half of them. */
const LEAST_WAITING = 5;
const LEAST_SAMPLES = 3;
const MOST_PASSED = 2 / 3;
/** The median of a few is soon somewhere else on a machine with no time: then it must be at the end. */
const FEW = 20;
const MOST_PASSED_BY_FEW = 0.9;
/** Of claims, how many may seem to pass a tenant's turn over. */
const PASSED_OVER = 1 / 4;

type Passed = { one: InHand; part: number };

/** For each that met enough `others` in its worker's hand when it was claimed: which part of those was begun before it. */
export function partsPassedBy(
  history: History,
  isOther: (one: InHand, waiting: InHand, all: readonly InHand[]) => boolean,
): Passed[] {
  return [...handsOf(history).values()].flatMap((hand) =>
    hand.flatMap((one) => {
      const { begunAt, takenAt, way, lease } = one;
      if (begunAt === undefined) return [];
      const waiting = waitingAt(hand, takenAt).filter((other) => other.lease.token < lease.token);
      const others = waiting.filter((other) => other.way === way && isOther(one, other, waiting));
      if (others.length < LEAST_WAITING) return [];
      const passed = others.filter((other) => other.begunAt !== undefined && other.begunAt < begunAt);
      return [{ one, part: passed.length / others.length }];
    }),
  );
}

/** Each claim counts once: the answer to one may be late, and then all that it took is. */
function judge(rule: string, passedBy: Passed[], report: Report): void {
  const claims = [...groupBy(passedBy, ({ one }) => one.lease.token).values()].map(medianOf);
  if (claims.length < LEAST_SAMPLES) return;
  const { one, part } = medianOf(claims);
  if (part <= (claims.length < FEW ? MOST_PASSED_BY_FEW : MOST_PASSED)) return;
  report(rule, `the median of ${claims.length}: ${one.lease.id} after ${Math.round(part * 100)} % of what waited`);
}

const medianOf = (passed: Passed[]): Passed =>
  passed.sort((a, b) => a.part - b.part)[Math.floor(passed.length / 2)] as Passed;

export const urgentOvertakes: Check = {
  guarantee: "G18",
  promise: "of what a worker has in hand it begins the higher lanes first",
  run(history, report) {
    const passed = partsPassedBy(history, (one, other) => other.rank > one.rank);
    judge("lower ones were begun first out of the hand", passed, report);
  },
};

/** One turn more or less: a claim ends somewhere in the round. */
const TURNS = 1;

export const turnsAreTaken: Check = {
  guarantee: "G19",
  promise:
    "a claim that leaves a tenant's behind takes no more than its turns of another's; a hand begins them in turns",
  run(history, report) {
    const weights = new Map(history.tenants.map(({ id, weight }) => [id, weight]));
    const hands = handsOf(history);
    const turnsOf = (stays: Stay[], tenant: number) => stays.length / (weights.get(tenant) ?? 1);
    const judged: string[] = [];
    const wronged: string[] = [];
    eachClaim(history, IN_LANE_MS, ({ beganAt, worker }, taken, left) => {
      const waiting = new Set(waitingAt(hands.get(worker) ?? [], beganAt).map(({ tenant }) => tenant));
      for (const [lane, inLane] of groupBy(taken, ({ change }) => change.priority)) {
        const takenOf = groupBy(inLane, ({ change }) => change.tenant);
        const most = Math.max(...[...takenOf].map(([tenant, stays]) => turnsOf(stays, tenant)));
        const behind = left.filter(({ change }) => change.priority === lane && !waiting.has(change.tenant));
        if (most <= TURNS || behind.length === 0) continue;
        judged.push(behind[0]?.change.id ?? "");
        const least = behind.find(
          ({ change: { tenant } }) => turnsOf(takenOf.get(tenant) ?? [], tenant) + TURNS < most,
        );
        if (least) wronged.push(`${least.change.id}: others had ${most} turns`);
      }
    });
    if (wronged.length > Math.max(LEAST_SAMPLES, judged.length * PASSED_OVER))
      report("tenants' turns were passed over", `${wronged.length} of ${judged.length} times, ${wronged[0]}`);
    const passed = partsPassedBy(
      history,
      (one, other, all) =>
        other.rank === one.rank &&
        other.tenant !== one.tenant &&
        !all.some(({ tenant, rank }) => tenant === one.tenant && rank <= one.rank),
    );
    judge("others' were begun first out of the hand", passed, report);
  },
};

/** What guards say of a gate that is shut because of what came back through it. */
const SHUT = /does not answer|asked for a pause/;

export const failsAlone: Check = {
  guarantee: "G20",
  promise: "nothing waits for a breaker or a pause whose own way has never failed",
  run({ notifications, events }, report) {
    const ways = new Map(notifications.map(({ id, tenant, request }) => [id, wayOf(tenant, request)]));
    for (const { id, type, reason } of events) {
      const way = ways.get(id) ?? "";
      if (type !== "postponed" || !isWell(way) || !SHUT.test(reason ?? "")) continue;
      report("held back for what another did", `${id} by way of ${way}: ${reason}`);
    }
  },
};
