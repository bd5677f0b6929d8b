// A provider's server that takes its time: HTTP/1.1 and HTTP/2 on two ports, the same delay for every request. Reports how
// many it answered, and the most connections it ever had at once.

import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo, Server } from "node:net";

const LATENCY_MS = Number(process.argv[2] ?? 20);
const state = { answered: 0, connections: 0 };
let open = 0;
const watch = (server: Server) =>
  server.on("connection", (socket) => {
    // As any server that answers in small pieces does.
    socket.setNoDelay(true);
    state.connections = Math.max(state.connections, ++open);
    socket.once("close", () => open--);
  });

const http1 = createServer((request, response) => {
  request.resume();
  request.once("end", () =>
    setTimeout(() => {
      state.answered++;
      response.writeHead(202, { "x-message-id": String(state.answered) }).end();
    }, LATENCY_MS),
  );
});
const http2 = createHttp2Server({ settings: { maxConcurrentStreams: 1000 } });
http2.on("stream", (stream) => {
  stream.resume();
  stream.once("end", () =>
    setTimeout(() => {
      state.answered++;
      if (!stream.destroyed) stream.respond({ ":status": 200, "apns-id": String(state.answered) }, { endStream: true });
    }, LATENCY_MS),
  );
});
const portOf = (server: Server): Promise<number> =>
  new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)));
watch(http1);
watch(http2);
process.send?.({ http1: await portOf(http1), http2: await portOf(http2) });
process.on("message", (message) => {
  if (message === "report") process.send?.({ ...state });
  if (message === "reset") Object.assign(state, { answered: 0, connections: open });
});
process.on("SIGTERM", () => process.exit(0));
