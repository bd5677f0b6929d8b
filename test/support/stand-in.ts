// Stands in for a provider's server: HTTP/1.1 on loopback, answering as it is told and noting what it is asked.

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

export type Received = {
  method: string;
  /** With the query. */
  path: string;
  /** Names in lower case. */
  headers: { [name: string]: string };
  body: string;
  /** Which connection it came on, counted from 1. */
  connection: number;
};

/** An object as body is sent as JSON. */
export type Said = { status: number; headers?: { [name: string]: string }; body?: string | object; delayMs?: number };
export type Answer =
  | Said
  /** Reads the request and says nothing. */
  | "hang"
  /** Reads the request and breaks the connection. */
  | "reset"
  /** Begins a 200 and breaks the connection before the body is complete. */
  | "break"
  /** Sends a body of this many bytes, as fast as it is taken. */
  | { flood: number };

export type Script = Answer | ((received: Received) => Answer);

export type StandIn = {
  /** Without a slash at the end. */
  url: string;
  /** Every request that was read completely, in order. */
  received: Received[];
  /** How all requests from now on are answered. */
  answer(script: Script): void;
  /** Resolves when this many requests have been read. */
  arrived(count: number): Promise<void>;
  /** How many connections there ever were, and how many there are. */
  connections(): { ever: number; open: number };
  /** Closes the connections as a server does with idle ones; resolves when they are gone. */
  dropConnections(): Promise<void>;
  /** Resolves when the other side has closed all connections. */
  forsaken(): Promise<void>;
  /** How many bytes of floods were handed to the network. */
  flooded(): number;
  close(): Promise<void>;
};

const FLOOD_PART = Buffer.alloc(65_536, "x");

/** `at` another loopback address and port than the usual. */
export async function startStandIn(at: { host?: string; port?: number } = {}): Promise<StandIn> {
  const { host = "127.0.0.1", port = 0 } = at;
  const received: Received[] = [];
  const sockets = new Map<Socket, number>();
  const watchers = new Set<() => void>();
  let script: Script = { status: 404 };
  let ever = 0;
  let flooded = 0;
  const tellAll = () => {
    for (const watcher of watchers) watcher();
  };
  const until = (isSo: () => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!isSo()) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
    });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const one: Received = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)])),
      body: Buffer.concat(parts).toString("utf8"),
      connection: sockets.get(request.socket) ?? 0,
    };
    received.push(one);
    tellAll();
    const answer = typeof script === "function" ? script(one) : script;
    if (answer === "hang") return;
    if (answer === "reset") request.socket.resetAndDestroy();
    else if (answer === "break") {
      response.writeHead(200, { "content-length": 1000 }).write("{", () => request.socket.resetAndDestroy());
    } else if ("flood" in answer) await flood(response, answer.flood);
    else if (answer.delayMs === undefined) say(response, answer);
    else setTimeout(() => say(response, answer), answer.delayMs).unref();
  }

  async function flood(response: ServerResponse, bytes: number): Promise<void> {
    response.writeHead(200, { "content-type": "application/json" });
    const closed = once(response, "close");
    for (let left = bytes; left > 0 && !response.destroyed; left -= FLOOD_PART.length) {
      flooded += FLOOD_PART.length;
      if (!response.write(FLOOD_PART)) await Promise.race([once(response, "drain"), closed]);
    }
    response.end();
  }

  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    // The client went away before its request was complete.
    serve(request, response).catch(() => undefined);
  });
  server.on("connection", (socket) => {
    sockets.set(socket, ++ever);
    socket.once("close", () => {
      sockets.delete(socket);
      tellAll();
    });
  });
  server.listen(port, host);
  await once(server, "listening");

  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    received,
    answer(next) {
      script = next;
    },
    arrived: (count) => until(() => received.length >= count),
    connections: () => ({ ever, open: sockets.size }),
    dropConnections() {
      for (const socket of sockets.keys()) socket.end();
      return until(() => sockets.size === 0);
    },
    forsaken: () => until(() => sockets.size === 0),
    flooded: () => flooded,
    async close() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function say(response: ServerResponse, { status, headers = {}, body = "" }: Said): void {
  const isText = typeof body === "string";
  response.writeHead(status, { ...(!isText && { "content-type": "application/json" }), ...headers });
  response.end(isText ? body : JSON.stringify(body));
}
