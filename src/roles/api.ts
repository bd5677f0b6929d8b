// The api role: listens, and drains when it is told to stop.
//
// A stop ends listening only. Whoever is connected is still answered, with `connection: close`; what does not end in time
// is cut off.

import { Server, type Socket } from "node:net";
import type { FastifyInstance } from "fastify";

export type ApiRoleOptions = {
  app: FastifyInstance;
  host: string;
  port: number;
  /** Lets go of open streams within this time. */
  drain: (withinMs: number) => Promise<void>;
  /** Writes what was noted meanwhile; now and then, and at the end. Never rejects. */
  flush: () => Promise<void>;
  /** From now on answers say that it stops. */
  onStop: () => void;
};
export type RunningApi = { url: string; stop(drainMs: number): Promise<void> };

const LINGER_MS = 1_000;
const FLUSH_MS = 10_000;

export async function startApi({ app, host, port, drain, flush, onStop }: ApiRoleOptions): Promise<RunningApi> {
  // Browsers open connections in advance. One on which nothing was asked yet is not idle to Node.
  const silent = new Set<Socket>();
  app.server.on("connection", (socket: Socket) => {
    silent.add(socket);
    socket.once("close", () => silent.delete(socket));
  });
  app.server.on("request", ({ socket }) => silent.delete(socket));
  const url = await app.listen({ host, port });
  const flushing = setInterval(() => void flush(), FLUSH_MS);

  return {
    url,
    async stop(drainMs) {
      onStop();
      clearInterval(flushing);
      // Stops listening only: on a connection that seems idle the next request may be on its way.
      const closed = new Promise<void>((resolve) => Server.prototype.close.call(app.server, () => resolve()));
      const closeIdle = () => {
        app.server.closeIdleConnections();
        for (const socket of silent) socket.destroy();
      };
      // A timer that is late, since the process was busy, comes before what arrived meanwhile; an immediate after it.
      const reap = setInterval(() => setImmediate(closeIdle), LINGER_MS);
      const cut = setTimeout(() => app.server.closeAllConnections(), drainMs);
      await drain(drainMs);
      await closed;
      clearTimeout(cut);
      clearInterval(reap);
      await app.close();
      await flush();
    },
  };
}
