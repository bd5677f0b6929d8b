// What a claim may take, in the database's numbers, and who has which weight: asked before an engine is.
//
// It is remembered for a moment where nothing is paused and every engine is in use: the claim itself asks again, and what it refuses goes back to the engine.

import type { EngineName } from "#domain/handoff.ts";
import type { Bounds } from "#queue/engine.ts";
import type { Takes } from "#queue/queue.ts";
import type { Queryable } from "#store/connection/database.ts";

/** `inUse`: engines in which something waits or may come to. */
export type Open = { bounds: Bounds; weights: ReadonlyMap<number, number>; inUse: readonly EngineName[] };

/** Who takes other things in every claim is not remembered for all of them. */
const MOST = 20;

const OPEN = `
  select o.lanes, (o.bounds).channels, (o.bounds).tenants, (o.bounds).not_tenants as "notTenants", (o.bounds).regions,
    exists (select from carillon.pauses where kind <> 'provider') as "isPaused",
    (select json_agg(json_build_array(id, weight)) from carillon.tenants where weight <> 1) as weights,
    array(select n from unnest(array['redis', 'sqs']) as n where exists (select from carillon.engine e where e.name = n)
      or exists (select from carillon.handoffs h where h.engine = n)) as "inUse"
  from carillon.queue_open($1, $2, '{}', $3) o`;

type Row = Omit<Bounds, "ranks"> & {
  lanes: number[];
  isPaused: boolean;
  weights: [number, number][] | null;
  inUse: EngineName[];
};

/** It goes by what it knew for so long at most. */
export function createBounds(
  db: Queryable,
  monotonic: () => number,
  { knownMs, engines }: { knownMs: number; engines: readonly { name: EngineName }[] },
) {
  const known = new Map<string, { until: number; open: Row }>();

  async function look({ channels, tenants, regions }: Takes): Promise<Row> {
    const key = JSON.stringify([channels, tenants, regions]);
    const held = known.get(key);
    if (held && held.until > monotonic()) return held.open;
    const { rows } = await db.query<Row>({ name: "carillon-open", text: OPEN, values: [channels, tenants, regions] });
    const open = rows[0] as Row;
    known.delete(key);
    if (known.size >= MOST) known.clear();
    // One that is not in use may be from now on, and who is woken for that must not find it forgotten.
    if (!open.isPaused && engines.every(({ name }) => open.inUse.includes(name)))
      known.set(key, { until: monotonic() + knownMs, open });
    return open;
  }

  return {
    async of(takes: Takes): Promise<Open> {
      const { lanes, channels, tenants, regions, notTenants, weights, inUse } = await look(takes);
      return {
        bounds: {
          ranks: takes.ranks.filter((rank) => lanes.includes(rank)),
          channels,
          tenants,
          regions,
          notTenants: [...(notTenants ?? []), ...(takes.notTenants ?? [])],
        },
        weights: new Map(weights ?? []),
        inUse,
      };
    },
    /** Something was refused that should not have been taken. */
    forget: () => known.clear(),
  };
}
