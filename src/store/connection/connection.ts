// One connection of a pool: to the server that leads, with the settings that must hold on it, and counted until the server has let go of it.
//
// Settings are made by a statement, not by the startup packet: poolers such as PgBouncer refuse or forget what comes there.
// One that shares sessions between its clients (transaction pooling) keeps nothing from one transaction to the next: there each statement becomes a
// transaction that makes the settings for itself, and no statement has a name.

import { Socket } from "node:net";
import pg from "pg";
import type { Leader } from "./leader.ts";
import { NoServer, type Server } from "./servers.ts";

export type Settings = { [name: string]: string | number };

export type ConnectionShape = {
  leader: Leader;
  settings: Settings;
  /** Connections that were given up and still keep the server busy: with this many, no new ones are made. */
  mostGivenUp: number;
  /** Sessions are shared with others between transactions. */
  isShared: boolean;
};

export type Connections = {
  /** For pg.Pool. */
  Client: new () => pg.ClientBase;
  /** Breaks all that lead anywhere else. */
  leave(allBut: Server): void;
  /** Breaks what was given up. */
  close(): void;
};

/** The server still works on what we no longer wait for. */
export class TooManyGivenUp extends Error {
  override name = "TooManyGivenUp";
  readonly code = "EBUSY";
  constructor() {
    super("too many statements were given up that are not over yet");
  }
}

const settingList = (settings: Settings, isLocal: boolean): string =>
  Object.entries(settings)
    .map(([name, value]) => `set_config('${name}', '${value}', ${isLocal})`)
    .join(", ");

export function connectionsTo({ leader, settings, mostGivenUp, isShared }: ConnectionShape): Connections {
  const pool: Pool = {
    leader,
    mostGivenUp,
    isShared,
    open: new Set(),
    givenUp: new Set(),
    isLooking: false,
    setSession: `select ${settingList(settings, false)}`,
    begin: `begin; select ${settingList(settings, true)}`,
  };
  // pg.Pool makes its clients itself, of its own configuration.
  const Client = class extends Connection {
    constructor(config: pg.ClientConfig) {
      super(config, pool);
    }
  };
  return {
    Client: Client as unknown as new () => pg.ClientBase,
    leave(allBut) {
      for (const one of pool.open) if (one.server !== allBut) one.socket.destroy();
    },
    close() {
      for (const one of pool.givenUp) one.socket.destroy();
    },
  };
}

/** What the connections of a pool share. */
type Pool = Pick<ConnectionShape, "leader" | "mostGivenUp" | "isShared"> & {
  open: Set<Connection>;
  givenUp: Set<Connection>;
  /** Whether one of them is finding out which of those given up are lost. */
  isLooking: boolean;
  setSession: string;
  begin: string;
};

class Connection extends pg.Client {
  /** The server's process; the driver has it, its types do not. */
  declare readonly processID: number | null;
  readonly socket: Socket;
  server: Server | undefined;
  isBusy = false;
  isInTransaction = false;

  readonly #pool: Pool;

  constructor(config: pg.ClientConfig, pool: Pool) {
    const socket = new Socket();
    super({ ...config, stream: () => socket });
    this.socket = socket;
    this.#pool = pool;
    // Whoever asks something of it is told by the answer. Its end comes at any time, also while it is being set up or between
    // two statements of a transaction, and without a listener would end the process.
    this.on("error", () => undefined);
    this.on("drain", () => {
      this.isBusy = false;
    });
    const plain = this.query.bind(this) as (...given: unknown[]) => unknown;
    const query = (...given: unknown[]) => {
      this.isBusy = true;
      return plain(...given);
    };
    this.query = (pool.isShared ? this.sharing(query as Query) : query) as typeof this.query;
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: Done): void;
  override connect(callback?: Done): Promise<pg.Client> | undefined {
    // A pool that has waited long enough destroys the socket: that ends it, whatever it was waiting for.
    const closed = new Promise<never>((_, reject) => {
      this.socket.once("close", () => reject(new NoServer("closed before it was connected")));
    });
    const done = Promise.race([closed, this.begin()]);
    if (!callback) return done;
    done.then(() => callback(null), callback);
    return undefined;
  }

