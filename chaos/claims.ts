// What each claim of a run took, and what it could have taken and did not.
//
// From the journal it is known for every claim which rows were committed into `ready`, or into `later` and due, before its statement
// began, and which of those nobody else had touched by the time it was done: those it could have taken. Claims shortly before a
// crash of PostgreSQL are let off, since locks of what was then rolled back left no trace.
// What was handed to an engine is taken like what is ready, but nobody can tell whether the engine could have given it: to leave it is no fault.

import { type Change, groupBy, type History } from "./history.ts";

const BEFORE_CRASH_MS = 1_000;

/** A row's stay where it can be claimed. `since`: there, and due. */
export type Stay = { change: Change; since: number; leaveBeganAt: number; leaveXid: number };
export type Claim = { beganAt: number; doneAt: number; xid: number; worker: number };

/** Between a commit's time and the moment when its locks are gone. */
const AROUND_MS = 5;

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
      worker: rows[0]?.worker ?? -1,
      beganAt: rows[0]?.beganAt ?? 0,
      doneAt: Math.max(...rows.map(({ at }) => at)),
    }))
    .filter(({ doneAt }) => !crashes.some((at) => doneAt > at - BEFORE_CRASH_MS && doneAt < at))
    .sort((a, b) => a.beganAt - b.beganAt);
}

/** Whether others took something out of the lanes beside it, or did away with it: what they had locked it had to pass over. */
export function overlapsOf({ journal }: Pick<History, "journal">): (claim: Claim) => boolean {
  const taken = journal.filter(({ place, op }) => place !== "leased" && op === "delete");
  const others = [...groupBy(taken, ({ xid }) => xid)].map(([xid, rows]) => ({
    xid,
    beganAt: Math.min(...rows.map(({ beganAt }) => beganAt)),
    committedAt: rows[0]?.committedAt ?? 0,
  }));
  return ({ xid, beganAt, doneAt }) =>
    others.some((one) => one.xid !== xid && one.beganAt < doneAt + AROUND_MS && one.committedAt > beganAt - AROUND_MS);
}

/** Somebody looks at a row, and lets it go again. */
const MOMENT_MS = 150;
/** What was asked for while the network was away is done and undone when it is back. */
const AFTERMATH_MS = 500;

/**
 * Whether somebody may have held a row that a claim left, and left no trace of it: for a moment, or in a transaction that was rolled back, or, frozen
 * or cut off in the middle of one, until after that was over.
 */
export function heldElsewhereIn({ faults, rolledBack }: History): (stay: Stay, claim: Claim) => boolean {
  const stops = faults
    .filter(({ kind }) => kind === "freeze worker" || kind === "blackhole")
    .map(({ kind, at, until = at }) => ({ at, until, over: kind === "blackhole" ? until + AFTERMATH_MS : until }));
  return ({ leaveBeganAt }, { beganAt, doneAt }) =>
    leaveBeganAt - doneAt < MOMENT_MS ||
    rolledBack.some((one) => one.beganAt < doneAt + AROUND_MS && one.until > beganAt - AROUND_MS) ||
    stops.some(({ at, until, over }) => at < doneAt && over > beganAt && leaveBeganAt > until);
}

/**
 * Whether a claim beside it may have had a row locked and left it after all: one that also took what an engine gave has more to choose from than
 * it was asked for, and takes the first by lanes and turns.
 */
export function leftByOthersIn({ journal }: Pick<History, "journal">): (stay: Stay, claim: Claim) => boolean {
  const changes = journal.filter(({ place, op }) => op === (place === "leased" ? "insert" : "delete"));
  const mixed = [...groupBy(changes, ({ xid }) => xid)]
    .filter(([, rows]) => rows.some(({ place }) => place === "handed") && rows.some(({ place }) => place === "leased"))
    .map(([xid, rows]) => ({
      xid,
      beganAt: Math.min(...rows.map(({ beganAt }) => beganAt)),
      committedAt: rows[0]?.committedAt ?? 0,
      lowest: Math.max(...rows.map(({ priority }) => priority)),
    }));
  return ({ change }, { xid, beganAt, doneAt }) =>
    mixed.some(
      (one) =>
        one.xid !== xid &&
        one.lowest <= change.priority &&
        one.beganAt < doneAt + AROUND_MS &&
        one.committedAt > beganAt - AROUND_MS,
    );
}

/** Calls back for every claim with what it took, and with what it could have taken and did not, visible for `slackMs` by then. */
export function eachClaim(
  history: History,
  slackMs: number,
  look: (claim: Claim, taken: Stay[], left: Stay[]) => void,
): void {
  const stays = staysOf(history.journal);
  const takenBy = groupBy(stays, ({ leaveXid }) => leaveXid);
  let active: Stay[] = [];
  let next = 0;
  for (const claim of claimsOf(history)) {
    const { beganAt, doneAt, xid } = claim;
    for (; (stays[next]?.since ?? Number.POSITIVE_INFINITY) < beganAt - slackMs; next++) {
      active.push(stays[next] as Stay);
    }
    active = active.filter(({ leaveBeganAt }) => leaveBeganAt > beganAt);
    const left = active.filter(
      ({ leaveBeganAt, leaveXid, change }) => leaveBeganAt > doneAt && leaveXid !== xid && change.place !== "handed",
    );
    look(claim, takenBy.get(xid) ?? [], left);
  }
}
