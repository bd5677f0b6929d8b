// Stands in for a provider that speaks HTTP/2: the same script as the other stand-in, and what only HTTP/2 can do.

import { constants, createServer, type Http2Session, type ServerHttp2Stream, type Settings } from "node:http2";
import { listening } from "./listening.ts";
import { type Acts, createScripted, type Said, type StandIn, say } from "./scripted.ts";

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

export async function startHttp2StandIn(settings: Settings = {}): Promise<Http2StandIn> {
  const { take, ...scripted } = createScripted(() => kept.happened());
  const sessions = new Map<Http2Session, { number: number; open: number }>();
  const streams = new Set<ServerHttp2Stream>();
  const hanging = new Map<ServerHttp2Stream, Acts>();
  let most = 0;

  const server = createServer({ settings });
  server.on("stream", (stream, headers) => {
    const session = sessions.get(stream.session as Http2Session);
    streams.add(stream);
    if (session) most = Math.max(most, ++session.open);
    stream.on("error", () => undefined);
    stream.once("close", () => {
      streams.delete(stream);
      hanging.delete(stream);
      if (session) session.open--;
      kept.happened();
    });
    const acts = actsOn(stream, () => hanging.set(stream, acts));
    const { ":method": method = "", ":path": path = "" } = headers;
    take({ method, path, headers, connection: session?.number ?? 0 }, stream, acts);
  });
  server.on("session", (session) => {
    sessions.set(session, { number: kept.connections().ever, open: 0 });
    session.on("error", () => undefined);
    session.once("close", () => sessions.delete(session));
  });
  server.on("sessionError", () => undefined);
  const kept = await listening(server);

  return {
    url: `http://127.0.0.1:${kept.port}`,
    ...scripted,
    arrived: (count) => kept.until(() => scripted.received.length >= count),
    connections: kept.connections,
    dropConnections() {
      for (const session of sessions.keys()) session.close();
      return kept.forsaken();
    },
    // A flood is ended by giving up its stream; the connection goes on.
    forsaken: () => (scripted.flooded() > 0 ? kept.until(() => streams.size === 0) : kept.forsaken()),
    mostAtOnce: () => most,
    goAway(code, lastStreamId) {
      for (const session of sessions.keys()) session.goaway(code, lastStreamId, Buffer.from('{"reason":"Shutdown"}'));
    },
    refuse() {
      for (const stream of hanging.keys()) stream.close(constants.NGHTTP2_REFUSED_STREAM);
    },
    settle(next) {
      for (const session of sessions.keys()) session.settings(next);
    },
    release(said) {
      for (const acts of hanging.values()) say(acts, said);
    },
    close() {
      for (const session of sessions.keys()) session.destroy();
      return kept.down();
    },
  };
}

const actsOn = (stream: ServerHttp2Stream, hang: () => void): Acts => ({
  hang,
  reset: () => stream.session?.socket.destroy(),
  break() {
    const socket = stream.session?.socket;
    stream.respond({ ":status": 200 });
    stream.write("{", () => setImmediate(() => socket?.destroy()));
  },
  flood() {
    stream.respond({ ":status": 200, "content-type": "application/json" });
    return stream;
  },
  say(status, headers, body) {
    if (stream.destroyed || stream.headersSent) return;
    stream.respond({ ":status": status, ...headers });
    stream.end(body);
  },
});
