// Accepted means kept, nothing comes from nowhere, and the ledger balances.

import { isDeepStrictEqual } from "node:util";
import { ENDINGS } from "#domain/status.ts";
import { type Check, type EventRow, groupBy, type History, type Promised } from "../history.ts";

const ENDS: ReadonlySet<string> = new Set(ENDINGS);

/** How many endings the events add up to; one that leads away from an ending takes it back. */
export const endingsOf = (events: readonly EventRow[]): number =>
  events.reduce((sum, { from, to }) => sum + Number(ENDS.has(to)) - Number(from !== null && ENDS.has(from)), 0);

export const kept: Check = {
  guarantee: "G1",
  promise: "accepted means kept: one place at a time, one ending at the end; lost answers wholly there or absent",
  run(history, report) {
    const stored = groupBy(history.notifications, ({ request }) => request.idempotencyKey ?? "");
    const events = groupBy(history.events, ({ id }) => id);
    const places = groupBy(history.waiting, ({ id }) => id);
    const names = new Map(history.tenants.map(({ id, name }) => [id, name]));

    for (const { key, tenant, request, answer } of history.promised) {
      const rows = stored.get(key) ?? [];
      if (rows[0] && names.get(rows[0].tenant) !== tenant) report("stored for another tenant", `${key}: ${rows[0].id}`);
      if (rows.length > 1) report("a key made several notifications", `${key}: ${rows.map(({ id }) => id)}`);
      // Through SQL fields come in another order.
      if (rows[0] && !isDeepStrictEqual(rows[0].request, request)) {
        report("stored with another content", `${key}: ${rows[0].id}`);
      }
      if (answer.kind === "refused" && rows.length > 0) report("refused, yet stored", `${key}: ${answer.code}`);
      if (answer.kind !== "acknowledged") continue;
      for (const id of answer.ids) {
        if (rows[0]?.id !== id) report("acknowledged, but not there", `${key}: ${id}, there is ${rows[0]?.id}`);
      }
    }
    for (const [call, members] of groupBy(history.promised, ({ call }) => call)) {
      if (members.some(({ answer }) => answer.kind !== "unknown")) continue;
      const there = members.flatMap(({ key }) => stored.get(key) ?? []);
      const acceptedAt = Math.max(...there.map((row) => row.acceptedAt));
      // In a batch each stands or falls by itself: what had expired on its way was refused, though nobody was told.
      const expected = members.filter(({ key, request: { expiresAt } }) => {
        const hadExpired = expiresAt !== undefined && Date.parse(expiresAt) <= acceptedAt;
        return stored.has(key) || !hadExpired;
      });
      if (there.length > 0 && there.length < expected.length) {
        report("half of a request is there", `${call}: ${there.length} of ${expected.length}`);
      }
    }

    for (const { id, status } of history.notifications) {
      const waits = places.get(id)?.length ?? 0;
      const endings = endingsOf(events.get(id) ?? []);
      if (waits + endings !== 1) report("not in exactly one place", `${id}: waits ${waits}, ended ${endings} times`);
      const last = events.get(id)?.at(-1)?.to;
      if (waits === 0 && last !== status) report("the status is not what the record says", `${id}: ${status}, ${last}`);
    }
    for (const { id, answer } of history.cancelled) {
      const last = events.get(id)?.at(-1)?.to;
      if (answer === "cancelled" && last !== "cancelled") report("cancelled, yet it went on", `${id}: ${last}`);
    }
    findDoublePlaces(history, report);
  },
};

/** Follows every row through the queue tables, transaction by transaction. */
function findDoublePlaces({ journal }: History, report: (rule: string, example: string) => void): void {
  for (const [seq, changes] of groupBy(journal, ({ seq }) => seq)) {
    const places = new Map<string, number>();
    for (const [index, { op, place, xid, id }] of changes.entries()) {
      const step = op === "insert" ? 1 : op === "delete" ? -1 : 0;
      places.set(place, (places.get(place) ?? 0) + step);
      if (changes[index + 1]?.xid === xid) continue;
      const there = [...places.values()].reduce((sum, count) => sum + count, 0);
      if (there > 1) report("in two places at once", `seq ${seq}, ${id}`);
    }
  }
}

export const fromSomewhere: Check = {
  guarantee: "G2",
  promise: "every provider call belongs to an accepted notification, every notification to a request",
  run({ notifications, promised, sends, calls }, report) {
    const stored = new Map(notifications.map((row) => [row.id, row]));
    const asked = new Map<string, Promised>(promised.map((one) => [one.key, one]));
    for (const { id, attempt } of sends) if (!stored.has(id)) report("sent, but never accepted", `${id}, ${attempt}`);
    for (const { id, attempt } of calls) if (!stored.has(id)) report("taken, but never accepted", `${id}, ${attempt}`);
    for (const { id, request } of notifications) {
      if (!asked.has(request.idempotencyKey ?? "")) report("stored, but nobody asked for it", id);
    }
  },
};

export const balanced: Check = {
  guarantee: "G16",
  promise: "the ledger balances at every moment it was read, and at the end",
  run({ ledgers, tenants, notifications, waiting, events }, report) {
    const ids = new Map(tenants.map(({ id, name }) => [name, id]));
    for (const [name, readings] of groupBy(ledgers, ({ tenant }) => tenant)) {
      let accepted = 0;
      for (const ledger of readings) {
        if (!ledger.isBalanced) report("a reading does not balance", ledger.body);
        if (ledger.accepted < accepted) report("accepted shrinks", `${name}: ${accepted}, then ${ledger.accepted}`);
        accepted = ledger.accepted;
      }
      const there = notifications.filter(({ tenant }) => tenant === ids.get(name)).length;
      if (accepted > there) report("the ledger counts what is not there", `${name}: ${accepted} > ${there}`);
    }
    const sum = waiting.length + endingsOf(events);
    if (sum !== notifications.length) report("the tables do not balance", `${notifications.length} are not ${sum}`);
  },
};
