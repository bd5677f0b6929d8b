// Tells an endpoint again what happened: from an instant on, as far back as the feed goes, whether it was told then or not. Each has the
// `webhook-id` that it would have had, so that a receiver which has it already knows the copy.
//
// A page in a transaction of its own; whoever asked goes on from where it ended. What the caller has not come to yet is left to it.

import type pg from "pg";
import type { KeyActor } from "#domain/actor.ts";
import { comparePositions, type Fact, type FactType, type Position, writtenPosition } from "#domain/fact.ts";
import { Problem } from "#domain/problems.ts";
import { readFactsOf } from "#record/facts.ts";
import { type FeedPage, type FeedReset, readFeed } from "#record/feed.ts";
import { findFeedSince } from "#record/feed-places.ts";
import { callbacksAbout, type Making, onlyAt } from "#steps/calls/callbacks-about.ts";
import { REPLAYS, toldUpTo } from "#steps/calls/make-callbacks.ts";
import { storeCallbacks } from "#steps/calls/store-callbacks.ts";
import { writeAudit } from "#store/audit.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import { findEndpoint } from "#store/endpoints.ts";
import { lockTogether } from "#store/leadership.ts";
import type { CallbackFacts } from "#telemetry/callback-facts.ts";

export type ReplayWorld = Making & { pool: pg.Pool; facts: Pick<CallbackFacts, "refused"> };

export type Replay = {
  since: Date;
  until?: Date;
  /** Of those that the endpoint is told of. */
  types?: readonly FactType[];
  notificationId?: string;
  /** Where an earlier one ended. */
  after?: Position;
  limit: number;
};
/** `next`, if there is more, is where to go on. */
export type Replayed = { matched: number; replayed: number; next: Position | undefined };

/** Of a busy feed in which the tenant has nothing so much is passed over at once. */
const MOST_EMPTY = 20;
/** A fact stands in the feed no later than this after others of its instant. */
const LONGEST_STATEMENT_MS = 60_000;

export const replay = (world: ReplayWorld, actor: KeyActor, id: string, asked: Replay): Promise<Replayed | Problem> =>
  replaying(world, actor, id, asked, (tx, callbacks) => storeCallbacks(tx, callbacks, world.facts));

/** What replay would do. */
export const countReplayed = (
  world: ReplayWorld,
  actor: KeyActor,
  id: string,
  asked: Replay,
): Promise<Replayed | Problem> => replaying(world, actor, id, asked, async () => 0);

type Store = (tx: Queryable, callbacks: Awaited<ReturnType<typeof callbacksAbout>>["callbacks"]) => Promise<number>;

const replaying = (
  world: ReplayWorld,
  actor: KeyActor,
  id: string,
  asked: Replay,
  store: Store,
): Promise<Replayed | Problem> =>
  inTransaction(world.pool, async (tx) => {
    const endpoint = await findEndpoint(tx, actor.tenant, id);
    if (!endpoint) return new Problem("NOT_FOUND", `there is no endpoint ${id}`);
    if (endpoint.state === "disabled") return new Problem("ENDPOINT_DISABLED", "resume it first");
    await lockTogether(tx, REPLAYS);
    const page = await readPage(tx, actor.tenant, asked);
    if (page.kind === "reset") {
      const next = writtenPosition(page.next);
      return new Problem("RESET", "what happened then is no longer kept, or was before another server took over", {
        next,
      });
    }
    const end = await toldUpTo(tx, actor.tenant);
    const isLeft = ({ position }: Fact) => end !== undefined && comparePositions(position, end) > 0;
    const facts = page.facts.filter((fact) => isWithin(fact, asked) && !isLeft(fact));
    const { callbacks, next } = await callbacksAbout(tx, facts, page.next, await onlyAt(tx, facts, endpoint), world);
    const replayed = await store(tx, callbacks);
    if (replayed > 0) {
      const { since, until, types, notificationId } = asked;
      const filter = {
        since,
        ...(until && { until }),
        ...(types && { types }),
        ...(notificationId && { notificationId }),
      };
      await writeAudit(tx, actor, {
        action: "endpoint.replay",
        object: { kind: "endpoint", name: id },
        after: { filter, replayed },
      });
    }
    const isOver = next === page.next && (page.isAtEnd || page.facts.some(isLeft) || isPast(page.facts, asked));
    return { matched: callbacks.length, replayed, next: isOver ? undefined : next };
  });

async function readPage(
  tx: Queryable,
  tenant: number,
  { since, after, types, limit, notificationId }: Replay,
): Promise<FeedPage | FeedReset> {
  const from = after ?? (await findFeedSince(tx, since));
  if ("kind" in from) return from;
  const asked = { after: from, limit, tenant, ...(types && { types }) };
  let page = await readFeed(tx, notificationId === undefined ? asked : { ...asked, limit: 1 });
  if (page.kind === "page" && notificationId !== undefined) return readFactsOf(tx, { ...asked, notificationId });
  for (let n = 0; n < MOST_EMPTY && page.kind === "page" && page.facts.length === 0 && !page.isAtEnd; n++)
    page = await readFeed(tx, { ...asked, after: page.next });
  return page;
}

const isWithin = ({ at }: Fact, { since, until }: Replay): boolean =>
  at >= since && (until === undefined || at < until);

const isPast = (facts: readonly Fact[], { until }: Replay): boolean =>
  until !== undefined &&
  facts.length > 0 &&
  facts.every(({ at }) => at.getTime() > until.getTime() + LONGEST_STATEMENT_MS);
