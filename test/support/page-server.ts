// Serves the pages of the inbox in front of a whole service, as a reverse proxy does: one origin for both.

import { once } from "node:events";
import { createServer as createHttpServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { createAuthenticate } from "#http/core/authenticate.ts";
import { createServer } from "#http/core/server.ts";
import { demoRoutes } from "#http/pages/demo-page.ts";
import { inboxScriptRoutes } from "#http/pages/inbox-script.ts";
import { createLog } from "#telemetry/log.ts";
import { createMetrics } from "#telemetry/metrics.ts";
import type { Service } from "./service.ts";

export type PageServer = { url: string; close(): Promise<void> };

/** Its own answers carry the headers that every page of ours carries; `/v1` is the service's. */
export async function startPageServer(service: Pick<Service, "db">, target: () => string): Promise<PageServer> {
  const tokens = { mint: async () => "", read: async () => undefined };
  const auth = createAuthenticate({ db: service.db, tokens, fixedKey: undefined, now: Date.now });
  const app = createServer(
    { log: createLog("silent"), metrics: createMetrics(), auth, newRequestId: () => "r", isStopping: () => false },
    [...inboxScriptRoutes(), ...demoRoutes({ isDevelopment: true })],
  );
  await app.ready();
  const server = createHttpServer((incoming, outgoing) => {
    if (!incoming.url?.startsWith("/v1/")) {
      app.routing(incoming, outgoing);
      return;
    }
    const { method = "GET", headers } = incoming;
    const passed = request(target() + incoming.url, { method, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      // Piped, a head without a body yet would wait for the first event.
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
    });
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await app.close();
    },
  };
}
