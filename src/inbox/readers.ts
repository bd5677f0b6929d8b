// Who has a stream open in this process, by inbox and by tenant. State: the readers.

import type { Inbox } from "#domain/inbox.ts";
import type { Reader } from "./reader.ts";

export type Readers = {
  add(reader: Reader): void;
  /** False when it had gone before. */
  remove(reader: Reader): boolean;
  of(inbox: Inbox): ReadonlySet<Reader>;
  /** Those of each inbox together. */
  byInbox(): Iterable<ReadonlySet<Reader>>;
  all(): Iterable<Reader>;
  size(): number;
  /** Whoever has most streams gives up the oldest of them for a tenant that has fewer; nobody for one that has as many. */
  givingWayTo(tenant: number): Reader | undefined;
};

const NOBODY: ReadonlySet<Reader> = new Set();

const keyOf = ({ tenant, userId }: Inbox): string => `${tenant} ${userId}`;

export function createReaders(): Readers {
  const readers = new Set<Reader>();
  const inboxes = new Map<string, Set<Reader>>();
  /** The oldest of a tenant first. */
  const tenants = new Map<number, Set<Reader>>();
  return {
    add(reader) {
      readers.add(reader);
      add(inboxes, keyOf(reader.inbox), reader);
      add(tenants, reader.inbox.tenant, reader);
    },
    remove(reader) {
      if (!readers.delete(reader)) return false;
      drop(inboxes, keyOf(reader.inbox), reader);
      drop(tenants, reader.inbox.tenant, reader);
      return true;
    },
    of: (inbox) => inboxes.get(keyOf(inbox)) ?? NOBODY,
    byInbox: () => inboxes.values(),
    all: () => readers,
    size: () => readers.size,
    givingWayTo(tenant) {
      const most = [...tenants.values()].reduce((one, other) => (other.size > one.size ? other : one));
      const [oldest] = most;
      return (tenants.get(tenant)?.size ?? 0) + 1 < most.size ? oldest : undefined;
    },
  };
}

function add<Key>(sets: Map<Key, Set<Reader>>, key: Key, reader: Reader): void {
  sets.set(key, (sets.get(key) ?? new Set()).add(reader));
}

function drop<Key>(sets: Map<Key, Set<Reader>>, key: Key, reader: Reader): void {
  const set = sets.get(key);
  set?.delete(reader);
  if (set?.size === 0) sets.delete(key);
}
