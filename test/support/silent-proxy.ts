// A TCP proxy that can fall silent: connections stay open, and nothing passes. So looks a network that drops packets, or a
// machine that hangs. It can also cut what there is.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type SilentProxy = {
  port: number;
  /** Nothing passes over the connections that are open now; new ones are as ever. */
  silence(): void;
  /** What is said over the connections that are open now arrives, and what is answered does not. */
  mute(): void;
  /** New connections are accepted, and nothing passes over them either. */
  hang(): void;
  /** Breaks all connections; says how many there were. */
  cut(): number;
  connections(): number;
  close(): Promise<void>;
};

/** `target` is a Unix socket's path, or a port of this machine, which may be known later only. */
export async function openSilentProxy(target: string | number | (() => number)): Promise<SilentProxy> {
  const pairs = new Set<[Socket, Socket]>();
  let isHanging = false;

  const server = createServer((near) => {
    const to = typeof target === "function" ? target() : target;
    const far = typeof to === "string" ? connect(to) : connect(to, "127.0.0.1");
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    for (const [one, other] of [pair, [far, near]] as const) {
      one.on("error", () => undefined);
      one.on("close", () => {
        pairs.delete(pair);
        other.destroy();
      });
    }
    if (isHanging) return;
    near.pipe(far);
    far.pipe(near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  const silence = () => {
    for (const [near, far] of pairs) {
      near.unpipe(far).pause();
      far.unpipe(near).pause();
    }
  };
  return {
    port: (server.address() as AddressInfo).port,
    silence,
    mute() {
      for (const [near, far] of pairs) far.unpipe(near).pause();
    },
    hang() {
      isHanging = true;
      silence();
    },
    cut() {
      const count = pairs.size;
      for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
      return count;
    },
    connections: () => pairs.size,
    async close() {
      for (const pair of pairs) for (const socket of pair) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** The same database, by way of the proxy. Test servers listen on a Unix socket. */
export async function throughSilentProxy(url: string): Promise<{ url: string; proxy: SilentProxy }> {
  const directory = decodeURIComponent(/[?&]host=([^&]+)/.exec(url)?.[1] ?? "");
  const proxy = await openSilentProxy(`${directory}/.s.PGSQL.5432`);
  return { url: url.replace(/@[^/]*\//, `@127.0.0.1:${proxy.port}/`).replace(/\?.*/, ""), proxy };
}
