// Ready work in Redis: entries by flow, taken by turns in one script.
//
// State: none but what Redis has. That is as safe as Redis keeps it, and need not be: what it forgot is offered again (tend.ts).

import { randomUUID } from "node:crypto";
import type { Handoff } from "#domain/handoff.ts";
import { countOf, type Engine, type Entry, entriesOf, NOTHING, type Take, type TakeAsk } from "#queue/engine.ts";
import type { Redis } from "#wire/redis.ts";
import { DONE, OFFER, TAKE } from "./scripts.ts";
import { createTend } from "./tend.ts";

/** Longer than any statement that claims. */
const KEEP_MS = 15_000;
/** Nobody else is served while a script runs. */
const MOST_AT_ONCE = 1_000;
/** Entries, of some 200 bytes each. What is more waits in PostgreSQL, so that nobody fills Redis for the others. */
const MOST_OF_FLOW = 1_000_000;
const MOST_OF_ALL = 2_000_000;

export type RedisEngineOptions = {
  redis: Redis;
  /** Of a flow, and of all. */
  most?: { ofFlow: number; ofAll: number };
  /** Within how many milliseconds whoever takes says what became of it. */
  keepMs?: number;
};

export function createRedisEngine({
  redis,
  most: { ofFlow, ofAll } = { ofFlow: MOST_OF_FLOW, ofAll: MOST_OF_ALL },
  keepMs = KEEP_MS,
}: RedisEngineOptions): Engine {
  const keys = [redis.key("queue:")];

  async function offer(handoffs: readonly Handoff[]): Promise<number[]> {
    const refused: number[] = [];
    for (const some of inPages(handoffs)) {
      const args = [ofFlow, ofAll, ...some.flatMap(argsOf)];
      refused.push(...((await redis.run(OFFER, keys, args)) as string[]).map(Number));
    }
    return refused;
  }

  async function take({ count, next, weights, ...bounds }: TakeAsk): Promise<Take> {
    const id = randomUUID();
    const turns = bounds.ranks.map(next);
    const { ranks, notTenants } = bounds;
    const ask = {
      ranks,
      notTenants,
      // Null is something else in Lua than nothing.
      channels: bounds.channels ?? undefined,
      tenants: bounds.tenants?.toSorted((a, b) => a - b),
      regions: bounds.regions ?? undefined,
      firsts: turns.map(({ tenant }) => tenant),
      spent: turns.map(({ spent }) => spent),
      weights: [...weights],
    };
    const wanted = Math.min(count, MOST_AT_ONCE);
    const text = String(await redis.run(TAKE, keys, [id, keepMs, wanted, JSON.stringify(ask)]));
    if (text === "" || text === FORGOT) return NOTHING;
    const entries = text.split("\n").map(entryOf);
    return {
      entries,
      hasMore: countOf(entries) === wanted,
      done(left, ended) {
        // Unanswered, all of it comes back by itself, and what was claimed is found to be so.
        redis.run(DONE, keys, [id, left.map(lineOf).join("\n"), ...ended]).catch(() => undefined);
      },
    };
  }

  return { name: "redis", offer, take, tend: createTend(redis, keys, offer) } satisfies Engine;
}

const FORGOT = "FORGOT";

/** As many handoffs as come to no more than one script should take on, but one at least. */
function* inPages(handoffs: readonly Handoff[]): Iterable<Handoff[]> {
  let page: Handoff[] = [];
  let size = 0;
  for (const handoff of handoffs) {
    if (page.length > 0 && size + handoff.size > MOST_AT_ONCE) {
      yield page;
      page = [];
      size = 0;
    }
    page.push(handoff);
    size += handoff.size;
  }
  if (page.length > 0) yield page;
}

/** Flow by flow. */
function argsOf(handoff: Handoff): (string | number)[] {
  const flows = new Map<string, (string | number)[]>();
  for (const entry of entriesOf(handoff)) {
    const key = `${entry.tenant}:${entry.pool}`;
    let flow = flows.get(key);
    if (!flow) {
      flow = [entry.tenant, entry.pool, 0];
      flows.set(key, flow);
    }
    flow[2] = (flow[2] as number) + 1;
    flow.push(entry.seq, memberOf(entry));
  }
  return [handoff.number, handoff.rank, flows.size, ...[...flows.values()].flat()];
}

const memberOf = ({ handoff, place, count }: Entry): string => `${handoff} ${place} ${count}`;

const lineOf = (entry: Entry): string => `${entry.rank} ${entry.tenant} ${entry.pool} ${entry.seq} ${memberOf(entry)}`;

function entryOf(line: string): Entry {
  const [rank = 0, tenant = 0, pool = 0, seq = 0, handoff = 0, place = 0, count = 0] = line.split(" ").map(Number);
  return { handoff, place, seq, count, rank, tenant, pool };
}
