// Limits in Redis: a key each, one script for all who ask at the same time.
//
// What was granted is as safe as what Redis keeps: one that loses its memory grants anew what it had granted. All keys are in one slot of a
// cluster, since a send may need several of them at once.

import { burstOf, intervalMs, type LimitState, PERIODS, type Rate } from "#domain/gcra.ts";
import { rankOf } from "#domain/priority.ts";
import { createGroupCommit } from "#timing/group-commit.ts";
import { type Redis, script } from "#wire/redis.ts";
import type { Demand, Limit, Standing, Taken } from "./limit.ts";
import { AT_ONCE, DELAY, LOOK, TAKE } from "./redis-script.ts";

/** Nobody else is served while a script runs. */
const MOST_AT_ONCE = 100;
/** All over one connection, so that they are reckoned in the order in which they asked. */
const ABREAST = 4;

type Ask = { demands: readonly Demand[]; standing: Standing; patienceMs: number };

const take = script(TAKE);
const delay = script(DELAY);
const look = script(LOOK);

export function createRedisLimit(redis: Redis): Limit {
  const keyOf = (key: string): string => redis.key(`limit:${key}`);
  const shapes = new WeakMap<readonly Rate[], string>();
  /** As the script reads it. */
  const shapeOf = (rates: readonly Rate[]): string => {
    let shape = shapes.get(rates);
    if (!shape) {
      const each = rates.map((rate) => ({
        p: PERIODS.indexOf(rate.per) + 1,
        every: intervalMs(rate),
        burst: burstOf(rate),
      }));
      const text = each.flatMap(({ p, every, burst }) => [p, every, burst]).join(",");
      shape = JSON.stringify({ text, rates: each });
      shapes.set(rates, shape);
    }
    return shape;
  };

  async function reckon(asks: readonly Ask[]): Promise<Taken[]> {
    const places = new Map<string, number>();
    const limits = new Map<string, number>();
    const numbers: number[] = [];
    for (const { demands, standing, patienceMs } of asks) {
      // There is a line for each priority; callbacks have their keys to themselves, and stand in the last.
      numbers.push(standing.seq, Math.min(standing.rank, rankOf.low), patienceMs, demands.length);
      for (const { key, n, rates } of demands) numbers.push(placeIn(places, key), n, placeIn(limits, shapeOf(rates)));
    }
    const keys = [...places.keys()];
    const args = [`[${[...limits.keys()].join(",")}]`, JSON.stringify(numbers)];
    const answer = String(await redis.run(take, keys.map(keyOf), args));
    return answer.split("\n").map((line): Taken => {
      if (line === AT_ONCE) return GRANTED;
      const [isGranted, isFull, ms, place] = line.split(" ").map(Number) as [number, number, number, number];
      return isGranted
        ? { isGranted: true, isFull: isFull === 1, afterMs: ms }
        : { isGranted: false, waitMs: ms, key: keys[place - 1] ?? "" };
    });
  }

  const commits = createGroupCommit<Ask, Taken>({
    abreast: ABREAST,
    maxWaitingRows: Number.POSITIVE_INFINITY,
    maxWaitingBytes: Number.POSITIVE_INFINITY,
    isWaitingFailedToo: true,
    async commit(asks) {
      const taken: Taken[] = [];
      for (let n = 0; n < asks.length; n += MOST_AT_ONCE)
        taken.push(...(await reckon(asks.slice(n, n + MOST_AT_ONCE))));
      return taken;
    },
  });
  return {
    async take(demands, standing, patienceMs) {
      const taken = commits.submitOne({ demands, standing, patienceMs }, 0);
      if (!taken) throw new Error("too many wait for their limits");
      return taken;
    },
    async delay(key, ms) {
      await redis.run(delay, [keyOf(key)], [ms]);
    },
    async look(keys) {
      if (keys.length === 0) return [];
      const [now, ...states] = String(await redis.run(look, keys.map(keyOf), [])).split("\n");
      return states.flatMap((line, n) => (line === "" ? [] : [stateOf(keys[n] as string, line, Number(now))]));
    },
  } satisfies Limit;
}

const GRANTED: Taken = { isGranted: true, isFull: true, afterMs: 0 };

/** From 1, in the order in which they first came. */
function placeIn(places: Map<string, number>, one: string): number {
  const known = places.get(one);
  if (known !== undefined) return known;
  places.set(one, places.size + 1);
  return places.size;
}

function stateOf(key: string, line: string, now: number): LimitState {
  const numbers = line.split(" ").map(Number);
  return { key, tats: numbers.slice(0, 4), blockedUntil: numbers[4] ?? 0, lineAt: numbers.slice(5, 9), now };
}
