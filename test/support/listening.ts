// What every stand-in keeps of its server: the port, the connections, and those who wait for something to come about.

import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";

export type Listening = {
  port: number;
  /** The connections there are, with their numbers, counted from 1. */
  sockets: ReadonlyMap<Socket, number>;
  /** How many connections there ever were, and how many there are. */
  connections(): { ever: number; open: number };
  /** Resolves when the other side has closed all connections. */
  forsaken(): Promise<void>;
  /** Resolves when it is so; looked at whenever something happened. */
  until(isSo: () => boolean): Promise<void>;
  happened(): void;
  /** Stops listening and cuts every connection. */
  down(): Promise<void>;
  /** Listens again, where it did before. */
  up(): Promise<void>;
};

export async function listening(server: Server, at: { host?: string; port?: number } = {}): Promise<Listening> {
  const { host = "127.0.0.1" } = at;
  const sockets = new Map<Socket, number>();
  const watchers = new Set<() => void>();
  let ever = 0;
  server.on("connection", (socket: Socket) => {
    sockets.set(socket, ++ever);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      sockets.delete(socket);
      kept.happened();
    });
  });

  const kept: Listening = {
    port: at.port ?? 0,
    sockets,
    connections: () => ({ ever, open: sockets.size }),
    forsaken: () => kept.until(() => sockets.size === 0),
    until: (isSo) =>
      new Promise((resolve) => {
        const look = () => {
          if (!isSo()) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        look();
      }),
    happened() {
      for (const watcher of watchers) watcher();
    },
    async down() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets.keys()) socket.destroy();
      await closed;
    },
    async up() {
      server.listen(kept.port, host);
      await once(server, "listening");
      kept.port = (server.address() as AddressInfo).port;
    },
  };
  await kept.up();
  return kept;
}
