// Follows the feed for one sink: reads a page, hands it over, and moves the position once the other side has confirmed.
//
// One process at a time has a sink, by a lease. No transaction is open while the other side is waited for, as that would hold up everybody who
// follows. Whoever lost the lease meanwhile moves nothing: the next one hands the page over again. The next pages are read while this one is
// handed over.

import type pg from "pg";
import { comparePositions, type Fact, type FactType, type Position, startOf } from "#domain/fact.ts";
import { toldBody } from "#domain/fact-body.ts";
import { findDetails } from "#record/facts.ts";
import { type FeedPage, type FeedReset, readEpoch, readFeed } from "#record/feed.ts";
import { findFollower, moveFollower, readFollower, skipFollower, startFollower } from "#record/followers.ts";
import type { Refused, Sink, Told } from "#sinks/sink.ts";
import { inTransaction, type Queryable } from "#store/connection/database.ts";
import { countCarried, isConnectorPaused, keepRefusals } from "#store/connectors.ts";
import { lead, leads, resign } from "#store/leadership.ts";
import { findTenantNames } from "#store/tenants.ts";

export type SinkWorld = {
  pool: pg.Pool;
  name: string;
  sink: Sink;
  /** Undefined: all. */
  types: readonly FactType[] | undefined;
  /** This process, among those who may have it. */
  holder: string;
  /** It was so far behind that something was taken which it had not read. */
  onMissed: (reason: string) => void;
  /** Never set back. */
  monotonic: () => number;
  /** Of whoever has it and says nothing. */
  leaseMs?: number;
  /** For one page; a broker that says nothing for so long is tried anew. */
  deliverMs?: number;
};

/** `taken`: another process has it. `idle`: there is nothing more for now. */
export type SinkRound =
  | { kind: "taken" }
  | { kind: "paused" }
  | { kind: "idle" | "busy"; carried: number; refused: readonly Refused[] };

const LEASE_MS = 15_000;
/** It is renewed when this part of it has passed, and a few times more before it is lost. */
const RENEWED_PART = 0.25;
const DELIVER_MS = 60_000;
/** A page takes two statements, each sent when this thread has a moment between what it produces. With one page ahead it stood idle for twice as long. */
const PAGES_AHEAD = 2;

const NOTHING = { carried: 0, refused: [] };

/** The name of a sink's follower, and of its lease. */
export const followerOf = (sink: string): string => `sink ${sink}`;

type Page = FeedPage & { after: Position; told: Told[] };
type Read = (FeedReset & { after: Position }) | Page;

export class SinkFeeder {
  readonly #world: SinkWorld;
  readonly #follower: string;
  readonly #tenants = new Map<number, string>();
  readonly #leaseMs: number;
  #lease: { term: number; keptAt: number } | undefined;
  /** One after the other; undefined where there was no more. */
  #ahead: Promise<Read | undefined>[] = [];

  constructor(world: SinkWorld) {
    this.#world = world;
    this.#follower = followerOf(world.name);
    this.#leaseMs = world.leaseMs ?? LEASE_MS;
  }

