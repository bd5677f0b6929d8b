// Whether we will be able to listen, found out before anything else is made.

import { once } from "node:events";
import { createServer } from "node:net";

/** Rejects as listening itself would. */
export async function assertPortIsFree(host: string, port: number): Promise<void> {
  const server = createServer().listen({ host, port });
  await once(server, "listening");
  server.close();
  await once(server, "close");
}
