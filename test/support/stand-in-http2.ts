// Stands in for a provider that speaks HTTP/2: the same script as the other stand-in, and what only HTTP/2 can do.

import { once } from "node:events";
import { constants, createServer, type Http2Session, type ServerHttp2Stream, type Settings } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { Answer, Received, Said, Script, StandIn } from "./stand-in.ts";

export type Http2StandIn = StandIn & {
  /** The most requests that were in hand at once on one connection. */
  mostAtOnce(): number;
  /** Tells every connection to end; what came after `lastStreamId` was not processed. */
  goAway(code: number, lastStreamId: number): void;
  /** Refuses every request that hangs, without having processed it. */
  refuse(): void;
  /** From now on the connections take other settings. */
  settle(settings: Settings): void;
  /** Answers every request that hangs. */
  release(said: Said): void;
};

const FLOOD_PART = Buffer.alloc(65_536, "x");

export async function startHttp2StandIn(settings: Settings = {}): Promise<Http2StandIn> {
  const received: Received[] = [];
  const sockets = new Map<Socket, number>();
  const sessions = new Map<Http2Session, { number: number; open: number }>();
  const streams = new Set<ServerHttp2Stream>();
  const hanging = new Set<ServerHttp2Stream>();
  const watchers = new Set<() => void>();
  let script: Script = { status: 404 };
  let ever = 0;
  let flooded = 0;
  let most = 0;
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

  async function serve(stream: ServerHttp2Stream, headers: { [name: string]: unknown }): Promise<void> {
    const session = sessions.get(stream.session as Http2Session);
    streams.add(stream);
    if (session) most = Math.max(most, ++session.open);
    stream.on("error", () => undefined);
    stream.once("close", () => {
      streams.delete(stream);
      hanging.delete(stream);
      if (session) session.open--;
      tellAll();
    });
    const parts: Buffer[] = [];
    for await (const part of stream) parts.push(part);
    const one: Received = {
      method: String(headers[":method"]),
      path: String(headers[":path"]),
      headers: Object.fromEntries(
        Object.entries(headers)
          .filter(([name]) => !name.startsWith(":"))
          .map(([name, value]) => [name, String(value)]),
      ),
      body: Buffer.concat(parts).toString("utf8"),
      connection: session?.number ?? 0,
    };
    received.push(one);
    act(stream, typeof script === "function" ? script(one) : script);
    tellAll();
  }

  function act(stream: ServerHttp2Stream, answer: Answer): void {
    const socket = stream.session?.socket;
    if (answer === "hang") hanging.add(stream);
    else if (answer === "reset") socket?.destroy();
    else if (answer === "break") {
      stream.respond({ ":status": 200 });
      stream.write("{", () => setImmediate(() => socket?.destroy()));
    } else if ("flood" in answer) flood(stream, answer.flood).catch(() => undefined);
    else if (answer.delayMs === undefined) say(stream, answer);
    else setTimeout(() => say(stream, answer), answer.delayMs).unref();
  }

  async function flood(stream: ServerHttp2Stream, bytes: number): Promise<void> {
    stream.respond({ ":status": 200, "content-type": "application/json" });
    const closed = once(stream, "close");
    for (let left = bytes; left > 0 && !stream.destroyed; left -= FLOOD_PART.length) {
      flooded += FLOOD_PART.length;
      if (!stream.write(FLOOD_PART)) await Promise.race([once(stream, "drain"), closed]);
    }
    stream.end();
  }

  const server = createServer({ settings });
  server.on("stream", (stream, headers) => {
    // The client went away before its request was complete.
    serve(stream, headers).catch(() => undefined);
  });
  server.on("session", (session) => {
    sessions.set(session, { number: ever, open: 0 });
    session.on("error", () => undefined);
    session.once("close", () => sessions.delete(session));
  });
  server.on("sessionError", () => undefined);
  server.on("connection", (socket: Socket) => {
    sockets.set(socket, ++ever);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      sockets.delete(socket);
      tellAll();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    answer(next) {
      script = next;
    },
    arrived: (count) => until(() => received.length >= count),
    connections: () => ({ ever, open: sockets.size }),
    dropConnections() {
      for (const session of sessions.keys()) session.close();
      return until(() => sockets.size === 0);
    },
    // A flood is ended by giving up its stream; the connection goes on.
    forsaken: () => until(() => (flooded > 0 ? streams.size : sockets.size) === 0),
    flooded: () => flooded,
    mostAtOnce: () => most,
    goAway(code, lastStreamId) {
      for (const session of sessions.keys()) session.goaway(code, lastStreamId, Buffer.from('{"reason":"Shutdown"}'));
    },
    refuse() {
      for (const stream of hanging) stream.close(constants.NGHTTP2_REFUSED_STREAM);
    },
    settle(next) {
      for (const session of sessions.keys()) session.settings(next);
    },
    release(said) {
      for (const stream of hanging) say(stream, said);
    },
    async close() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      for (const session of sessions.keys()) session.destroy();
      for (const socket of sockets.keys()) socket.destroy();
      await closed;
    },
  };
}

function say(stream: ServerHttp2Stream, { status, headers = {}, body = "" }: Said): void {
  if (stream.destroyed || stream.headersSent) return;
  const isText = typeof body === "string";
  stream.respond({ ":status": status, ...(!isText && { "content-type": "application/json" }), ...headers });
  stream.end(isText ? body : JSON.stringify(body));
}
