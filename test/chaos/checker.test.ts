// A checker that cannot fail is worthless: a small history that is in order, and for each guarantee ways to break it.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { NotificationRequest } from "#domain/notification.ts";
import { OWN_RETRY } from "#domain/retry-policy.ts";
import type { Status } from "#domain/status.ts";
import { CHECKS, check } from "../../chaos/checker.ts";
import type { Change, EventRow, Fault, History, NotificationRow, Promised, TallyRow } from "../../chaos/history.ts";
import { urlOf } from "../../chaos/ways.ts";
import { REQUESTS_OF_ADA, signed, tellCallback } from "./told-callbacks.ts";

const LEASE_MS = 2_000;
const COST = 0.0004;
const BACKOFF_MS = 1_000;
const PID = 100;
/** Of the worker with the id 2; the worker 1 has PID. */
const OTHER_PID = 200;
const FROZEN: Fault = { kind: "freeze worker", at: 7_000, until: 9_500, pid: OTHER_PID };
const FAULTS: Fault[] = [
  FROZEN,
  ...[
    ...["kill api", "cut connections", "cut-before", "cut-after", "blackhole", "crash postgres"],
    ...["long transaction", "prepared transaction"],
  ].map((kind) => ({ kind, at: 60_000 })),
  { kind: "kill worker", at: 60_000, pid: 999 },
];

const CALLED_BACK: Partial<NotificationRequest> = {
  callbackUrl: "http://127.0.0.1/requests/ada",
  callbackEvents: ["accepted", "retrying", "sent"],
};

type Told = ReturnType<typeof tell>;
type Claimed = {
  id: string;
  seq: number;
  tenant: number;
  attempt: number;
  token: number;
  worker: number;
  priority: number;
};

