// The servers behind webhooks: one process that listens on all addresses, so that each of 127.0.0.0/8 is a host of its own.
//
// The path says what a host does: "/" takes a message in and answers at once, "/after/<ms>" answers later, "/never" does not.
// What came in at "/" is told with the instant that travelled along.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { machineNow } from "./payload.ts";

const handedAts: number[] = [];
const latencies: number[] = [];

function takeIn(body: string): void {
  const at = Number(JSON.parse(body).data?.metadata?.at ?? 0);
  if (at === 0) return;
  latencies.push(machineNow() - at);
  handedAts.push(at);
}

const server = createServer((request, response) => {
  const answer = () => response.writeHead(204).end();
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (text: string) => {
    body += text;
  });
  request.once("end", () => {
    if (request.url === "/never") return;
    const [, afterMs] = /^\/after\/(\d+)$/.exec(request.url ?? "") ?? [];
    if (afterMs !== undefined) return setTimeout(answer, Number(afterMs));
    takeIn(body);
    return answer();
  });
});
server.listen(0, "0.0.0.0", () => process.send?.({ port: (server.address() as AddressInfo).port }));
setInterval(() => process.send?.({ measured: latencies.length }), 20);
process.on("message", () => process.send?.({ latencies, handedAts }, () => process.exit(0)));
process.on("SIGTERM", () => process.exit(0));
