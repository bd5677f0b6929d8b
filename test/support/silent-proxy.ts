// A TCP proxy that can fall silent: connections stay open, and nothing passes. So looks a network that drops packets, or a
// machine that hangs.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type SilentProxy = {
  port: number;
  /** Nothing passes over the connections that are open now; new ones are as ever. */
  silence(): void;
  /** New connections are accepted, and nothing passes over them either. */
  hang(): void;
  connections(): number;
  close(): Promise<void>;
};

/** `target` is a Unix socket's path, or a port of this machine. */
export async function openSilentProxy(target: string | number): Promise<SilentProxy> {
  const pairs = new Set<[Socket, Socket]>();
  let isHanging = false;

  const server = createServer((near) => {
    const far = typeof target === "string" ? connect(target) : connect(target, "127.0.0.1");
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
    hang() {
      isHanging = true;
      silence();
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