/** Tells a history as the product would have made it; what a test wants broken it breaks in the parts. */
function tell() {
  const history: History = {
    settings: {
      ...{ seed: 1, seconds: 1, workers: 2, leaseMs: LEASE_MS, sweepMs: 500, marginMs: 500, sendTimeoutMs: 1_000 },
      drainMs: 3_000,
      ...{ retry: OWN_RETRY, engine: "postgres", mutant: undefined },
    },
    ...{ promised: [], cancelled: [], notifications: [], events: [], waiting: [], journal: [], sends: [], calls: [] },
    tenants: [
      { id: 1, name: "ada", weight: 1 },
      { id: 2, name: "bela", weight: 2 },
    ],
    ledgers: [{ tenant: "ada", at: 0, isBalanced: true, accepted: 0, body: "" }],
    workers: [
      { id: 1, pid: PID },
      { id: 2, pid: OTHER_PID },
    ],
    faults: [...FAULTS],
    rolledBack: [],
    logs: [
      {
        slot: "w",
        pid: OTHER_PID,
        at: 9_600,
        level: "warn",
        message: "lease lost, nothing settled",
        id: "frozen",
        attempt: 1,
      },
    ],
    feeds: { ada: [] },
    tallies: [],
    readings: [
      // Killed with some in its hands, it begins again.
      { follower: "f", tenant: "ada", after: undefined, facts: [] },
      { follower: "f", tenant: "ada", after: undefined, facts: [] },
    ],
    callbacks: { notifications: [], events: [], waiting: [], journal: [] },
    endpoints: [REQUESTS_OF_ADA],
    posts: [],
    ...{ quietAt: 100_000, drainedAt: 101_000, drainBoundMs: 10_000 },
  };
  let xid = 0;
  let tokens = 0;
  const note = (at: number, op: Change["op"], place: Change["place"], row: Partial<Change> & { id: string }) => {
    const change: Change = {
      ...{ n: history.journal.length, xid, op, place, beganAt: at - 1, at, committedAt: at + 1 },
      ...{
        seq: 0,
        tenant: 1,
        priority: 2,
        attempt: 0,
        token: null,
        worker: null,
        until: null,
        oldToken: null,
        oldUntil: null,
        due: null,
      },
      ...row,
    };
    history.journal.push(change);
  };
  let number = 0;
  const record = (at: number, row: Partial<EventRow> & { id: string; to: Status }) => {
    const event: EventRow = {
      ...{ at, xid, type: "attempt", from: "processing", attempt: null, token: null, worker: null, startedAt: null },
      ...{ outcome: null, cost: null, reason: null, number: ++number, ...row },
    };
    history.events.push(event);
    const { id, type, to } = event;
    const fact = type === "postponed" ? type : to === "pending" ? "retrying" : to;
    const { tenant } = find(history.notifications, (one) => one.id === id);
    tellFact(tenant, id, fact, number);
    tally(id, { event: type, was: event.from ?? "", becomes: to, outcome: event.outcome ?? "" }, event.cost ?? 0);
  };
  /** Counted one by one, as several of one kind may be. */
  const tally = (id: string, kind: Pick<TallyRow, "event" | "was" | "becomes" | "outcome">, cost = 0) => {
    const { tenant, request } = find(history.notifications, (one) => one.id === id);
    history.tallies.push({ tenant, channel: request.channel, ...kind, count: 1, cost });
  };
  /** To a follower of each tenant, too. */
  const tellFact = (tenant: number, notificationId: string, type: string, n: number) => {
    if (tenant !== 1) return;
    const fact = { id: `${notificationId}:${n}`, type, notificationId };
    history.feeds.ada?.push(fact);
    for (const { facts } of history.readings) facts.push(fact);
  };

  return {
    history,
    accept(at: number, id: string, more: Partial<NotificationRequest> = {}, row: Partial<NotificationRow> = {}) {
      xid++;
      const request = { channel: "console", content: {}, idempotencyKey: id, ...more } as NotificationRequest;
      const seq = history.notifications.length + 1;
      const status: Status = "queued";
      const tenant = row.tenant ?? 1;
      const name = find(history.tenants, (one) => one.id === tenant).name;
      const answer: Promised["answer"] = { kind: "acknowledged", ids: [id] };
      history.promised.push({ call: id, key: id, tenant: name, request, answer });
      const times = { acceptedAt: at, dueAt: null, expiresAt: null };
      history.notifications.push({ id, seq, tenant, priority: 2, ...times, request, status, ...row });
      tellFact(tenant, id, "accepted", 0);
      tally(id, { event: "accepted", was: "", becomes: "", outcome: "" });
      const due = row.dueAt ?? null;
      note(at, "insert", due === null ? "ready" : "later", { id, seq, tenant, priority: row.priority ?? 2, due });
      return seq;
    },
    claim(at: number, id: string, worker = 1): Claimed {
      xid++;
      return this.alsoClaim(at, id, ++tokens, worker);
    },
    /** All in one claim. */
    claimAll(at: number, ids: readonly string[], worker = 1): Claimed[] {
      xid++;
      const token = ++tokens;
      return ids.map((id) => this.alsoClaim(at, id, token, worker));
    },
    alsoClaim(at: number, id: string, token: number, worker: number): Claimed {
      const { seq, tenant, priority } = find(history.notifications, (row) => row.id === id);
      const attempt = history.events.filter((event) => event.id === id).length + 1;
      const claimed = { id, seq, tenant, attempt, token, worker, priority };
      const place = history.journal.findLast((change) => change.id === id && change.op === "insert")?.place ?? "ready";
      note(at, "insert", "leased", { ...claimed, until: at + LEASE_MS });
      note(at, "delete", place, { id, seq, tenant, priority, attempt: attempt - 1 });
      return claimed;
    },
    send({ id, attempt, worker }: Claimed, at: number, isTaken = true) {
      const pid = worker === 1 ? PID : OTHER_PID;
      history.sends.push({ id, attempt, pid, at });
      if (isTaken) history.calls.push({ id, attempt, pid, at: at + 20 });
    },
    settle(claimed: Claimed, at: number, to: Status, outcome = "accepted") {
      xid++;
      const { id, seq, tenant, attempt, token, worker, priority } = claimed;
      record(at, { id, to, attempt, token, worker, outcome, cost: outcome === "accepted" ? COST : null });
      note(at, "delete", "leased", claimed);
      if (to === "pending") note(at, "insert", "later", { id, seq, tenant, attempt, priority, due: at + BACKOFF_MS });
      find(history.notifications, (row) => row.id === id).status = to;
    },
    postpone(claimed: Claimed, at: number, reason: string) {
      xid++;
      const { id, seq, tenant, attempt, token, worker, priority } = claimed;
      record(at, { id, type: "postponed", to: "pending", attempt, token, worker, reason });
      note(at, "delete", "leased", claimed);
      note(at, "insert", "later", { id, seq, tenant, attempt: attempt - 1, priority, due: at + BACKOFF_MS });
    },
    handBack(claimed: Claimed, at: number) {
      xid++;
      const { id, seq, tenant, attempt, priority } = claimed;
      note(at, "delete", "leased", claimed);
      note(at, "insert", "ready", { id, seq, tenant, attempt: attempt - 1, priority });
    },
    /** Takes a lease over, under a new token. */
    sweep(at: number, claimed: Claimed, ranOutAt: number, worker = 1): Claimed {
      xid++;
      const taken = { ...claimed, token: ++tokens, worker };
      note(at, "update", "leased", { ...taken, until: at + LEASE_MS, oldToken: claimed.token, oldUntil: ranOutAt });
      return taken;
    },
    extend(at: number, claimed: Claimed, until: number) {
      xid++;
      note(at, "update", "leased", { ...claimed, until: at + LEASE_MS, oldToken: claimed.token, oldUntil: until });
    },
  };
}

