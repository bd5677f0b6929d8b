// What a contender has seen of others' Leases, and since when: a Lease may be taken over once the same renewTime has stood
// for its whole duration on our own monotonic clock.
//
// Whoever looks for the first time when its turn comes would have to wait a full duration then, and with many workers each
// turn may come to another. So every worker looks at all Leases now and then, and has seen a dead holder's long before the
// queue gives its work to somebody else.

import type { Lease } from "./kubernetes-leases.ts";

export type Sightings = {
  has(name: string): boolean;
  /** How long its holder may still believe in it. Seeing it counts from now if it was not seen before. */
  leftMs(lease: Lease): number;
  /** All that there were at a version: what is gone by then is forgotten. Answers with those that have stood far too long. */
  seeAll(leases: readonly Lease[], version: number): Lease[];
  forget(name: string): void;
};

type Sighting = { what: string; version: number; firstSeenAt: number };

/** To forget a sighting only delays a takeover. */
const MOST = 10_000;
/** Whose holder is dead and whose notification nobody claims any more. */
const ABANDONED = 10;

export function createSightings(monotonic: () => number): Sightings {
  const seen = new Map<string, Sighting>();

  function see({ name, uid, holder, transitions, renewTime, version }: Lease): Sighting {
    const what = [uid, holder, transitions, renewTime].join(" ");
    const known = seen.get(name);
    // A list may come from a cache and be older than what was read before.
    if (known && (known.what === what || known.version > Number(version))) return known;
    seen.delete(name);
    const [oldest] = seen.keys();
    if (oldest !== undefined && seen.size >= MOST) seen.delete(oldest);
    const sighting = { what, version: Number(version), firstSeenAt: monotonic() };
    seen.set(name, sighting);
    return sighting;
  }
  const endsAt = (lease: Lease, durations = 1) => see(lease).firstSeenAt + durations * lease.durationSeconds * 1000;

  return {
    has: (name) => seen.has(name),
    // Without a holder it was released by somebody who does not delete.
    leftMs: (lease) => (lease.holder ? Math.max(0, endsAt(lease) - monotonic()) : 0),
    seeAll(leases, version) {
      const names = new Set(leases.map(({ name }) => name));
      for (const [name, sighting] of seen) if (!names.has(name) && sighting.version <= version) seen.delete(name);
      return leases.filter((lease) => endsAt(lease, ABANDONED) <= monotonic());
    },
    forget: (name) => void seen.delete(name),
  };
}
