// Follows the feed and makes callbacks of it: reads on from its position, makes what somebody is to be told, and moves the position, all in one
// transaction. A crash repeats all of it or nothing, and of several processes one does it at a time: whoever finds it taken leaves it.
//
// One follower goes through everything for all tenants. Where it falls behind, whose facts are the most gets a follower apart, from there on to
// where the first one is: so however much one tenant has to be told, the others' callbacks wait for no more than the time in which that is found
// out. Those apart take turns, a page each; who has caught up is followed with the others again.
//
// What cannot be made fails alone, and the rest goes on.

import type pg from "pg";
import { comparePositions, type Fact, type Position } from "#domain/fact.ts";
import type { SecretKeys } from "#domain/sealed.ts";
import { followedTenants } from "#record/callback-facts.ts";
import { readFeed } from "#record/feed.ts";
import {
  endFollower,
  findFollower,
  findFollowersOf,
  moveFollower,
  readFollower,
  skipFollower,
  startFollower,
} from "#record/followers.ts";
import { inTransaction, type Queryable, readClock } from "#store/connection/database.ts";
import { lockAlone } from "#store/leadership.ts";
import type { CallbackFacts } from "#telemetry/callback-facts.ts";
import { callbacksAbout, everybody, type Making } from "./callbacks-about.ts";
import { storeCallbacks } from "./store-callbacks.ts";

export const FOLLOWER = "callbacks";
/** Who makes callbacks besides: whoever waits for all who do waits for these too. */
export const REPLAYS = "replays";

export type CallerWorld = Making & {
  pool: pg.Pool;
  secretKeys: SecretKeys;
  facts: Pick<CallbackFacts, "refused" | "missed" | "followedApart">;
};

/** `lagMs`: how old the last is that was read, where more is left. */
export type Round = { made: number; isAtEnd: boolean; lagMs: number };

/** In one transaction. */
const MOST_FACTS = 1_000;
/** So far behind nobody should be for another's sake. */
const APART_LAG_MS = 10_000;

/** A page of all, and one of whoever is followed apart. Undefined when another process is at it. */
export async function makeCallbacks(world: CallerWorld): Promise<Round | undefined> {
  const alone = <Value>(act: (tx: Queryable) => Promise<Value>) =>
    inTransaction(world.pool, async (tx) => ((await lockAlone(tx, FOLLOWER)) ? act(tx) : undefined));
  const all = await alone((tx) => followAll(tx, world));
  const apart = all && (await alone((tx) => followApart(tx, world, all)));
  if (!all || !apart) return all;
  return {
    made: all.made + apart.made,
    isAtEnd: all.isAtEnd && apart.isAtEnd,
    lagMs: Math.max(all.lagMs, apart.lagMs),
  };
}

const apartName = (tenant: number): string => `${FOLLOWER} ${tenant}`;
const tenantApart = (name: string): number => Number(name.slice(FOLLOWER.length + 1));

/** How far a tenant's callbacks have been made; undefined where nobody has begun. */
export const toldUpTo = (db: Queryable, tenant: number): Promise<Position | undefined> =>
  findFollower(db, [apartName(tenant), FOLLOWER]);

async function followAll(tx: Queryable, world: CallerWorld): Promise<Round> {
  const after = await readFollower(tx, FOLLOWER);
  const apart = new Set((await findFollowersOf(tx, FOLLOWER)).map(({ name }) => tenantApart(name)));
  const page = await readPage(tx, after, apart);
  if (page.kind === "reset") return missed(tx, FOLLOWER, page, world);
  const ageMs = await ageOf(tx, page.facts.at(-1));
  const heavy = !page.isAtEnd && ageMs >= APART_LAG_MS ? mostOf(page.facts) : undefined;
  if (heavy !== undefined) {
    await startFollower(tx, apartName(heavy), after);
    world.facts.followedApart(heavy);
  }
  const facts = page.facts.filter(({ tenant }) => tenant !== heavy);
  const { made, next } = await make(tx, facts, page.next, world);
  await moveFollower(tx, FOLLOWER, next);
  const isAtEnd = page.isAtEnd && next === page.next;
  return { made, isAtEnd, lagMs: isAtEnd ? 0 : ageMs };
}

/** Whoever asked for the first time between two looks has perhaps something on the page that was read without it. */
async function readPage(tx: Queryable, after: Position, apart: ReadonlySet<number>): ReturnType<typeof readFeed> {
  for (let tenants = await followedTenants(tx); ; ) {
    const together = tenants.filter((tenant) => !apart.has(tenant));
    const page = await readFeed(tx, { after, limit: MOST_FACTS, tenant: together });
    const known = tenants.length;
    tenants = await followedTenants(tx);
    if (tenants.length === known) return page;
  }
}

function mostOf(facts: readonly Fact[]): number | undefined {
  const counts = new Map<number, number>();
  for (const { tenant } of facts) counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}

/** Whose turn is the longest ago; undefined where nobody is followed apart. Up to where all are, and no further: what comes then is told to all together. */
async function followApart(tx: Queryable, world: CallerWorld, all: Round): Promise<Round | undefined> {
  const [one] = await findFollowersOf(tx, FOLLOWER);
  if (!one) return undefined;
  const { name } = one;
  const tenant = tenantApart(name);
  const end = await readFollower(tx, FOLLOWER);
  const page = await readFeed(tx, { after: one, limit: MOST_FACTS, tenant });
  if (page.kind === "reset") return missed(tx, name, page, world);
  const facts = page.facts.filter(({ position }) => comparePositions(position, end) <= 0);
  const isLast = page.isAtEnd || comparePositions(page.next, end) >= 0;
  const { made, next } = await make(tx, facts, isLast ? end : page.next, world);
  const isAtEnd = isLast && next === end;
  // While all are behind, those that it has passed by are not to be found on their pages again.
  if (isAtEnd && all.isAtEnd) await endFollower(tx, name);
  else await moveFollower(tx, name, next);
  return { made, isAtEnd, lagMs: isAtEnd ? 0 : await ageOf(tx, facts.at(-1)) };
}

async function make(tx: Queryable, facts: readonly Fact[], end: Position, world: CallerWorld) {
  const audience = await everybody(tx, facts, world.secretKeys);
  const { callbacks, next } = await callbacksAbout(tx, facts, end, audience, world);
  return { made: await storeCallbacks(tx, callbacks, world.facts), next };
}

/** It was so far behind that something was taken which it had not read. */
async function missed(
  tx: Queryable,
  name: string,
  { reason, next }: { reason: string; next: Position },
  { facts }: CallerWorld,
): Promise<Round> {
  facts.missed(reason);
  await skipFollower(tx, name, next);
  return { made: 0, isAtEnd: false, lagMs: 0 };
}

const ageOf = async (tx: Queryable, fact: Fact | undefined): Promise<number> =>
  fact ? (await readClock(tx)).getTime() - fact.at.getTime() : 0;
