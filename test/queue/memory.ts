// A queue in memory, with a record of its own: to show that the contract says nothing of tables. No engine to run.

import { randomUUID } from "node:crypto";
import type { Attempt, Ended, Lease, Settlement } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { PRIORITIES, type Priority, priorityOf, rankOf } from "#domain/priority.ts";
import type { Status } from "#domain/status.ts";
import type { Moved, Queue, Takes } from "#queue/queue.ts";

export type Kept = {
  seq: number;
  tenant: number;
  id: string;
  rank: number;
  request: NotificationRequest;
  acceptedAtMs: number;
  dueAtMs: number | undefined;
  expiresAtMs: number | undefined;
  attempt: number;
  /** An ending, or where it waits: in its lane, for its time, in somebody's hands. */
  at: "lane" | "time" | "hands" | Exclude<Status, "pending" | "queued" | "processing">;
  outcomes: { outcome: string; attempt: number }[];
  postponed: number;
  isSilent: boolean;
  waitsFor?: readonly string[] | undefined;
};
/** What a lease's handle is here; an attempt's is what is kept of its notification. */
type Hand = { worker: number; until: number; kept: Set<Kept> };

const ALL = { ranks: PRIORITIES.map((_, rank) => rank) };
const RETRYABLE = ["failed", "ambiguous", "expired", "cancelled"];

