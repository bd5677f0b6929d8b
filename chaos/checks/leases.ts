// One holder at a time; a stale one changes nothing; written before sent; no send on a dying lease.

import { type Check, groupBy, type History, type Send } from "../history.ts";
import { type Lease, leasesOf, linkSends, untilAt } from "../leases.ts";
import { endingsOf } from "./acceptance.ts";

export const oneHolder: Check = {
  guarantee: "G3",
  promise: "tokens of a row grow; a lease is taken over only after it ran out on the database's clock",
  run(history, report) {
    const newest = new Map<number, number>();
    const open = new Set<number>();
    for (const change of history.journal) {
      if (change.place !== "leased") continue;
      const { op, seq, id, token, oldToken, oldUntil, at, beganAt } = change;
      const name = `${id} (seq ${seq}), token ${token}`;
      const isTaken = op === "insert" || (op === "update" && token !== oldToken);
      if (isTaken && (token ?? 0) <= (newest.get(seq) ?? 0)) report("a token does not grow", name);
      if (isTaken) newest.set(seq, token ?? 0);
      if (op === "insert" && open.has(seq)) report("claimed while it was held", name);
      if (op === "update" && isTaken && (oldUntil ?? 0) > at) {
        report("taken over from a living holder", `${name}: ${Math.round((oldUntil ?? 0) - at)} ms early`);
      }
      if (op === "update" && !isTaken && (oldUntil ?? 0) < beganAt) report("prolonged after it had run out", name);
      if (op === "delete") open.delete(seq);
      else open.add(seq);
    }
    for (const [id, events] of groupBy(history.events, (event) => event.id)) {
      const tokens = events.flatMap(({ token }) => (token === null ? [] : [token]));
      if (tokens.some((token, n) => n > 0 && token <= (tokens[n - 1] ?? 0))) {
        report("tokens in the record do not grow", `${id}: ${tokens}`);
      }
    }
  },
};

export const staleIsPowerless: Check = {
  guarantee: "G4",
  promise: "only the holder's token ends a lease; what has ended stays so",
  run(history, report) {
    const leases = leasesOf(history);
    const byToken = new Map(leases.map((lease) => [`${lease.id} ${lease.token}`, lease]));
    const attempts = history.events.filter(({ type }) => type === "attempt");
    for (const { id, token, attempt, xid, outcome, to } of attempts) {
      const lease = byToken.get(`${id} ${token}`);
      const name = `${id}, attempt ${attempt}, token ${token}, ${outcome} to ${to}`;
      if (!lease) report("recorded under a token that nobody had", name);
      else if (lease.end?.xid !== xid) report("settled by somebody who did not hold it", name);
      else if (lease.attempt !== attempt) report("the record has another attempt's number", name);
    }

    const recorded = new Set(attempts.map(({ id, token }) => `${id} ${token}`));
    const returned = new Set(
      history.journal
        // To its lane, or put off by a guard to wait for its time; in both cases the attempt was not spent.
        .filter(({ op, place }) => op === "insert" && place !== "leased")
        .map(({ seq, xid, attempt }) => `${seq} ${xid} ${attempt + 1}`),
    );
    const sent = new Set([...linkSends(history.sends, leases)].map(([, lease]) => lease));
    for (const lease of leases) {
      const { id, seq, token, end } = lease;
      if (end?.op !== "delete" || recorded.has(`${id} ${token}`)) continue;
      const name = `${id}, attempt ${lease.attempt}, token ${token}`;
      if (!returned.has(`${seq} ${end.xid} ${lease.attempt}`)) report("a lease vanished without a record", name);
      else if (sent.has(lease)) report("handed back although it was being sent", name);
    }
    findLifeAfterEnd(history, leases, report);
  },
};

function findLifeAfterEnd(history: History, leases: Lease[], report: (rule: string, example: string) => void): void {
  const endedAt = new Map<string, number>();
  for (const [id, events] of groupBy(history.events, (event) => event.id)) {
    for (const [n, { type, at }] of events.entries()) {
      const before = endingsOf(events.slice(0, n));
      if (before > 0 && type === "attempt") report("recorded after its ending", `${id}: ${types(events)}`);
      if (endingsOf(events.slice(0, n + 1)) > 1) report("ended twice", `${id}: ${types(events)}`);
      if (before === 0 && endingsOf(events.slice(0, n + 1)) === 1) endedAt.set(id, at);
    }
    if (endingsOf(events) === 0) endedAt.delete(id);
  }
  for (const { id, token, from } of leases) {
    if (from.beganAt > (endedAt.get(id) ?? Number.POSITIVE_INFINITY))
      report("claimed after its ending", `${id}, ${token}`);
  }
}

const types = (events: History["events"]) =>
  events.map(({ type, outcome, to }) => `${outcome ?? type}→${to}`).join(" ");

export const writtenBeforeSent: Check = {
  guarantee: "G5",
  promise: "the claim was committed before the send began, and every send is in the record",
  run(history, report) {
    const links = linkSends(history.sends, leasesOf(history));
    const recorded = new Set(history.events.map(({ id, attempt }) => `${id} ${attempt}`));
    for (const [{ id, attempt, pid }, lease] of links) {
      const name = `${id}, attempt ${attempt}, pid ${pid}`;
      if (!lease) report("sent without a committed claim", name);
      if (!recorded.has(`${id} ${attempt}`)) report("sent, but not in the record", name);
    }
    const begun = new Set(history.sends.map(({ id, attempt, pid }) => `${id} ${attempt} ${pid}`));
    for (const { id, attempt, pid } of history.calls) {
      if (!begun.has(`${id} ${attempt} ${pid}`))
        report("taken by the provider, but no send began", `${id}, ${attempt}`);
    }
  },
};

/** How long a process may be kept from the processor between its look at the clock and the send. */
const SCHEDULING_MS = 200;

export const noDyingLease: Check = {
  guarantee: "G7",
  promise: "no send begins with less than the margin left of its lease",
  run(history, report) {
    const { marginMs } = history.settings;
    const freezes = history.faults.filter(({ kind }) => kind === "freeze worker");
    const excused = new Set<object>();
    /** Frozen between the look and the send: there can be one of those for each freeze. */
    const wasFrozen = ({ pid, at }: Send) => {
      const freeze = freezes.find(
        (one) => one.pid === pid && !excused.has(one) && at >= one.at && at <= (one.until ?? 0) + SCHEDULING_MS,
      );
      if (freeze) excused.add(freeze);
      return freeze !== undefined;
    };
    for (const [send, lease] of linkSends(history.sends, leasesOf(history))) {
      // A send without a lease is a matter of G5.
      if (!lease) continue;
      const name = `${send.id}, attempt ${send.attempt}, pid ${send.pid}`;
      const leftMs = Math.round(untilAt(lease, send.at) - send.at);
      const isOver = lease.end !== undefined && lease.end.committedAt + 1 < send.at;
      if (!isOver && leftMs >= marginMs - SCHEDULING_MS) continue;
      if (wasFrozen(send)) continue;
      if (isOver) report("sent after the lease had ended", name);
      else report("sent on a dying lease", `${name}: ${leftMs} ms were left`);
    }
  },
};
