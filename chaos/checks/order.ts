// What a claim leaves behind: nothing of a higher priority, and nothing that came earlier in the same lane.
//
// From the journal the checker knows for every claim which rows were committed into `ready` before its statement
// began, and which of those nobody else had touched by the time it was done: those it could have taken. Rows that
// became visible less than SLACK_MS before are let off, since a commit's timestamp is taken a moment before the
// commit can be seen; so are claims shortly before a crash of PostgreSQL, since locks of what was then rolled back left
// no trace. All lanes are polled at the same pace here, so every claim looks at all of them.

import { type Change, type Check, groupBy, type History } from "../history.ts";

const SLACK_MS = 250;
const BEFORE_CRASH_MS = 1_000;

type Stay = { change: Change; leaveBeganAt: number; leaveXid: number };
type Claim = { beganAt: number; doneAt: number; xid: number; rows: Change[] };

function staysOf(journal: readonly Change[]): Stay[] {
  const stays: Stay[] = [];
  const open = new Map<number, Stay>();
  for (const change of journal) {
    if (change.place !== "ready") continue;
    const stay = open.get(change.seq);
    if (change.op === "insert") {
      const begun = { change, leaveBeganAt: Number.POSITIVE_INFINITY, leaveXid: -1 };
      open.set(change.seq, begun);
      stays.push(begun);
    } else if (stay) {
      stay.leaveBeganAt = change.beganAt;
      stay.leaveXid = change.xid;
      open.delete(change.seq);
    }
  }
  return stays.sort((a, b) => a.change.committedAt - b.change.committedAt);
}

function claimsOf({ journal, faults }: History): Claim[] {
  const crashes = faults.filter(({ kind }) => kind === "crash postgres").map(({ at }) => at);
  const taken = journal.filter(({ place, op }) => place === "leased" && op === "insert");
  return [...groupBy(taken, ({ xid }) => xid)]
    .map(([xid, rows]) => ({
      xid,
      rows,
      beganAt: rows[0]?.beganAt ?? 0,
      doneAt: Math.max(...rows.map(({ at }) => at)),
    }))
    .filter(({ doneAt }) => !crashes.some((at) => doneAt > at - BEFORE_CRASH_MS && doneAt < at))
    .sort((a, b) => a.beganAt - b.beganAt);
}

/** Calls back for every claim with the rows that it could have taken and did not. */
function eachClaim(history: History, look: (claim: Claim, left: Change[]) => void): void {
  const stays = staysOf(history.journal);
  let active: Stay[] = [];
  let next = 0;
  for (const claim of claimsOf(history)) {
    for (; (stays[next]?.change.committedAt ?? Number.POSITIVE_INFINITY) < claim.beganAt - SLACK_MS; next++) {
      active.push(stays[next] as Stay);
    }
    active = active.filter(({ leaveBeganAt }) => leaveBeganAt > claim.beganAt);
    const left = active.filter((stay) => stay.leaveBeganAt > claim.doneAt && stay.leaveXid !== claim.xid);
    look(
      claim,
      left.map(({ change }) => change),
    );
  }
}

export const priorities: Check = {
  guarantee: "G8",
  promise: "no claim leaves a row of a higher priority behind that it could see and that nobody else held",
  run(history, report) {
    eachClaim(history, ({ rows, beganAt }, left) => {
      const worst = rows.reduce((most, row) => (row.priority > most.priority ? row : most));
      const better = left.find(({ priority }) => priority < worst.priority);
      if (!better) return;
      const waitedMs = Math.round(beganAt - better.committedAt);
      report("a higher priority was left behind", `${worst.id} went before ${better.id}, ready for ${waitedMs} ms`);
    });
  },
};

export const firstInFirstOut: Check = {
  guarantee: "G9",
  promise: "no first attempt is claimed before one of its lane that was accepted earlier and could be seen",
  run(history, report) {
    eachClaim(history, ({ rows }, left) => {
      const waiting = left.filter(({ attempt }) => attempt === 0);
      if (waiting.length === 0) return;
      for (const { priority, attempt, seq, id } of rows) {
        if (attempt !== 1) continue;
        const earlier = waiting.find((row) => row.priority === priority && row.seq < seq);
        if (earlier)
          report("overtaken in its lane", `${id} (seq ${seq}) went before ${earlier.id} (seq ${earlier.seq})`);
      }
    });
  },
};
