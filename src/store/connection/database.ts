// The connections to PostgreSQL.
//
// A pool for each kind of work, so that none can starve another: what one tenant asks for, however much of it, keeps
// nobody's send, key or delivery waiting. Connections are opened when they are needed. A query that fails gives its
// connection up, so that a broken one is never used twice.

import pg from "pg";
import { connectionsTo, type Settings } from "./connection.ts";
import { followLeader } from "./leader.ts";
import { serversOf } from "./servers.ts";

export type Queryable = Pick<pg.Pool, "query">;

/** The work that has connections of its own. */
export type Pools = {
  /** Stores what is sent. */
  accept: pg.Pool;
  /** The queue: claims, settles, sweeps. */
  work: pg.Pool;
  /** Finds out whose a key is. */
  authenticate: pg.Pool;
  /** Stores what sources read. */
  source: pg.Pool;
  /** What the roles do for themselves: heartbeats, hints, limits, templates, what the scheduler fires. */
  own: pg.Pool;
  /** The keeper's chores. */
  house: pg.Pool;
  /** What requests ask for that takes a moment, under `turns`. */
  small: pg.Pool;
  /** What requests ask for that may go over many rows. */
  large: pg.Pool;
};
export type Database = Pools & { pools: Pools; close(): Promise<void> };

export type DatabaseOptions = {
  url: string;
  acceptConnections: number;
  /** Of `small`. */
  connections: number;
  /** Longest wait for an answer. */
  answerMs?: number;
  /** The URL leads to sessions that are shared with others between transactions. */
  isShared?: boolean;
  onError: (error: Error) => void;
  /** Of several servers another one leads now. */
  onMoved?: (host: string) => void;
};

/** Longest wait for an answer before the database counts as away. */
const ANSWER_MS = 8_000;
const CONNECT_MS = 3_000;
/** One claims, two settle, one extends, one sweeps, and those that look for what will be due share one: each takes a moment. */
const WORK_CONNECTIONS = 6;
/** A key is remembered once it was looked up, and the look-up takes a fraction of a millisecond. */
const KEY_CONNECTIONS = 2;
/** The scheduler takes one for a while for each of its sources; the rest are statements of a moment. */
const OWN_CONNECTIONS = 8;
/** One chore that is long at work and one that waits for a lock leave one for the others. Nobody waits in the pool: roles/house.ts. */
export const HOUSE_CONNECTIONS = 3;
/** Each may keep a core of the database's machine busy. */
export const LARGE_CONNECTIONS = 4;
/** The server ends it before we would give its connection up and leave it running. */
const LARGE_MS = 7_000;
/**
 * The queue's tables go from empty to full and back faster than statistics follow, and a plan made for an empty
 * table reads a full one from end to end for every row. With these off, only the index paths that the statements were
 * written for remain.
 */
const PINNED: Settings = {
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
};
/** Claims and settlements are large statements whose plans do not depend on what is asked for: made anew each time, a plan costs a fifth of a claim. */
const PLANNED_ONCE: Settings = { plan_cache_mode: "force_generic_plan" };
/**
 * We wake whoever sleeps ourselves, after our commits; triggers do it for everybody else. A statement of a few milliseconds is
 * not worth the half second that compiling it may take.
 */
const SETTINGS: Settings = { "carillon.hints": "own", jit: "off", statement_timeout: ANSWER_MS };
/** As many partitions of sources are kept at once: more would be no faster, and take the cores of everybody else. */
const SOURCE_CONNECTIONS = 3;
/** Nobody piles up behind a source: it waits for others rather than doing all of a batch again. */
const SOURCE_LOCK_MS = 5_000;
/** One reader, one core. */
const ALONE: Settings = { max_parallel_workers_per_gather: 0, statement_timeout: LARGE_MS };
/** Somebody who locks a whole table must not have sends pile up behind it. */
const LOCK_MS = 500;
/** One more than there are commits at once, for those who wait for an idempotency key. */
const APART_CONNECTIONS = 1;

/** Hints, the stream, and whoever waits for the mailbox. */
const LISTENING_CONNECTIONS = 3;
/** Of the thread that archives: one reads, one notes what was written. */
const ARCHIVE_CONNECTIONS = 2;

/** What a process with all roles may have open at once. */
export const mostConnections = (accept: number, small: number): number =>
  accept +
  APART_CONNECTIONS +
  WORK_CONNECTIONS +
  KEY_CONNECTIONS +
  SOURCE_CONNECTIONS +
  OWN_CONNECTIONS +
  HOUSE_CONNECTIONS +
  small +
  LARGE_CONNECTIONS +
  LISTENING_CONNECTIONS +
  ARCHIVE_CONNECTIONS;