export function createMemoryQueue() {
  const all = new Map<string, Kept>();
  const hands = new Set<Hand>();
  const pauses = new Map<string, Date | undefined>();
  const tenants: { name: string; weight: number }[] = [{ name: "default", weight: 1 }];
  /** Of each lane, whose turn is next and what it has had of it. */
  const turns = new Map<number, { tenant: number; spent: number }>();
  let lastSeq = 0;

  const nameOf = (tenant: number) => tenants[tenant - 1]?.name ?? "";

  const isPaused = (kind: string, name: string) => {
    const key = `${kind} ${name}`;
    return pauses.has(key) && (pauses.get(key) ?? new Date(8.64e15)).getTime() > Date.now();
  };
  const isOpen = ({ rank, tenant, request: { channel } }: Kept) =>
    !isPaused("lane", priorityOf(rank)) && !isPaused("channel", channel) && !isPaused("tenant", nameOf(tenant));
  const isTaken = (takes: Takes, { tenant, request: { channel, region } }: Kept) =>
    (takes.channels?.includes(channel) ?? true) &&
    (takes.tenants?.includes(nameOf(tenant)) ?? true) &&
    !takes.notTenants?.includes(tenant) &&
    (region === undefined || (takes.regions?.includes(region) ?? true));

  /** By turns, each as long as the tenant's weight. */
  function deal(rank: number, some: Kept[], count: number): Kept[] {
    const left = [...some];
    const dealt: Kept[] = [];
    while (dealt.length < count && dealt.length < some.length) {
      const { tenant: first, spent } = turns.get(rank) ?? { tenant: 1, spent: 0 };
      const tenant = ((first - 1) % tenants.length) + 1;
      const next = left.findIndex((kept) => kept.tenant === tenant);
      const one = next < 0 ? undefined : left.splice(next, 1)[0];
      if (one) dealt.push(one);
      const isOver = !one || spent + 1 >= (tenants[tenant - 1]?.weight ?? 1);
      turns.set(rank, isOver ? { tenant: tenant + 1, spent: 0 } : { tenant, spent: spent + 1 });
    }
    return dealt;
  }

  const find = (tenant: number, id: string) => [all.get(id)].find((kept) => kept?.tenant === tenant);
  const isDue = ({ at, dueAtMs = 0 }: Kept) => at === "time" && dueAtMs <= Date.now();
  const waits = ({ at }: Kept) => at === "lane" || at === "time";
  const statusOf = (kept: Kept): Status => {
    if (kept.at === "hands") return "processing";
    if (kept.at === "lane" || isDue(kept)) return "queued";
    return kept.at === "time" ? "pending" : kept.at;
  };
  const ofLane = (rank: number) => [...all.values()].filter((kept) => kept.rank === rank);
  const ready = (rank: number) => [
    ...ofLane(rank)
      .filter(isDue)
      .sort((a, b) => (a.dueAtMs ?? 0) - (b.dueAtMs ?? 0)),
    ...ofLane(rank)
      .filter(({ at }) => at === "lane")
      .sort((a, b) => a.seq - b.seq),
  ];

  function hold(worker: number, leaseMs: number, some: Kept[]): Attempt[] {
    const hand: Hand = { worker, until: performance.now() + leaseMs, kept: new Set(some) };
    if (some.length > 0) hands.add(hand);
    const [claimedAt, claimedAtMs] = [performance.now(), Date.now()];
    const lease: Lease = {
      handle: hand,
      meanBytes: 0,
      endsAt: hand.until,
      claimedAtMs,
      claimedAt,
      answeredAt: claimedAt,
    };
    return some.map((kept) => {
      const { seq, tenant, id, rank, request, expiresAtMs } = kept;
      kept.at = "hands";
      const sinceMs = kept.dueAtMs ?? kept.acceptedAtMs;
      return { seq, lease, handle: kept, tenant, id, rank, number: kept.attempt, request, sinceMs, expiresAtMs };
    });
  }

  function end({ attempt: { lease, handle }, settlement, line }: Ended): boolean {
    const [hand, kept] = [lease.handle as Hand, handle as Kept];
    if (!hands.has(hand) || !hand.kept.delete(kept)) return false;
    if (hand.kept.size === 0) hands.delete(hand);
    if (line) kept.outcomes.push({ outcome: line.outcome, attempt: kept.attempt });
    putAway(kept, settlement);
    return true;
  }

  function putAway(kept: Kept, settlement: Settlement): void {
    if (settlement.to !== "pending" && settlement.to !== "queued") {
      kept.at = settlement.to;
      return;
    }
    const isLater = settlement.to === "pending";
    if (!isLater || !settlement.spendsAttempt) kept.attempt--;
    kept.at = isLater ? "time" : "lane";
    if (isLater) kept.dueAtMs = Date.now() + settlement.waitMs;
    kept.waitsFor = isLater ? settlement.waitsFor : undefined;
  }

  const depths = (tenant?: number) => {
    const asked = (some: Kept[]) => some.filter((kept) => tenant === undefined || kept.tenant === tenant);
    const lanes = PRIORITIES.map((lane, rank) => [lane, asked(ready(rank))] as const);
    const since = lanes.flatMap(([, some]) =>
      some.map((kept) => (isDue(kept) ? kept.dueAtMs : kept.acceptedAtMs) ?? 0),
    );
    return {
      depth: Object.fromEntries(lanes.map(([lane, some]) => [lane, some.length])) as { [lane in Priority]: number },
      processing: asked([...all.values()]).filter(({ at }) => at === "hands").length,
      scheduled: asked([...all.values()]).filter((kept) => statusOf(kept) === "pending").length,
      oldestAgeMs: since.length > 0 ? Math.max(0, Date.now() - Math.min(...since)) : 0,
    };
  };

  const queue = {
    name: "memory",
    async claim(worker, count, leaseMs, takes: Takes = ALL) {
      const some: Kept[] = [];
      for (const rank of takes.ranks) {
        const open = ready(rank).filter((kept) => isOpen(kept) && isTaken(takes, kept));
        some.push(...deal(rank, open, count - some.length));
      }
      for (const kept of some) kept.attempt++;
      return hold(worker, leaseMs, some);
    },
    settle: async (batch) => batch.map(end),
    async extend(worker, leases, leaseMs) {
      const now = performance.now();
      const isOurs = (hand: Hand) => hands.has(hand) && hand.worker === worker && hand.until > now;
      const kept = leases.filter(({ handle }) => isOurs(handle as Hand));
      for (const { handle } of kept) (handle as Hand).until = now + leaseMs;
      return kept;
    },
    async sweep(worker, count, leaseMs) {
      const taken: (Attempt & { heldBy: number })[] = [];
      for (const hand of [...hands].filter(({ until }) => until <= performance.now())) {
        if (taken.length >= count) break;
        hands.delete(hand);
        taken.push(...hold(worker, leaseMs, [...hand.kept]).map((one) => ({ ...one, heldBy: hand.worker })));
      }
      return taken;
    },
    async notePostponed(_worker, batch) {
      for (const { attempt, postponed } of batch) {
        const [hand, kept] = [attempt.lease.handle as Hand, attempt.handle as Kept];
        const isSilent = postponed.silentMs !== undefined;
        if (!hands.has(hand) || !hand.kept.has(kept) || (isSilent ? kept.isSilent : kept.postponed > 0)) continue;
        kept.postponed++;
        kept.isSilent ||= isSilent;
      }
    },
    async nextDue() {
      const some = [...all.values()].filter((kept) => kept.at === "time" && isOpen(kept));
      const nowMs = Date.now();
      const ends = [...pauses.values()].map((end) => end?.getTime() ?? 0).filter((end) => end > nowMs);
      const next = Math.min(...ends, ...some.filter((kept) => !isDue(kept)).map(({ dueAtMs = 0 }) => dueAtMs));
      return { nowMs, hasDue: some.some(isDue), inMs: Number.isFinite(next) ? next - nowMs : undefined };
    },
    async cancel(_db, tenant, id) {
      const kept = find(tenant, id);
      if (!kept || !waits(kept)) return false;
      kept.at = "cancelled";
      return true;
    },
    async cancelAll(_db, tenant, ids) {
      const gone = ids.filter((id) => {
        const kept = find(tenant, id);
        return kept !== undefined && waits(kept);
      });
      for (const id of gone) Object.assign(find(tenant, id) ?? {}, { at: "cancelled" });
      return gone;
    },
    async move(_db, tenant, id, { dueAt, expiresAt, rank }): Promise<Moved> {
      const kept = find(tenant, id);
      if (!kept) return { kind: "unknown" };
      if (!waits(kept)) return { kind: "over", status: statusOf(kept) };
      const dueAtMs = dueAt === undefined ? kept.dueAtMs : Date.parse(dueAt);
      const expiresAtMs = expiresAt === undefined ? kept.expiresAtMs : expiresAt ? Date.parse(expiresAt) : undefined;
      if (expiresAtMs !== undefined && expiresAtMs <= Math.max(dueAtMs ?? 0, Date.now()))
        return { kind: "refused", reason: "it would be over" };
      Object.assign(kept, { dueAtMs, expiresAtMs, rank: rank ?? kept.rank });
      kept.at = dueAtMs !== undefined && dueAtMs > Date.now() ? "time" : "lane";
      const instant = (ms: number | undefined) => (ms === undefined ? null : new Date(ms));
      const priority = priorityOf(kept.rank);
      return {
        kind: "done",
        status: statusOf(kept),
        priority,
        dueAt: instant(dueAtMs),
        expiresAt: instant(expiresAtMs),
      };
    },
    async retry(_db, tenant, ids) {
      const ended = ids.filter((id) => RETRYABLE.includes(find(tenant, id)?.at ?? ""));
      for (const id of ended) Object.assign(all.get(id) as Kept, { at: "lane", attempt: 0 });
      return ended;
    },
    async expire(_db, count) {
      const isLate = ({ expiresAtMs = Number.POSITIVE_INFINITY }: Kept) => expiresAtMs <= Date.now();
      const late = [...all.values()].filter((kept) => waits(kept) && isLate(kept)).slice(0, count);
      for (const kept of late) kept.at = "expired";
      return late.length;
    },
    async pause(_db, { kind, name }, { until }) {
      pauses.set(`${kind} ${name}`, until);
    },
    async resume(_db, { kind, name }) {
      const wasPaused = isPaused(kind, name);
      pauses.delete(`${kind} ${name}`);
      return wasPaused;
    },
    // Providers are paused in PostgreSQL's tables: here none is.
    async bringBack(_db, count) {
      const some = [...all.values()].filter(({ at, waitsFor }) => at === "time" && waitsFor).slice(0, count);
      for (const kept of some) Object.assign(kept, { at: "lane", dueAtMs: undefined, waitsFor: undefined });
      return some.length;
    },
    depth: async (_db, tenant) => depths(tenant),
    depthOf: async (_db, tenant, most) => {
      const lanes = (isOne: (kept: Kept) => boolean) => {
        const some = [...all.values()].filter((kept) => kept.tenant === tenant && isOne(kept));
        const count = (rank: number) => Math.min(most + 1, some.filter((kept) => kept.rank === rank).length);
        return Object.fromEntries(PRIORITIES.map((lane, rank) => [lane, count(rank)])) as {
          [lane in Priority]: number;
        };
      };
      const { oldestAgeMs } = depths(tenant);
      const standing = (status: string) => lanes((kept) => statusOf(kept) === status);
      const [queued, scheduled, processing] = [standing("queued"), standing("pending"), standing("processing")];
      return { queued, scheduled, processing, isPartial: false, oldestAgeMs };
    },
    figures: async () => depths(),
    untaken: async () => [],
    hasReady: async () => [...all.values()].some(({ at }) => at === "lane"),
  } satisfies Queue;

  return {
    queue,
    find: (id: string) => {
      const kept = all.get(id);
      return kept && { ...kept, status: statusOf(kept) };
    },
    tenant: (name: string, weight: number) => tenants.push({ name, weight }),
    offer(request: NotificationRequest, tenant: number): string {
      const [id, nowMs, dueAtMs] = [randomUUID(), Date.now(), instantOf(request.scheduledFor)];
      const at = dueAtMs !== undefined && dueAtMs > nowMs ? "time" : "lane";
      const rank = rankOf[request.priority ?? "normal"];
      const times = { acceptedAtMs: nowMs, dueAtMs, expiresAtMs: instantOf(request.expiresAt) };
      const kept = {
        seq: ++lastSeq,
        tenant,
        id,
        rank,
        request,
        ...times,
        attempt: 0,
        at,
        outcomes: [],
        postponed: 0,
        isSilent: false,
      };
      all.set(id, kept as Kept);
      return id;
    },
    clear() {
      for (const one of [all, hands, pauses, turns]) one.clear();
    },
  };
}

const instantOf = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text));
