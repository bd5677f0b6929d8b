// The judge: pure functions over a finished history. Each check says which guarantee it is about and what of it
// can be seen from outside; test/chaos/checker.test.ts shows that each can fail.

import { balanced, fromSomewhere, kept } from "./checks/acceptance.ts";
import { calledBack } from "./checks/callbacks.ts";
import { followed } from "./checks/feed.ts";
import { noDyingLease, oneHolder, staleIsPowerless, writtenBeforeSent } from "./checks/leases.ts";
import { firstInFirstOut, priorities } from "./checks/order.ts";
import { drains } from "./checks/recovery.ts";
import { governed, inTime, retriesEnd } from "./checks/sends.ts";
import { counted } from "./checks/tallies.ts";
import { visited } from "./checks/visits.ts";
import { failsAlone, turnsAreTaken, urgentOvertakes } from "./checks/walls.ts";
import type { Check, History, Violation } from "./history.ts";

export const CHECKS: readonly Check[] = [
  ...[kept, fromSomewhere, oneHolder, staleIsPowerless, writtenBeforeSent, governed, noDyingLease],
  ...[priorities, firstInFirstOut, inTime, retriesEnd, balanced, drains],
  ...[urgentOvertakes, turnsAreTaken, failsAlone, followed, calledBack, counted, visited],
];

/** SQS knows no order. */
const ORDER: readonly Check[] = [priorities, firstInFirstOut, turnsAreTaken];

export const checksOf = ({ settings }: Pick<History, "settings">): readonly Check[] =>
  settings.engine === "sqs" ? CHECKS.filter((one) => !ORDER.includes(one)) : CHECKS;

export function check(history: History, checks: readonly Check[] = checksOf(history)): Violation[] {
  const violations: Violation[] = [];
  for (const { guarantee, run } of checks) {
    run(history, (rule, example) => void violations.push({ guarantee, rule, example }));
  }
  return violations;
}