export function openDatabase(options: DatabaseOptions): Database {
  const { url, acceptConnections, connections, answerMs = ANSWER_MS, isShared = false, onError, onMoved } = options;
  const servers = serversOf(url);
  if (!servers) throw new Error("the database URL cannot be read");
  const [first] = servers;
  let isClosed = false;
  const all = new Set<ReturnType<typeof connectionsTo>>();
  const leader = followLeader(servers, (to) => {
    for (const one of all) one.leave(to);
    onMoved?.(to.host);
  });
  const open = (name: string, max: number, more: Settings = {}) => {
    const settings = { ...SETTINGS, ...more };
    const made = connectionsTo({ leader, settings, mostGivenUp: max, isShared });
    all.add(made);
    const pool = new pg.Pool({
      connectionString: servers.length > 1 ? first?.url : url,
      application_name: `carillon ${name}`,
      max,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: answerMs,
      keepAlive: true,
      Client: made.Client,
    } as pg.PoolConfig);
    // An idle connection that breaks is replaced at the next query; without a listener it would end the process.
    pool.on("error", (error) => {
      if (!isClosed) onError(error);
    });
    pool.on("release", (error: unknown) => {
      if (isReadOnly(error)) leader.doubt();
    });
    return pool;
  };
  const accept = open("accept", acceptConnections + APART_CONNECTIONS, { ...PINNED, lock_timeout: LOCK_MS });
  const work = open("work", WORK_CONNECTIONS, { ...PINNED, ...PLANNED_ONCE });
  const authenticate = open("authenticate", KEY_CONNECTIONS);
  const source = open("source", SOURCE_CONNECTIONS, { ...PINNED, lock_timeout: SOURCE_LOCK_MS });
  const own = open("own", OWN_CONNECTIONS);
  const house = open("house", HOUSE_CONNECTIONS);
  const small = open("small", connections);
  const large = open("large", LARGE_CONNECTIONS, ALONE);
  const pools = { accept, work, authenticate, source, own, house, small, large };
  return {
    ...pools,
    pools,
    close: async () => {
      isClosed = true;
      leader.close();
      for (const one of all) one.close();
      await Promise.all(Object.values(pools).map((pool) => pool.end()));
    },
  };
}

/** All or nothing. The connection is given up if anything fails, so that no transaction stays open on it. */
export async function inTransaction<Value>(pool: pg.Pool, act: (tx: Queryable) => Promise<Value>): Promise<Value> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const value = await act(client);
    await client.query("commit");
    client.release();
    return value;
  } catch (error) {
    client.release(error instanceof Error ? error : true);
    throw error;
  }
}

/** Something within a transaction that may be refused without undoing the rest of it. An outage still throws. */
export async function trying<Value>(tx: Queryable, act: () => Promise<Value>): Promise<Value | Error> {
  await tx.query("savepoint trying");
  try {
    const value = await act();
    await tx.query("release savepoint trying");
    return value;
  } catch (error) {
    if (isOutage(error) || !(error instanceof Error)) throw error;
    await tx.query("rollback to savepoint trying");
    return error;
  }
}

export const isDatabaseError = (error: unknown): boolean => error instanceof pg.DatabaseError;
/** As one that was told of by another thread. */
export const asDatabaseError = (message: string): Error => new pg.DatabaseError(message, message.length, "error");

/** True when the server ended the statement, as it took too long. */
export const isTooSlow = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === "57014";

/** The database's clock, read as a statement of its own: after a lock that was waited for, it tells the time after the wait. */
export async function readClock(db: Queryable): Promise<Date> {
  const { rows } = await db.query<{ now: Date }>("select carillon.now() as now");
  return rows[0]?.now as Date;
}

const SERIALIZATION = "40001";
const DEADLOCK = "40P01";
const LOCK_NOT_AVAILABLE = "55P03";

/** True when the same statement may well succeed in a moment: others were in its way. */
export const isPassing = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && [SERIALIZATION, DEADLOCK, LOCK_NOT_AVAILABLE].includes(error.code ?? "");

/** A standby, or a server that was told to refuse writes. */
const isReadOnly = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === "25006";

/** True when the database will never take what it was given: data it cannot hold, rules that it breaks, more than fits. */
export const isDataError = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && /^(22|23|54)/.test(error.code ?? "");

/** True when the database is away, full or refusing work, as opposed to refusing this statement. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (error instanceof pg.DatabaseError) {
    // Connection, resources, operator intervention, input/output, and a standby that cannot write.
    return /^(08|53|57|58)/.test(code) || isReadOnly(error);
  }
  return (
    /^E[A-Z]+$/.test(code) ||
    /timeout|terminated|not queryable|Connection ended|Cannot use a pool after/i.test(error.message)
  );
}
