// A receiver of callbacks: answers every request after so many milliseconds, or none until it is told to. Reports how many it answered, when
// the last, and the most connections that it had at once.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { machineNow } from "./payload.ts";

const LATENCY_MS = Number(process.argv[2] ?? 5);
let isHanging = process.argv[3] === "hanging";
const state = { answered: 0, lastAt: 0, connections: 0 };
let open = 0;

const server = createServer((request, response) => {
  request.resume();
  request.once("end", () => {
    // Whoever gave up has gone; who waits still is never answered.
    if (isHanging) return;
    setTimeout(() => {
      state.answered++;
      state.lastAt = machineNow();
      response.writeHead(204).end();
    }, LATENCY_MS);
  });
});
server.on("connection", (socket) => {
  socket.setNoDelay(true);
  state.connections = Math.max(state.connections, ++open);
  socket.once("close", () => open--);
});
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on("message", (message) => {
  if (message === "report") process.send?.({ ...state });
  if (message === "answer") isHanging = false;
});
process.on("SIGTERM", () => process.exit(0));