  private async begin(): Promise<pg.Client> {
    const pool = this.#pool;
    const hasRoom = () => pool.givenUp.size < pool.mostGivenUp;
    if (hasRoom()) return this.open();
    if (pool.isLooking) throw new TooManyGivenUp();
    pool.isLooking = true;
    try {
      await this.open();
      await this.dropLost();
    } finally {
      pool.isLooking = false;
    }
    if (hasRoom()) return this;
    this.socket.destroy();
    throw new TooManyGivenUp();
  }

  /** Those that the server is not at any more, or never was: the network has lost them, and nobody will ever answer. */
  private async dropLost(): Promise<void> {
    const { givenUp } = this.#pool;
    const { rows } = await this.query<{ pid: number }>(
      "select pid from pg_stat_activity where state = 'active' and pid = any ($1::int[])",
      [[...givenUp].map((one) => one.processID)],
    );
    const atWork = new Set(rows.map(({ pid }) => pid));
    for (const one of givenUp) {
      if (one.processID !== null && atWork.has(one.processID)) continue;
      givenUp.delete(one);
      one.socket.destroy();
    }
  }

  private async open(): Promise<pg.Client> {
    const { leader, open, isShared, setSession } = this.#pool;
    this.server = await leader.find();
    // A socket that was destroyed connects no more, and says nothing either.
    if (this.socket.destroyed) throw new NoServer("no server was found in time");
    if (this.server) {
      this.host = this.server.host;
      this.port = this.server.port;
    }
    open.add(this);
    this.socket.once("close", () => open.delete(this));
    try {
      await super.connect();
      if (!isShared) await this.query(setSession);
    } catch (error) {
      this.socket.destroy();
      leader.doubt();
      throw error;
    }
    return this;
  }

  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): Promise<void> | undefined {
    if (this.isBusy && !this.socket.destroyed) {
      // Its statement was given up. To close it now would hide from us that the server is still at it, for as long as a
      // commit waits for a standby that is away, and a new one in its place would be one more.
      const { givenUp } = this.#pool;
      givenUp.add(this);
      this.socket.once("close", () => givenUp.delete(this));
      this.once("drain", () => {
        givenUp.delete(this);
        super.end().catch(() => undefined);
      });
    } else if (!callback) return super.end();
    else {
      super.end(callback);
      return undefined;
    }
    (callback as ((error?: Error) => void) | undefined)?.();
    return callback ? undefined : Promise.resolve();
  }

  /** What is not within a transaction already becomes one, with the settings in it. */
  private sharing(plain: Query): (...given: unknown[]) => unknown {
    const { begin } = this.#pool;
    const run = async (config: unknown, values: unknown): Promise<unknown> => {
      const statement = unnamed(config);
      const text = typeof statement === "string" ? statement : "";
      if (text === "begin") {
        this.isInTransaction = true;
        return plain(begin);
      }
      if (text === "commit" || text === "rollback") this.isInTransaction = false;
      if (this.isInTransaction || text === "commit" || text === "rollback") return plain(statement, values);
      await plain(begin);
      try {
        const result = await plain(statement, values);
        await plain("commit");
        return result;
      } catch (error) {
        // Not waited for: behind a statement that was given up it would take as long again.
        plain("rollback").catch(() => undefined);
        throw error;
      }
    };
    return (config, values, callback) => {
      const done = typeof values === "function" ? values : callback;
      const answer = run(config, typeof values === "function" ? undefined : values);
      if (typeof done !== "function") return answer;
      answer.then(
        (result) => done(null, result),
        (error) => done(error),
      );
      return undefined;
    };
  }
}

type Done = (error: Error | null) => void;
type Query = (statement: unknown, values?: unknown) => Promise<unknown>;

function unnamed(config: unknown): unknown {
  if (config === null || typeof config !== "object" || !("name" in config)) return config;
  const { name: _, ...rest } = config;
  return rest;
}
