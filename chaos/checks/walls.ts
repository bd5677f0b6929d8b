// Urgent overtakes, tenants take turns, and what one receiver does is about that receiver.
//
// The journal does not tell when a claim's answer had arrived and was looked at, so no single send is judged: of all that were claimed while much else waited in the same hand, for the same way, at least half
// must have been begun before half of that was. A hand that begins what it has in the order of its claims is always at the end.

import { handsOf, type InHand, waitingAt } from "../hands.ts";
import type { Check, History, Report } from "../history.ts";
import { isWell, wayOf } from "../ways.ts";

/** With fewer in hand, those begun in one turn of the event loop would be half of them. */
const LEAST_WAITING = 8;
const LEAST_SAMPLES = 3;

/** For each that met enough `others` in its worker's hand when it was claimed: which part of those was begun before it. */
export function partsPassedBy(
  history: History,
  isOther: (one: InHand, waiting: InHand, all: readonly InHand[]) => boolean,
): { one: InHand; part: number }[] {
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

function judge(rule: string, passedBy: { one: InHand; part: number }[], report: Report): void {
  if (passedBy.length < LEAST_SAMPLES) return;
  const sorted = passedBy.sort((a, b) => a.part - b.part);
  const { one, part } = sorted[Math.floor(sorted.length / 2)] as (typeof sorted)[0];
  if (part <= 0.5) return;
  report(rule, `the median of ${sorted.length}: ${one.lease.id} after ${Math.round(part * 100)} % of what waited`);
}

export const urgentOvertakes: Check = {
  guarantee: "G18",
  promise: "of what a worker has in hand it begins the higher lanes first",
  run(history, report) {
    const passed = partsPassedBy(history, (one, other) => other.rank > one.rank);
    judge("lower ones were begun first out of the hand", passed, report);
  },
};

export const turnsAreTaken: Check = {
  guarantee: "G19",
  promise:
    "a claim that leaves a tenant's behind takes no more than its turns of another's; a hand begins them in turns",
  run(history, report) {
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
