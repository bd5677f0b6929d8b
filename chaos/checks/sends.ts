// Duplicates are governed, nothing goes too early or too late, retries end.

import { RESENDS } from "#domain/retry.ts";
import type { RetryPolicy } from "#domain/retry-policy.ts";
import { type Check, type EventRow, groupBy, type NotificationRow, type ProviderCall } from "../history.ts";

/** Outcomes that say that it may have been sent. */
const UNSURE = ["lost", "ambiguous"];
/** Outcomes that say that it was not sent, or not taken. */
const UNSENT = ["unavailable", "limited", "rejected", "dead-recipient", "expired", "unanswered"];
const RETRYABLE = ["unavailable", "limited"];

export const governed: Check = {
  guarantee: "G6",
  promise:
    "provider calls ≤ attempts; every extra is explained by a lost or ambiguous one, of which there are few; `hold` is sent at most once",
  run({ notifications, events, calls, sends }, report) {
    const eventsOf = groupBy(
      events.filter(({ type }) => type === "attempt"),
      ({ id }) => id,
    );
    const callsOf = groupBy(calls, ({ id }) => id);
    for (const [name, same] of groupBy(sends, ({ id, attempt }) => `${id}, attempt ${attempt}`)) {
      if (same.length > 1) report("two sends under one attempt", `${name}: pids ${same.map(({ pid }) => pid)}`);
    }
    for (const { id, request } of notifications) {
      const its = callsOf.get(id) ?? [];
      const attempts = new Map((eventsOf.get(id) ?? []).map((event) => [event.attempt, event]));
      checkCalls(id, its, attempts, report);
      const isOnce = request.onAmbiguous === "hold" || request.onAmbiguous === "reconcile";
      const resends = [...attempts.values()].filter(
        ({ outcome, to }) => UNSURE.includes(outcome ?? "") && to === "pending",
      );
      if (resends.length > RESENDS) report("in doubt, yet sent again too often", `${id}: ${resends.length} times`);
      if (isOnce && its.length > 1) report(`${request.onAmbiguous}, yet sent twice`, `${id}: ${its.length} calls`);
    }
  },
};

function checkCalls(
  id: string,
  calls: ProviderCall[],
  attempts: Map<number | null, EventRow>,
  report: (rule: string, example: string) => void,
): void {
  if (calls.length > attempts.size) {
    report("more calls than attempts", `${id}: ${calls.length} calls, ${attempts.size} attempts`);
  }
  const lastCall = Math.max(...calls.map(({ attempt }) => attempt));
  for (const { attempt } of calls) {
    const outcome = attempts.get(attempt)?.outcome ?? "none";
    if (UNSENT.includes(outcome)) report("taken, but recorded as not sent", `${id}, attempt ${attempt}: ${outcome}`);
    if (attempt < lastCall && !UNSURE.includes(outcome)) {
      report("sent again without a reason", `${id}, attempt ${attempt}: ${outcome}`);
    }
  }
  const taken = new Set(calls.map(({ attempt }) => attempt));
  for (const [attempt, { outcome }] of attempts) {
    if (outcome === "accepted" && !taken.has(attempt ?? 0)) {
      report("recorded as sent, but the provider has not seen it", `${id}, attempt ${attempt}`);
    }
  }
}

/** Between a worker's look at the clock and its send. */
const SCHEDULING_MS = 200;

export const inTime: Check = {
  guarantee: "G13",
  promise: "nothing is claimed before it is due by the database's clock, nothing is sent after it expired",
  run({ notifications, journal, sends, faults }, report) {
    const rows = new Map(notifications.map((row) => [row.id, row]));
    for (const { op, place, id, at } of journal) {
      const dueAt = rows.get(id)?.dueAt;
      if (op === "insert" && place === "leased" && dueAt && at < dueAt)
        report("claimed too early", `${id}: ${dueAt - at} ms`);
    }
    for (const { id, pid, at } of sends) {
      const lateMs = at - (rows.get(id)?.expiresAt ?? Number.POSITIVE_INFINITY);
      const wasFrozen = faults.some(
        (one) =>
          one.kind === "freeze worker" && one.pid === pid && at >= one.at && at <= (one.until ?? 0) + SCHEDULING_MS,
      );
      if (lateMs > SCHEDULING_MS && !wasFrozen)
        report("sent after it had expired", `${id}: ${Math.round(lateMs)} ms late`);
    }
  },
};

/** The half of the backoff that no jitter takes away, as the contract has it. */
function floorMs(attempt: number, { maxBackoffMs, firstBackoffMs, backoffMultiplier }: RetryPolicy): number {
  return Math.min(maxBackoffMs, firstBackoffMs * backoffMultiplier ** (attempt - 1)) / 2;
}

/** A settlement's due time and its event's are read from the clock one after the other, in one statement. */
const STATEMENT_MS = 20;

export const retriesEnd: Check = {
  guarantee: "G14",
  promise: "attempts ≤ allowed, numbered without gaps; waits ≥ half the backoff; nobody gives up too early",
  run({ notifications, events, journal, settings }, report) {
    const eventsOf = groupBy(
      events.filter(({ type }) => type === "attempt"),
      ({ id }) => id,
    );
    const claimsOf = groupBy(
      journal.filter(({ op, place }) => op === "insert" && place === "leased"),
      ({ id }) => id,
    );
    for (const row of notifications) {
      const policy = policyFor(row, settings.retry);
      const attempts = eventsOf.get(row.id) ?? [];
      for (const [index, { attempt, outcome, to, at }] of attempts.entries()) {
        const number = attempt ?? 0;
        const name = `${row.id}, attempt ${number} of ${policy.maxAttempts}`;
        if (number > policy.maxAttempts) report("more attempts than allowed", name);
        if (number !== index + 1) report("attempts are not numbered in order", name);
        const isRetryable = RETRYABLE.includes(outcome ?? "");
        if (to === "failed" && isRetryable && number < policy.maxAttempts) report("gave up too early", name);
        if (to !== "pending") continue;
        const next = (claimsOf.get(row.id) ?? []).find((claim) => claim.beganAt >= at);
        const waitedMs = (next?.at ?? Number.POSITIVE_INFINITY) - at;
        const least = floorMs(number, policy);
        if (waitedMs < least - STATEMENT_MS) report("tried again too soon", `${name}: ${waitedMs} of ${least} ms`);
      }
    }
  },
};

const policyFor = ({ request }: NotificationRow, defaults: RetryPolicy): RetryPolicy => ({
  ...defaults,
  ...request.retryPolicy,
});
