// Stands in for a provider's server: HTTP/1.1 on loopback, answering as it is told and noting what it is asked.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listening } from "./listening.ts";
import { type Acts, createScripted, type StandIn } from "./scripted.ts";

/** `at` another loopback address and port than the usual. */
export async function startStandIn(at: { host?: string; port?: number } = {}): Promise<StandIn> {
  const { take, ...scripted } = createScripted(() => kept.happened());
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    const { method = "", url: path = "", headers, socket } = request;
    take({ method, path, headers, connection: kept.sockets.get(socket) ?? 0 }, request, actsOn(request, response));
  });
  const kept = await listening(server, at);
  return {
    url: `http://${at.host ?? "127.0.0.1"}:${kept.port}`,
    ...scripted,
    arrived: (count) => kept.until(() => scripted.received.length >= count),
    connections: kept.connections,
    dropConnections() {
      for (const socket of kept.sockets.keys()) socket.end();
      return kept.forsaken();
    },
    forsaken: kept.forsaken,
    close: kept.down,
  };
}

const actsOn = ({ socket }: IncomingMessage, response: ServerResponse): Acts => ({
  hang() {},
  reset: () => socket.resetAndDestroy(),
  break() {
    response.writeHead(200, { "content-length": 1000 }).write("{", () => socket.resetAndDestroy());
  },
  flood: () => response.writeHead(200, { "content-type": "application/json" }),
  say: (status, headers, body) => response.writeHead(status, headers).end(body),
});