/** Sent at once; sent at the second try after an ambiguous answer, and called back about; lost by a frozen worker and sent by another. */
function orderly(): Told & { first: Claimed; again: Claimed; lost: Claimed; swept: Claimed; last: Claimed } {
  const told = tell();
  told.accept(1_000, "plain");
  const first = told.claim(1_300, "plain");
  told.send(first, 1_310);
  told.extend(1_320, first, 3_300);
  told.settle(first, 1_350, "sent");

  told.accept(2_000, "unsure", CALLED_BACK);
  const unsure = told.claim(2_300, "unsure");
  told.send(unsure, 2_310);
  told.settle(unsure, 2_400, "pending", "ambiguous");
  const again = told.claim(3_700, "unsure");
  told.send(again, 3_710);
  told.settle(again, 3_800, "sent");
  // The first is posted again, since its answer was lost; the second is given up.
  const about = { notificationId: "unsure" };
  tellCallback(told.history, { ...about, type: "accepted" }, [
    { at: 30_000, status: 0 },
    { at: 32_000, status: 204 },
  ]);
  tellCallback(told.history, { ...about, type: "retrying", attempt: 1 }, [{ at: 33_000, status: 400 }]);
  tellCallback(told.history, { ...about, type: "sent", attempt: 2 }, [{ at: 34_000, status: 204 }]);

  told.accept(6_000, "frozen");
  const lost = told.claim(6_300, "frozen", 2);
  told.send(lost, 6_310);
  const swept = told.sweep(8_500, lost, 8_300);
  told.settle(swept, 8_510, "pending", "lost");
  const last = told.claim(9_700, "frozen");
  told.send(last, 9_710);
  told.settle(last, 9_800, "sent");
  return { ...told, first, again, lost, swept, last };
}

function brokenRules(history: History): string[] {
  return [...new Set(check(history).map(({ guarantee, rule }) => `${guarantee} ${rule}`))];
}

const find = <Item>(items: Item[], holds: (item: Item) => boolean): Item => {
  const found = items.find(holds);
  assert.ok(found);
  return found;
};

test("an orderly history breaks nothing", () => {
  assert.deepEqual(check(orderly().history), []);
});

test("a claim that is handed back unsent is in order", () => {
  const told = orderly();
  told.accept(20_000, "returned");
  told.handBack(told.claim(20_300, "returned"), 20_400);
  const again = told.claim(20_700, "returned");
  told.send(again, 20_710);
  told.settle(again, 20_800, "sent");
  assert.deepEqual(check(told.history), []);
});

const WAITING = 10;

/** Three times one is claimed by a worker that has others in hand, and is begun after `passed` of those. */
function inHand(told: Told, one: (n: number) => [id: string, row: Partial<NotificationRow>], passed = WAITING): void {
  for (let n = 0; n < 3; n++) {
    const at = 20_000 + 5_000 * n;
    const ids = Array.from({ length: WAITING }, (_, index) => `${n} waiting ${index}`);
    for (const id of ids) told.accept(at, id);
    const waiting = told.claimAll(at + 1_000, ids);
    const [id, row] = one(n);
    told.accept(at + 1_001, id, {}, row);
    const claimed = told.claim(at + 1_010, id);
    const order = [...waiting.slice(0, passed), claimed, ...waiting.slice(passed)];
    for (const [index, begun] of order.entries()) {
      told.send(begun, at + 1_020 + index);
      told.settle(begun, at + 1_100 + index, "sent");
    }
  }
}

