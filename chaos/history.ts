// What a run leaves behind for the checker: everything that was promised, stored, sent, recorded and broken.
//
// Instants are milliseconds since 1970. All clocks are the machine's own, so those of the database, of the workers
// and of the harness compare; what is not exact about that is said where it matters.

import type { FifoKey } from "#domain/endpoint.ts";
import type { Event } from "#domain/event.ts";
import type { PlaceName } from "#domain/handoff.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { RetryPolicy } from "#domain/retry-policy.ts";
import type { Status } from "#domain/status.ts";

/** What one request to send was told, over all tries with the same idempotency key. */
export type Promised = {
  /** The requests of one batch share it. */
  call: string;
  key: string;
  /** By name. */
  tenant: string;
  request: NotificationRequest;
  answer: { kind: "acknowledged"; ids: string[] } | { kind: "refused"; code: string } | { kind: "unknown" };
};

export type Cancelled = { id: string; at: number; answer: "cancelled" | "too-late" | "unknown" };

/** Of one tenant. */
export type LedgerReading = { tenant: string; at: number; isBalanced: boolean; accepted: number; body: string };

export type TenantRow = { id: number; name: string; weight: number };

export type NotificationRow = {
  id: string;
  seq: number;
  tenant: number;
  priority: number;
  acceptedAt: number;
  dueAt: number | null;
  expiresAt: number | null;
  request: NotificationRequest;
  status: Status;
};

export type EventRow = {
  id: string;
  /** Grows from event to event of a notification; an acceptance has 0. */
  number: number;
  at: number;
  /** The transaction that wrote it; an acceptance is no row of its own. */
  xid: number | null;
  type: Event["type"];
  /** None of an acceptance. */
  from: Status | null;
  to: Status;
  attempt: number | null;
  token: number | null;
  worker: number | null;
  startedAt: number | null;
  outcome: string | null;
  /** In US dollars, as far as it is known. */
  cost: number | null;
  reason: string | null;
};

/** `handed`: to an engine. */
export type Place = "ready" | "leased" | "later" | "handed";
export type WaitingRow = { place: Place; seq: number; id: string };
export type WorkerRow = { id: number; pid: number };

/** A change of a queue table, noted by a trigger in the same transaction: it is there exactly if the change is. */
export type Change = {
  n: number;
  xid: number;
  op: "insert" | "update" | "delete";
  place: Place;
  /** When the statement began, when the change was noted, and when the transaction was committed. */
  beganAt: number;
  at: number;
  committedAt: number;
  seq: number;
  id: string;
  tenant: number;
  priority: number;
  attempt: number;
  /** Of leased only; of a deletion, as they were. */
  token: number | null;
  worker: number | null;
  until: number | null;
  /** Of updates of leased: as they were before. */
  oldToken: number | null;
  oldUntil: number | null;
  /** Of insertions into later: when it may be claimed. */
  due: number | null;
};

/** A send begins: written by a hook of the test provider, in the same turn of the event loop as the lease's check. */
export type Send = { id: string; attempt: number; pid: number; at: number };
/** The provider took it: one line of the test provider's log. */
export type ProviderCall = { id: string; attempt: number; pid: number; at: number };

/** A fact as it was told. */
export type FactRow = { id: string; type: string; notificationId: string };

/** What one life of a follower was told, in order; `after` is the fact that it had stored before, `refusal` an answer that was none. */
export type Reading = {
  follower: string;
  tenant: string;
  types?: string[];
  after: string | undefined;
  facts: FactRow[];
  refusal?: string;
};

/** A transaction that had something of the queue locked and was rolled back: the journal knows nothing of it. `until`: it was gone by then. */
export type RolledBack = { xid: number; beganAt: number; until: number; statement: string };

/** How often something happened and what it cost, as it was counted. What there is none of is ''. */
export type TallyRow = {
  tenant: number;
  channel: string;
  event: string;
  was: string;
  becomes: string;
  outcome: string;
  count: number;
  cost: number;
};

/** Where callbacks go. Of `requests` `events` is null: each request says which. */
export type CalledEndpoint = {
  id: string;
  /** By name. */
  tenant: string;
  path: string;
  events: string[] | null;
  fifo: FifoKey | null;
  secret: string;
  publicKey: string;
};

/** A callback as it came to its receiver, and what that answered: 0, nothing. */
export type Post = {
  at: number;
  path: string;
  id: string;
  timestamp: string;
  signature: string;
  body: string;
  status: number;
};

/** What the harness did to the system, and what happened to processes without its doing. */
export type Fault = {
  kind: string;
  at: number;
  /** For what lasts. */
  until?: number;
  slot?: string;
  pid?: number;
  statement?: string;
  rows?: number;
};

/** A line of a worker's log; `id` and `attempt` where it is about one. */
export type LogLine = {
  slot: string;
  pid: number;
  at: number;
  level: string;
  message: string;
  error?: string;
  id?: string;
  attempt?: number;
};

export type Settings = {
  seed: number;
  seconds: number;
  workers: number;
  leaseMs: number;
  sweepMs: number;
  /** A send starts only while the lease has this much left. */
  marginMs: number;
  sendTimeoutMs: number;
  /** A worker that is asked to stop gives up after this long. */
  drainMs: number;
  /** What a request's own policy leaves out; each has one. */
  retry: RetryPolicy;
  /** Where ready work waits when it begins. */
  engine: PlaceName;
  mutant: string | undefined;
};

/** What was carried. Of callbacks it is kept apart: they are carried by the same queue, and count among notifications nowhere. */
export type Walk = {
  notifications: NotificationRow[];
  /** In order of time. */
  events: EventRow[];
  waiting: WaitingRow[];
  /** In order of n. */
  journal: Change[];
};

export type History = Walk & {
  settings: Settings;
  promised: Promised[];
  cancelled: Cancelled[];
  ledgers: LedgerReading[];
  tenants: TenantRow[];
  workers: WorkerRow[];
  sends: Send[];
  calls: ProviderCall[];
  /** By tenant, as told from the very start when all was over. */
  feeds: { [tenant: string]: FactRow[] };
  readings: Reading[];
  /** Over all lanes and providers, and all that ever happened. */
  tallies: TallyRow[];
  callbacks: Walk;
  endpoints: CalledEndpoint[];
  posts: Post[];
  faults: Fault[];
  /** In order of time. */
  rolledBack: RolledBack[];
  logs: LogLine[];
  /** When the last fault was over and every process ran again. */
  quietAt: number;
  /** When nothing waited any more; undefined if that never came within `drainBoundMs`. */
  drainedAt: number | undefined;
  drainBoundMs: number;
};

export type Violation = { guarantee: string; rule: string; example: string };

/** Collects violations of one guarantee; the same rule may be broken many times. */
export type Report = (rule: string, example: string) => void;
export type Check = { guarantee: string; promise: string; run(history: History, report: Report): void };

export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
