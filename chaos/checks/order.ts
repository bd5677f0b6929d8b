// What a claim leaves behind: nothing of a higher priority, and nothing of the same tenant and lane that was earlier.
//
// Rows that became visible less than VISIBLE_MS before are let off, since a commit's timestamp is taken a moment before the
// commit can be seen; within a lane some more, as in a backlog a claim looks for what came back to it only every 200 ms. All lanes
// are polled at the same pace here, so every claim looks at all of them. A tenant of which a worker has enough in hand is left out.

import { eachClaim, heldElsewhereIn, leftByOthersIn, overlapsOf, type Stay } from "../claims.ts";
import { mindsOf } from "../hands.ts";
import { type Change, type Check, groupBy } from "../history.ts";

const VISIBLE_MS = 250;
export const IN_LANE_MS = VISIBLE_MS + 200;

export const priorities: Check = {
  guarantee: "G8",
  promise: "no claim leaves a row of a higher priority behind that it could see and that nobody else held",
  run(history, report) {
    const mindOf = mindsOf(history);
    const isHeldElsewhere = heldElsewhereIn(history);
    const isLeftByOthers = leftByOthersIn(history);
    eachClaim(history, VISIBLE_MS, (claim, taken, left) => {
      const { beganAt, worker } = claim;
      const worst = Math.max(...taken.map(({ change }) => change.priority));
      const better = left.filter((stay) => stay.change.priority < worst && !isHeldElsewhere(stay, claim));
      if (better.length === 0) return;
      const waiting = mindOf(worker, beganAt);
      const wronged = better.find(
        (stay) =>
          !waiting.some(({ tenant, rank }) => tenant === stay.change.tenant && rank <= stay.change.priority) &&
          !isLeftByOthers(stay, claim),
      );
      if (!wronged) return;
      const waitedMs = Math.round(beganAt - wronged.since);
      report("a higher priority was left behind", `${wronged.change.id}, to be claimed for ${waitedMs} ms`);
    });
  },
};

const isLater = ({ place }: Change): boolean => place === "later";

/** What waited for its time goes first, by that time; then the rest as it was accepted. */
const isEarlier = (a: Change, b: Change): boolean =>
  isLater(a) === isLater(b) ? (isLater(a) ? (a.due ?? 0) < (b.due ?? 0) : a.seq < b.seq) : isLater(a);

/** Between tenants there are turns, so that only a tenant's own come one after the other. */
const lineOf = ({ change: { tenant, priority } }: Stay): string => `${tenant} ${priority}`;

export const firstInFirstOut: Check = {
  guarantee: "G9",
  promise:
    "within tenant and lane nothing is claimed before what was earlier and could be seen; what was due goes first",
  run(history, report) {
    const overlaps = overlapsOf(history);
    const isHeldElsewhere = heldElsewhereIn(history);
    eachClaim(history, IN_LANE_MS, (claim, taken, left) => {
      const free = left.filter((stay) => !isHeldElsewhere(stay, claim));
      const waiting = groupBy(free, lineOf);
      for (const stay of taken) {
        const earlier = waiting.get(lineOf(stay))?.find(({ change }) => isEarlier(change, stay.change));
        // What was locked by a claim beside it, and not taken after all, was not there for this one.
        if (earlier && !overlaps(claim))
          report("overtaken in its lane", `${stay.change.id} (${stay.change.place}) before ${earlier.change.id}`);
      }
    });
  },
};
