// What a claim leaves behind: nothing of a higher priority, and nothing of the same tenant and lane that was earlier.
//
// From the journal the checker knows for every claim which rows were committed into `ready`, or into `later` and due, before
// its statement began, and which of those nobody else had touched by the time it was done: those it could have taken.
// Rows that became visible less than VISIBLE_MS before are let off, since a commit's timestamp is taken a moment before the
// commit can be seen; within a lane some more, as in a backlog a claim looks for what came back to it only every 200 ms. So are
// claims shortly before a crash of PostgreSQL, since locks of what was then rolled back left no trace. All lanes are polled at the
// same pace here, so every claim looks at all of them.

import { type Change, type Check, groupBy, type History } from "../history.ts";

const VISIBLE_MS = 250;
const IN_LANE_MS = VISIBLE_MS + 200;
const BEFORE_CRASH_MS = 1_000;

/** `since`: there, and due. */
type Stay = { change: Change; since: number; leaveBeganAt: number; leaveXid: number };
type Claim = { beganAt: number; doneAt: number; xid: number };

function staysOf(journal: readonly Change[]): Stay[] {
  const stays: Stay[] = [];
  const open = new Map<number, Stay>();
  for (const change of journal) {
    if (change.place === "leased") continue;
    const stay = open.get(change.seq);
    if (change.op === "insert") {
      const since = Math.max(change.committedAt, change.due ?? 0);
      const begun = { change, since, leaveBeganAt: Number.POSITIVE_INFINITY, leaveXid: -1 };
      open.set(change.seq, begun);
      stays.push(begun);
    } else if (stay) {
      stay.leaveBeganAt = change.beganAt;
      stay.leaveXid = change.xid;
      open.delete(change.seq);
    }
  }
  return stays.sort((a, b) => a.since - b.since);
}

function claimsOf({ journal, faults }: History): Claim[] {
  const crashes = faults.filter(({ kind }) => kind === "crash postgres").map(({ at }) => at);
  const taken = journal.filter(({ place, op }) => place === "leased" && op === "insert");
  return [...groupBy(taken, ({ xid }) => xid)]
    .map(([xid, rows]) => ({
      xid,
      beganAt: rows[0]?.beganAt ?? 0,
      doneAt: Math.max(...rows.map(({ at }) => at)),
    }))
    .filter(({ doneAt }) => !crashes.some((at) => doneAt > at - BEFORE_CRASH_MS && doneAt < at))
    .sort((a, b) => a.beganAt - b.beganAt);
}

/** Calls back for every claim with what it took, and with what it could have taken and did not, visible for `slackMs` by then. */
function eachClaim(
  history: History,
  slackMs: number,
  look: (beganAt: number, taken: Stay[], left: Stay[]) => void,
): void {
  const stays = staysOf(history.journal);
  const takenBy = groupBy(stays, ({ leaveXid }) => leaveXid);
  let active: Stay[] = [];
  let next = 0;
  for (const { beganAt, doneAt, xid } of claimsOf(history)) {
    for (; (stays[next]?.since ?? Number.POSITIVE_INFINITY) < beganAt - slackMs; next++) {
      active.push(stays[next] as Stay);
    }
    active = active.filter(({ leaveBeganAt }) => leaveBeganAt > beganAt);
    const left = active.filter((stay) => stay.leaveBeganAt > doneAt && stay.leaveXid !== xid);
    look(beganAt, takenBy.get(xid) ?? [], left);
  }
}

export const priorities: Check = {
  guarantee: "G8",
  promise: "no claim leaves a row of a higher priority behind that it could see and that nobody else held",
  run(history, report) {
    eachClaim(history, VISIBLE_MS, (beganAt, taken, left) => {
      const worst = Math.max(...taken.map(({ change }) => change.priority));
      const better = left.find(({ change }) => change.priority < worst);
      if (!better) return;
      const waitedMs = Math.round(beganAt - better.since);
      report("a higher priority was left behind", `${better.change.id}, to be claimed for ${waitedMs} ms`);
    });
  },
};

/** What waited for its time goes first, by that time; then the rest as it was accepted. */
const isEarlier = (a: Change, b: Change): boolean =>
  a.place === b.place ? (a.place === "later" ? (a.due ?? 0) < (b.due ?? 0) : a.seq < b.seq) : a.place === "later";

/** Between tenants there are turns, so that only a tenant's own come one after the other. */
const lineOf = ({ change: { tenant, priority } }: Stay): string => `${tenant} ${priority}`;

export const firstInFirstOut: Check = {
  guarantee: "G9",
  promise:
    "within tenant and lane nothing is claimed before what was earlier and could be seen; what was due goes first",
  run(history, report) {
    eachClaim(history, IN_LANE_MS, (_, taken, left) => {
      const waiting = groupBy(left, lineOf);
      for (const stay of taken) {
        const earlier = waiting.get(lineOf(stay))?.find(({ change }) => isEarlier(change, stay.change));
        if (earlier)
          report("overtaken in its lane", `${stay.change.id} (${stay.change.place}) before ${earlier.change.id}`);
      }
    });
  },
};