/** Each breaks an orderly history; the first named rule must be among those that are then broken. */
const BREAKAGES: { [guarantee: string]: { [rule: string]: (told: ReturnType<typeof orderly>) => void } } = {
  G1: {
    "acknowledged, but not there": ({ history }) => {
      history.notifications = history.notifications.filter(({ id }) => id !== "plain");
    },
    "a key made several notifications": ({ history }) => {
      history.notifications.push({ ...find(history.notifications, ({ id }) => id === "plain"), id: "twin", seq: 99 });
    },
    "stored with another content": ({ history }) => {
      find(history.notifications, ({ id }) => id === "plain").request = {
        channel: "console",
        content: { body: "other" },
        idempotencyKey: "plain",
      };
    },
    "refused, yet stored": ({ history }) => {
      find(history.promised, ({ key }) => key === "plain").answer = { kind: "refused", code: "OVERLOADED" };
    },
    "stored for another tenant": ({ history }) => {
      find(history.notifications, ({ id }) => id === "plain").tenant = 2;
    },
    "half of a request is there": ({ history }) => {
      const known = find(history.promised, ({ key }) => key === "plain");
      known.answer = { kind: "unknown" };
      const missing: Promised = { ...known, key: "missing" };
      history.promised.push(missing);
    },
    "not in exactly one place": ({ history }) => {
      history.events = history.events.filter(({ id }) => id !== "plain");
    },
    "the status is not what the record says": ({ history }) => {
      find(history.notifications, ({ id }) => id === "plain").status = "failed";
    },
    "cancelled, yet it went on": ({ history }) => {
      history.cancelled.push({ id: "plain", at: 1_200, answer: "cancelled" });
    },
    "in two places at once": ({ history }) => {
      find(history.journal, ({ id, place, op }) => id === "plain" && place === "ready" && op === "delete").xid = 999;
    },
  },
  G2: {
    "sent, but never accepted": ({ history }) => {
      history.sends.push({ id: "phantom", attempt: 1, pid: PID, at: 5_000 });
    },
    "taken, but never accepted": ({ history }) => {
      history.calls.push({ id: "phantom", attempt: 1, pid: PID, at: 5_000 });
    },
    "stored, but nobody asked for it": ({ history }) => {
      history.promised = history.promised.filter(({ key }) => key !== "plain");
    },
  },
  G3: {
    "a token does not grow": ({ history }) => {
      for (const row of [...history.journal, ...history.events]) if (row.token === 3) row.token = 1;
    },
    "claimed while it was held": ({ history }) => {
      const claim = find(
        history.journal,
        ({ id, place, op }) => id === "plain" && place === "leased" && op === "insert",
      );
      history.journal.splice(history.journal.indexOf(claim) + 1, 0, { ...claim, token: 50, worker: 2 });
    },
    "taken over from a living holder": ({ history }) => {
      find(history.journal, ({ op, token, oldToken }) => op === "update" && token !== oldToken).oldUntil = 8_900;
    },
    "prolonged after it had run out": ({ history }) => {
      find(history.journal, ({ op, token, oldToken }) => op === "update" && token === oldToken).oldUntil = 1_200;
    },
    "tokens in the record do not grow": ({ history }) => {
      find(history.events, ({ id, outcome }) => id === "frozen" && outcome === "accepted").token = 1;
    },
  },
  G4: {
    "settled by somebody who did not hold it": ({ history, lost }) => {
      const event = find(history.events, ({ id, outcome }) => id === "frozen" && outcome === "accepted");
      event.token = lost.token;
    },
    "recorded under a token that nobody had": ({ history }) => {
      find(history.events, ({ id }) => id === "plain").token = 77;
    },
    "the record has another attempt's number": ({ history }) => {
      find(history.events, ({ id }) => id === "plain").attempt = 2;
    },
    "a lease vanished without a record": ({ history }) => {
      history.events = history.events.filter(({ id, outcome }) => id !== "frozen" || outcome !== "lost");
    },
    "handed back although it was being sent": (told) => {
      told.accept(20_000, "torn");
      const claimed = told.claim(20_300, "torn");
      told.send(claimed, 20_310);
      told.handBack(claimed, 20_400);
    },
    "recorded after its ending": ({ history }) => {
      find(history.events, ({ outcome }) => outcome === "ambiguous").to = "ambiguous";
    },
    "ended twice": ({ history }) => {
      find(history.events, ({ outcome }) => outcome === "ambiguous").to = "failed";
    },
    "claimed after its ending": (told) => {
      told.claim(30_000, "plain");
    },
  },
  G5: {
    "sent without a committed claim": ({ history }) => {
      find(history.sends, ({ id }) => id === "plain").at = 1_250;
    },
    "sent, but not in the record": ({ history }) => {
      history.events = history.events.filter(({ id }) => id !== "plain");
    },
    "taken by the provider, but no send began": ({ history }) => {
      history.sends = history.sends.filter(({ id }) => id !== "plain");
    },
  },
  G6: {
    "two sends under one attempt": ({ history }) => {
      history.sends.push({ ...find(history.sends, ({ id }) => id === "plain"), pid: OTHER_PID });
    },
    "more calls than attempts": ({ history }) => {
      history.calls.push({ ...find(history.calls, ({ id }) => id === "plain") });
    },
    "taken, but recorded as not sent": ({ history }) => {
      find(history.events, ({ outcome }) => outcome === "ambiguous").outcome = "unavailable";
    },
    "sent again without a reason": ({ history }) => {
      find(history.events, ({ outcome }) => outcome === "ambiguous").outcome = "accepted";
    },
    "recorded as sent, but the provider has not seen it": ({ history }) => {
      history.calls = history.calls.filter(({ id }) => id !== "plain");
    },
    "in doubt, yet sent again too often": ({ history }) => {
      const doubt = find(history.events, ({ outcome }) => outcome === "ambiguous");
      history.events.push({ ...doubt, attempt: 11 }, { ...doubt, attempt: 12 });
    },
    "hold, yet sent twice": ({ history }) => {
      find(history.notifications, ({ id }) => id === "unsure").request.onAmbiguous = "hold";
    },
  },
  G7: {
    "sent on a dying lease": ({ history }) => {
      const claim = find(
        history.journal,
        ({ id, op, place }) => id === "unsure" && place === "leased" && op === "insert",
      );
      claim.until = 2_310 + 250;
    },
    "sent after the lease had ended": ({ history }) => {
      find(history.sends, ({ id }) => id === "plain").at = 1_400;
    },
  },
  G8: {
    "a higher priority was left behind": (told) => {
      told.accept(20_000, "urgent", {}, { priority: 0 });
      told.accept(20_400, "low", {}, { priority: 3 });
      told.claim(20_700, "low");
      told.claim(21_000, "urgent");
    },
  },
  G9: {
    "overtaken in its lane": (told) => {
      told.accept(20_000, "earlier");
      told.accept(20_400, "later");
      told.claim(20_700, "later");
      told.claim(21_000, "earlier");
    },
  },
  G13: {
    "claimed too early": ({ history }) => {
      find(history.notifications, ({ id }) => id === "plain").dueAt = 1_305;
    },
    "sent after it had expired": ({ history }) => {
      find(history.notifications, ({ id }) => id === "plain").expiresAt = 1_000;
    },
  },
  G14: {
    "more attempts than allowed": ({ history }) => {
      find(history.notifications, ({ id }) => id === "unsure").request.retryPolicy = { maxAttempts: 1 };
    },
    "attempts are not numbered in order": ({ history }) => {
      find(history.events, ({ id, attempt }) => id === "unsure" && attempt === 2).attempt = 3;
    },
    "gave up too early": ({ history }) => {
      const event = find(history.events, ({ id }) => id === "plain");
      event.to = "failed";
      event.outcome = "unavailable";
    },
    "tried again too soon": ({ history, again }) => {
      for (const change of history.journal) {
        if (change.token === again.token && change.op === "insert") change.at = change.beganAt = 2_700;
      }
    },
  },
  G16: {
    "a reading does not balance": ({ history }) => {
      history.ledgers.push({ tenant: "ada", at: 1, isBalanced: false, accepted: 3, body: "{}" });
    },
    "accepted shrinks": ({ history }) => {
      history.ledgers.push({ tenant: "ada", at: 1, isBalanced: true, accepted: 3, body: "" });
      history.ledgers.push({ tenant: "ada", at: 2, isBalanced: true, accepted: 2, body: "" });
    },
    "the tables do not balance": ({ history }) => {
      history.waiting.push({ place: "ready", seq: 1, id: "plain" });
    },
    "the ledger counts what is not there": ({ history }) => {
      history.ledgers.push({ tenant: "ada", at: 1, isBalanced: true, accepted: 4, body: "" });
    },
  },
  G17: {
    "not drained in time": ({ history }) => {
      history.drainedAt = undefined;
    },
    abandoned: (told) => {
      told.accept(99_000, "left");
      told.claim(99_500, "left", 2);
      told.history.faults.push({ kind: "kill worker", at: 99_900, pid: OTHER_PID });
    },
    "a worker that was asked to stop left work behind": (told) => {
      told.accept(100_100, "unfinished");
      const claimed = told.claim(100_200, "unfinished", 2);
      told.history.faults.push({ kind: "stop worker", at: 100_300, until: 100_400, pid: OTHER_PID });
      told.settle(told.sweep(102_500, claimed, 102_200), 102_510, "ambiguous", "lost");
    },
    "a process died by itself": ({ history }) => {
      history.faults.push({ kind: "died by itself", at: 5_000, pid: PID });
    },
    "a process did not stop when asked to": ({ history }) => {
      history.faults.push({ kind: "did not stop", at: 5_000, pid: PID });
    },
  },
  G18: {
    "lower ones were begun first out of the hand": (told) => inHand(told, (n) => [`urgent ${n}`, { priority: 0 }]),
  },
  G19: {
    "tenants' turns were passed over": (told) => {
      for (let round = 0; round < 4; round++) {
        const at = 20_000 + 5_000 * round;
        const flood = Array.from({ length: 9 }, (_, n) => `flood ${round} ${n}`);
        for (const id of flood) told.accept(at, id);
        for (let n = 0; n < 4; n++) told.accept(at, `other ${round} ${n}`, {}, { tenant: 2 });
        for (const claimed of told.claimAll(at + 1_000, [...flood, `other ${round} 0`])) told.send(claimed, at + 1_010);
      }
    },
    "others' were begun first out of the hand": (told) => inHand(told, (n) => [`other ${n}`, { tenant: 2 }]),
  },
  G20: {
    "held back for what another did": (told) => {
      told.accept(20_000, "well", { channel: "webhook", recipient: { webhookUrl: urlOf("well") } });
      const claimed = told.claim(20_300, "well");
      told.postpone(claimed, 20_400, "the receiver does not answer");
    },
  },
  G21: {
    "a fact was never told": ({ history }) => {
      history.feeds.ada?.splice(3, 1);
    },
    "a fact is told twice": ({ history }) => {
      history.feeds.ada?.splice(
        3,
        0,
        find(history.feeds.ada, ({ type }) => type === "sent"),
      );
    },
    "told what did not happen": ({ history }) => {
      history.feeds.ada?.push({ id: "plain:99", type: "delivered", notificationId: "plain" });
    },
    "told of what is not there": ({ history }) => {
      history.feeds.ada?.push({ id: "phantom:0", type: "accepted", notificationId: "phantom" });
    },
    "facts of one notification are out of order": ({ history }) => {
      history.feeds.ada?.reverse();
    },
    "a follower was told something else than what came next": ({ history }) => {
      find(history.readings, ({ follower }) => follower === "f").facts.splice(2, 1);
    },
    "a follower is not told the end": ({ history }) => {
      for (const { facts } of history.readings) facts.pop();
    },
    "a follower was refused": ({ history }) => {
      find(history.readings, ({ follower }) => follower === "f").refusal = "410 RESET";
    },
  },
  G25: {
    "happened, and was not counted": ({ history }) => {
      history.tallies.pop();
    },
    "counted more often than it happened": ({ history }) => {
      find(history.tallies, ({ becomes }) => becomes === "sent").count = 2;
    },
    "counted with another cost than it had": ({ history }) => {
      find(history.tallies, ({ becomes }) => becomes === "sent").cost = 2 * COST;
    },
  },
  G22: {
    "callbacks are left waiting": ({ history: { callbacks } }) => {
      callbacks.waiting.push({ place: "later", seq: 1_000, id: "callback 1000" });
    },
    "a fact was never called back": ({ history }) => {
      history.posts = history.posts.filter(({ id }) => id !== "msg_1002");
    },
    "called back under another id": ({ history: { posts } }) => {
      posts.push(signed({ ...find(posts, ({ status }) => status === 0), id: "msg_other" }));
    },
    "called back about what nobody asked for": ({ history: { posts } }) => {
      const post = find(posts, ({ status }) => status === 400);
      posts.push({ ...post, body: post.body.replace("unsure", "plain") });
    },
    "recorded as delivered, but nobody took it": ({ history: { posts } }) => {
      find(posts, ({ status }) => status === 204).status = 500;
    },
    "a callback was given up early": ({ history: { callbacks } }) => {
      find(callbacks.events, ({ outcome }) => outcome === "rejected").outcome = "unavailable";
    },
    "a callback was made twice": ({ history: { callbacks } }) => {
      callbacks.notifications.push({ ...find(callbacks.notifications, () => true), id: "twin" });
    },
    "a signature is not over id, timestamp and body": ({ history: { posts } }) => {
      const post = find(posts, () => true);
      const other = signed({ ...post, timestamp: String(Number(post.timestamp) + 1) });
      post.signature = other.signature;
    },
    "signed with another time than its try's": ({ history: { posts } }) => {
      find(posts, () => true).at += 100_000;
    },
    "one id for two callbacks": ({ history: { posts } }) => {
      find(posts, ({ status }) => status === 400).id = "msg_1000";
    },
    "posted after its end": ({ history: { posts } }) => {
      posts.push(signed({ ...find(posts, ({ status }) => status === 204), at: 40_000, timestamp: "40" }));
    },
    "posted before the one before it in line had ended": ({ history: { posts } }) => {
      find(posts, ({ status }) => status === 400).at = 32_020;
    },
    "claimed after its ending": ({ history: { callbacks } }) => {
      const claim = find(callbacks.journal, ({ id, op }) => id === "callback 1002" && op === "insert");
      callbacks.journal.push({ ...claim, token: 99_999, beganAt: 50_000, at: 50_000 });
    },
  },
  visits: {
    "did not visit": ({ history }) => {
      history.logs = [];
    },
  },
};