  /** Rejects when it could not be handed over, or the database could not be asked. */
  async round(stopping: AbortSignal): Promise<SinkRound> {
    const { pool, name } = this.#world;
    const term = await this.#lead();
    const isPaused = term !== undefined && (await isConnectorPaused(pool, { kind: "sink", name }));
    if (term === undefined || isPaused) {
      // What was read ahead may be read again when somebody has been forgotten meanwhile.
      this.#ahead = [];
      return { kind: isPaused ? "paused" : "taken" };
    }
    const after = (await findFollower(pool, [this.#follower])) ?? (await this.#begin());
    const page = await this.#pageAfter(after);
    return page.kind === "reset" ? this.#skip(term, page) : this.#handOver(term, page, stopping);
  }

  /** So that another process need not wait for the lease to run out. */
  async resign(): Promise<void> {
    this.#lease = undefined;
    await resign(this.#world.pool, this.#follower, this.#world.holder);
  }

  async #handOver(term: number, page: Page, stopping: AbortSignal): Promise<SinkRound> {
    const { name, sink } = this.#world;
    const { after, told, next, isAtEnd } = page;
    this.#readAhead(page);
    const hasSome = told.length > 0;
    const refused = hasSome ? await this.#holding(term, stopping, (signal) => sink.deliver(told, signal)) : [];
    if (comparePositions(after, next) === 0) return { kind: "idle", ...NOTHING };
    const carried = told.length - refused.length;
    const isMoved = await this.#move(term, after, async (tx) => {
      await moveFollower(tx, this.#follower, next);
      await keepRefusals(tx, { kind: "sink", name }, refused.map(refusalOf));
      if (hasSome) await countCarried(tx, { kind: "sink", name }, { carried, refused: refused.length });
    });
    return { kind: isAtEnd ? "idle" : "busy", ...(isMoved ? { carried, refused } : NOTHING) };
  }

  async #skip(term: number, { after, next, reason }: FeedReset & { after: Position }): Promise<SinkRound> {
    const isMoved = await this.#move(term, after, (tx) => skipFollower(tx, this.#follower, next));
    if (isMoved) this.#world.onMissed(reason);
    return { kind: "busy", ...NOTHING };
  }

  /** Undefined while another process has it. One that was renewed a moment ago holds: whoever moves something makes sure. */
  async #lead(): Promise<number | undefined> {
    const { pool, holder, monotonic } = this.#world;
    const askedAt = monotonic();
    if (this.#lease && askedAt - this.#lease.keptAt < this.#leaseMs * RENEWED_PART) return this.#lease.term;
    this.#lease = undefined;
    const term = await lead(pool, this.#follower, holder, this.#leaseMs);
    if (term !== undefined) this.#lease = { term, keptAt: askedAt };
    return term;
  }

  /** From the oldest that is kept on: a sink that is new has everything that there is. */
  async #begin(): Promise<Position> {
    const { pool } = this.#world;
    const start = startOf(await readEpoch(pool));
    await startFollower(pool, this.#follower, start);
    return start;
  }

  async #pageAfter(after: Position): Promise<Read> {
    const [first, ...others] = this.#ahead;
    this.#ahead = [];
    const read = await first;
    if (!read || comparePositions(read.after, after) !== 0) return this.#read(after);
    this.#ahead = others;
    return read;
  }

  #readAhead(page: Page): void {
    let last: Promise<Read | undefined> = this.#ahead.at(-1) ?? Promise.resolve(page);
    while (this.#ahead.length < PAGES_AHEAD) {
      last = last.then((read) => (read?.kind === "page" && !read.isAtEnd ? this.#read(read.next) : undefined));
      // Whoever takes it hears of it.
      last.catch(() => {});
      this.#ahead.push(last);
    }
  }

  async #read(after: Position): Promise<Read> {
    const { pool, types, sink } = this.#world;
    const page = await readFeed(pool, { after, limit: sink.most, ...(types && { types }) });
    return page.kind === "reset" ? { ...page, after } : { ...page, after, told: await this.#told(pool, page.facts) };
  }

  async #told(db: Queryable, facts: readonly Fact[]): Promise<Told[]> {
    const unknown = new Set(facts.map(({ tenant }) => tenant).filter((tenant) => !this.#tenants.has(tenant)));
    for (const [id, name] of await findTenantNames(db, [...unknown])) this.#tenants.set(id, name);
    const details = await findDetails(db, facts);
    return facts.map((fact, n) => ({
      fact,
      tenant: this.#tenants.get(fact.tenant) ?? String(fact.tenant),
      body: toldBody(fact, details[n]),
    }));
  }

  /** Renews the lease while something is done, and ends that where the lease is lost. */
  async #holding<Value>(
    term: number,
    stopping: AbortSignal,
    act: (signal: AbortSignal) => Promise<Value>,
  ): Promise<Value> {
    const { monotonic, deliverMs = DELIVER_MS } = this.#world;
    const ending = new AbortController();
    const end = (why: string) => ending.abort(new Error(why));
    const stop = () => ending.abort(stopping.reason);
    stopping.addEventListener("abort", stop, { once: true });
    if (stopping.aborted) stop();
    const tooLong = setTimeout(end, deliverMs, `nothing was confirmed for ${deliverMs / 1000} s`);
    let keptAt = this.#lease?.keptAt ?? monotonic();
    const renewing = setInterval(async () => {
      const held = await this.#lead().catch(() => term);
      if (held !== term) return end("another process has the sink");
      keptAt = this.#lease?.keptAt ?? keptAt;
      if (monotonic() - keptAt > this.#leaseMs * (1 - RENEWED_PART)) end("its lease could not be renewed");
    }, this.#leaseMs * RENEWED_PART);
    try {
      return await act(ending.signal);
    } finally {
      clearInterval(renewing);
      clearTimeout(tooLong);
      stopping.removeEventListener("abort", stop);
    }
  }

  /** False where it is no longer ours, or was sent back meanwhile: then nothing is changed. */
  #move(term: number, from: Position, act: (tx: Queryable) => Promise<void>): Promise<boolean> {
    const { pool, holder } = this.#world;
    return inTransaction(pool, async (tx) => {
      if (!(await leads(tx, this.#follower, holder, term))) {
        this.#lease = undefined;
        return false;
      }
      if (comparePositions(await readFollower(tx, this.#follower), from) !== 0) return false;
      await act(tx);
      return true;
    });
  }
}

const refusalOf = ({ told: { fact, body }, error }: Refused) => ({
  tenant: fact.tenant,
  place: `${body.id} ${fact.type}`,
  code: "REFUSED_BY_SINK",
  faults: [{ path: "", message: error }],
});
