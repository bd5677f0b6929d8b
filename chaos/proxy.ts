// A TCP proxy in front of PostgreSQL that breaks connections where it hurts.
//
// It reads the protocol, so that it can cut a connection before a statement reaches the server, or after the server
// has committed it but before the client learns of it. Statements are known by their prepared names. Each process
// under test has a proxy of its own: what is cut is known to be that process's.
//
// State: the open links, the one rule that is armed, and whether everything is stalled.

import { once } from "node:events";
import { createServer, connect as dial, type Socket } from "node:net";
import { boundStatement, completedRows, createFramer, type Message } from "./wire.ts";

export type Rule = {
  /** Names of prepared statements: any of them. */
  statements: readonly string[];
  /**
   * Cut before the statement reaches the server; cut after the commit, instead of the answer; withhold the answer for
   * `holdMs`; or only tell that it happened.
   */
  act: "cut-before" | "cut-after" | "hold" | "watch";
  holdMs?: number;
};
export type Hit = { statement: string; rows: number; at: number };

export type DatabaseProxy = {
  port: number;
  /** Arms a rule for the next such statement that concerns at least one row. Undefined if none came in time. */
  strike(rule: Rule, waitMs: number): Promise<Hit | undefined>;
  /** Withdraws the rule that is armed. */
  disarm(): void;
  /** Breaks all connections; says how many there were. */
  cut(): number;
  /** Nothing passes in either direction until it is resumed; whether it then goes on or breaks is for the caller. */
  stall(): void;
  resume(how: "flow" | "cut"): void;
  close(): Promise<void>;
};

type Armed = { rule: Rule; isOver: boolean; end: (hit: Hit | undefined) => void };
type Link = { cut(): void; flush(): void };

/** `target` is a Unix socket's path. */
export async function openProxy(target: string): Promise<DatabaseProxy> {
  const links = new Set<Link>();
  let armed: Armed | undefined;
  let isStalled = false;

  function link(client: Socket): void {
    const server = dial(target);
    const fromClient = createFramer("client");
    const fromServer = createFramer("server");
    let toServer: Buffer[] = [];
    let toClient: Buffer[] = [];
    /** The statement under way that a rule is about. */
    let watched: { by: Armed; statement: string; rows: number; hasFailed: boolean } | undefined;
    let isHeld = false;

    const self: Link = {
      cut() {
        links.delete(self);
        client.resetAndDestroy();
        server.destroy();
      },
      flush() {
        if (isStalled) return;
        for (const bytes of toServer) server.write(bytes);
        toServer = [];
        if (isHeld || watched) return;
        for (const bytes of toClient) client.write(bytes);
        toClient = [];
      },
    };

    function request(message: Message): void {
      const statement = boundStatement(message);
      if (armed && statement !== undefined && armed.rule.statements.includes(statement)) {
        if (armed.rule.act === "cut-before") {
          const { end } = armed;
          self.cut();
          end({ statement, rows: 0, at: Date.now() });
          return;
        }
        watched = { by: armed, statement, rows: 0, hasFailed: false };
        armed = undefined;
      }
      toServer.push(message.bytes);
    }

    function reply(message: Message): void {
      toClient.push(message.bytes);
      if (!watched) return;
      if (message.type === "E") watched.hasFailed = true;
      watched.rows = completedRows(message) ?? watched.rows;
      if (message.type !== "Z") return;
      const { by, statement, rows, hasFailed } = watched;
      watched = undefined;
      if (by.isOver) return;
      if (hasFailed || rows === 0) {
        armed ??= by;
        return;
      }
      const { rule, end } = by;
      if (rule.act === "cut-after") self.cut();
      if (rule.act === "hold") {
        isHeld = true;
        setTimeout(() => {
          isHeld = false;
          self.flush();
        }, rule.holdMs).unref();
      }
      end({ statement, rows, at: Date.now() });
    }

    links.add(self);
    client.setNoDelay();
    client.on("data", (chunk) => {
      for (const message of fromClient(chunk)) if (links.has(self)) request(message);
      if (links.has(self)) self.flush();
    });
    server.on("data", (chunk) => {
      for (const message of fromServer(chunk)) if (links.has(self)) reply(message);
      if (links.has(self)) self.flush();
    });
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      socket.on("error", () => undefined);
      socket.on("close", () => {
        links.delete(self);
        other.end();
      });
    }
  }

  const listener = createServer(link);
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new TypeError("a TCP server has a port");

  const cut = () => {
    const count = links.size;
    for (const one of [...links]) one.cut();
    return count;
  };
  return {
    port: address.port,
    strike: (rule, waitMs) =>
      new Promise((resolve) => {
        const mine: Armed = {
          rule,
          isOver: false,
          end(hit) {
            mine.isOver = true;
            clearTimeout(timer);
            if (armed === mine) armed = undefined;
            resolve(hit);
          },
        };
        const timer = setTimeout(() => mine.end(undefined), waitMs);
        armed?.end(undefined);
        armed = mine;
      }),
    disarm: () => armed?.end(undefined),
    cut,
    stall() {
      isStalled = true;
    },
    resume(how) {
      isStalled = false;
      if (how === "cut") cut();
      for (const one of links) one.flush();
    },
    async close() {
      listener.close();
      cut();
      await once(listener, "close");
    },
  };
}