for (const { guarantee, promise } of CHECKS) {
  describe(`${guarantee}: ${promise}`, () => {
    const breakages = Object.entries(BREAKAGES[guarantee] ?? {});
    test("has ways to be broken", () => assert.ok(breakages.length > 0));
    for (const [rule, breakIt] of breakages) {
      test(`notices: ${rule}`, () => {
        const told = orderly();
        breakIt(told);
        const broken = brokenRules(told.history);
        assert.ok(broken.includes(`${guarantee} ${rule}`), `broken were: ${broken.join("; ") || "none"}`);
      });
    }
  });
}

test("every rule that a check can report is broken by a test", () => {
  const directory = join(import.meta.dirname, "..", "..", "chaos", "checks");
  const known = new Set(Object.values(BREAKAGES).flatMap((rules) => Object.keys(rules)));
  const rules = globSync("*.ts", { cwd: directory }).flatMap((file) =>
    [...readFileSync(join(directory, file), "utf8").matchAll(/\breport\(\s*"([^"]+)"/g)].map(
      ([, rule]) => rule as string,
    ),
  );
  assert.ok(rules.length > 30);
  assert.deepEqual(
    rules.filter((rule) => !known.has(rule)),
    [],
  );
});

describe("what is not the product's fault is let off", () => {
  test("what was begun while a claim was still on its way is not held against the hand", () => {
    const told = orderly();
    inHand(told, (n) => [`urgent ${n}`, { priority: 0 }], 4);
    assert.deepEqual(check(told.history), []);
  });

  test("a tenant of which a worker has some in hand may be left out of its next claim", () => {
    const told = orderly();
    told.accept(20_000, "held", {}, { tenant: 2 });
    const held = told.claim(20_300, "held");
    for (let n = 0; n < 3; n++) told.accept(20_400, `flood ${n}`);
    told.accept(20_400, "other", {}, { tenant: 2 });
    told.accept(20_400, "higher", {}, { tenant: 2, priority: 1 });
    const claims = [
      ...told.claimAll(21_000, ["flood 0", "flood 1", "flood 2", "higher"]),
      ...told.claimAll(21_100, ["other"]),
    ];
    for (const claimed of [held, ...claims]) {
      told.send(claimed, 21_200);
      told.settle(claimed, 21_300, "sent");
    }
    assert.deepEqual(check(told.history), []);
  });

  test("turns go by weight", () => {
    const told = orderly();
    for (const tenant of [1, 2]) {
      for (let n = 0; n < 9; n++) told.accept(20_000, `${tenant} ${n}`, {}, { tenant });
    }
    const rounds = ["1 0", "2 0", "2 1", "1 1", "2 2", "2 3", "1 2", "2 4", "2 5"];
    told.claimAll(21_000, rounds);
    const broken = check(told.history).filter(({ guarantee }) => guarantee === "G19");
    assert.deepEqual(broken, []);
  });

  test("one send per freeze may begin late, frozen between the look at the clock and the send; two may not", () => {
    const told = orderly();
    for (const [n, id] of ["first", "second"].entries()) {
      told.accept(40_000 + n * 10_000, id);
      const claimed = told.claim(40_300 + n * 10_000, id, 2);
      told.send(claimed, 44_000 + n * 10_000, false);
      told.settle(
        told.sweep(43_000 + n * 10_000, claimed, 42_300 + n * 10_000),
        43_010 + n * 10_000,
        "ambiguous",
        "lost",
      );
    }
    told.history.faults.push({ kind: "freeze worker", at: 40_400, until: 43_990, pid: OTHER_PID });
    const late = check(told.history).filter(({ guarantee }) => guarantee === "G7");
    assert.deepEqual(
      late.map(({ rule, example }) => [rule, example.split(",")[0]]),
      [["sent after the lease had ended", "second"]],
    );
  });

  test("of a request whose answer was lost, what had expired on its way may be missing, and nothing else", () => {
    const found = (expiresAtMs: number): string[] => {
      const { history } = orderly();
      const known = find(history.promised, ({ key }) => key === "plain");
      known.answer = { kind: "unknown" };
      const expiresAt = new Date(expiresAtMs).toISOString();
      history.promised.push({ ...known, key: "missing", request: { ...known.request, expiresAt } });
      return check(history).map(({ rule }) => rule);
    };
    assert.deepEqual(found(999), []);
    assert.deepEqual(found(1_500), ["half of a request is there"]);
  });

  test("what is due is left behind by nobody, and goes before what came; what is not due yet may be left", () => {
    const found = (dueAt: number, priority: number): string[] => {
      const told = orderly();
      told.accept(20_000, "due", {}, { priority, dueAt });
      told.accept(20_100, "came", {}, { priority: 2 });
      for (const id of ["came", "due"]) {
        const claimed = told.claim(id === "came" ? 20_700 : 22_000, id);
        told.send(claimed, 22_010);
        told.settle(claimed, 22_100, "sent");
      }
      return check(told.history).map(({ rule }) => rule);
    };
    assert.deepEqual(found(20_200, 0), ["a higher priority was left behind"]);
    assert.deepEqual(found(20_200, 2), ["overtaken in its lane"]);
    assert.deepEqual(found(20_200, 3), []);
    assert.deepEqual(found(21_000, 0), []);
  });

  test("between tenants nobody is first, whoever came first", () => {
    const told = orderly();
    told.accept(20_000, "earlier", {}, { tenant: 2 });
    told.accept(20_400, "later");
    for (const [n, id] of ["later", "earlier"].entries()) {
      const claimed = told.claim(20_900 + 100 * n, id);
      told.send(claimed, 20_910 + 100 * n);
      told.settle(claimed, 20_950 + 100 * n, "sent");
    }
    assert.deepEqual(check(told.history), []);
  });

  test("what another may have held, for a moment or frozen in the middle of it, was not left behind", () => {
    const found = (claimedAt: number, until: number, kind = "freeze worker"): string[] => {
      const told = orderly();
      told.history.faults.push({ kind, at: until - 50, until, pid: OTHER_PID });
      told.accept(20_000, "earlier");
      told.accept(20_400, "later");
      for (const [n, id] of ["later", "earlier"].entries()) {
        const claimed = told.claim(n === 0 ? 20_700 : claimedAt, id);
        told.send(claimed, claimedAt + 10);
        told.settle(claimed, claimedAt + 100, "sent");
      }
      return check(told.history).map(({ rule }) => rule);
    };
    assert.deepEqual(found(20_800, 20_690), []);
    assert.deepEqual(found(21_500, 20_740), []);
    assert.deepEqual(found(21_500, 20_690), ["overtaken in its lane"]);
    assert.deepEqual(found(21_500, 21_600), ["overtaken in its lane"]);
    // What was asked for while the network was away is done and undone afterwards.
    assert.deepEqual(found(21_500, 20_690, "blackhole"), []);
    assert.deepEqual(found(21_500, 20_150, "blackhole"), ["overtaken in its lane"]);
  });

  test("what somebody had locked who was rolled back afterwards was not left behind", () => {
    const found = (beganAt: number, until: number): string[] => {
      const told = orderly();
      told.history.rolledBack.push({ xid: 7, beganAt, until, statement: "with turns" });
      told.accept(20_000, "urgent", {}, { priority: 0 });
      told.accept(20_000, "earlier");
      told.accept(20_400, "later");
      for (const [n, id] of ["later", "earlier", "urgent"].entries()) {
        const claimed = told.claim(n === 0 ? 20_700 : 21_500, id);
        told.send(claimed, 21_510);
        told.settle(claimed, 21_600, "sent");
      }
      return check(told.history).map(({ rule }) => rule);
    };
    assert.deepEqual(found(20_690, 20_710), []);
    assert.deepEqual(found(20_600, 20_650), ["a higher priority was left behind", "overtaken in its lane"]);
    assert.deepEqual(found(20_800, 20_900), ["a higher priority was left behind", "overtaken in its lane"]);
  });

  test("a tenant of which a worker had some in hand when it asked may be left out, though they were begun by the time it was heard", () => {
    const told = orderly();
    told.accept(20_000, "held", {}, { tenant: 2, priority: 1 });
    const held = told.claim(20_300, "held");
    told.accept(20_310, "higher", {}, { tenant: 2, priority: 1 });
    told.accept(20_310, "lower", {}, { priority: 3 });
    told.send(held, 20_600);
    const claims = [told.claim(20_700, "lower"), told.claim(21_000, "higher")];
    for (const claimed of claims) told.send(claimed, 21_010);
    for (const claimed of [held, ...claims]) told.settle(claimed, 21_100, "sent");
    assert.deepEqual(check(told.history), []);
  });

  test("a worker that was frozen leaves out a tenant of which it had some when it asked last, though it has lost them", () => {
    const found = (until: number): string[] => {
      const told = orderly();
      told.history.faults.push({ kind: "freeze worker", at: 20_400, until, pid: OTHER_PID });
      told.accept(20_000, "held", {}, { tenant: 2, priority: 1 });
      const held = told.claim(20_300, "held", 2);
      told.accept(20_310, "higher", {}, { tenant: 2, priority: 1 });
      told.accept(20_310, "lower", {}, { priority: 3 });
      told.settle(told.sweep(22_400, held, 22_300), 22_500, "failed", "lost");
      for (const claimed of [told.claim(24_100, "lower", 2), told.claim(24_500, "higher")]) {
        told.send(claimed, 24_510);
        told.settle(claimed, 24_600, "sent");
      }
      return check(told.history).map(({ rule }) => rule);
    };
    assert.deepEqual(found(24_000), []);
    assert.deepEqual(found(23_800), ["a higher priority was left behind"]);
  });

  test("what a claim beside it had locked, and left as an engine gave it enough, was not left behind", () => {
    const found = (givenPriority: number, givenAt: number): string[] => {
      const told = orderly();
      told.accept(20_000, "urgent", {}, { priority: 1 });
      told.accept(20_400, "low", {}, { priority: 3 });
      told.accept(20_400, "given", {}, { priority: givenPriority });
      find(told.history.journal, ({ id }) => id === "given").place = "handed";
      const claims = [told.claim(givenAt, "given", 2), told.claim(20_700, "low"), told.claim(21_000, "urgent")];
      for (const claimed of claims) {
        told.send(claimed, 21_010);
        told.settle(claimed, 21_100, "sent");
      }
      return [...new Set(check(told.history).map(({ rule }) => rule))];
    };
    assert.deepEqual(found(0, 20_699.5), []);
    assert.deepEqual(found(3, 20_699.5), ["a higher priority was left behind"]);
    assert.deepEqual(found(0, 20_600), ["a higher priority was left behind"]);
  });

  test("a row that another claim held at that moment was not left behind", () => {
    const told = orderly();
    told.accept(20_000, "urgent", {}, { priority: 0 });
    told.accept(20_400, "low", {}, { priority: 3 });
    const low = told.claim(20_700, "low");
    const urgent = told.claim(20_700.5, "urgent");
    for (const claimed of [low, urgent]) {
      told.send(claimed, 20_710);
      told.settle(claimed, 20_800, "sent");
    }
    assert.deepEqual(check(told.history), []);
  });
});
