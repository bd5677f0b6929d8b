// A process with the least that could be called a stream: Node's own server, a list of responses, and a write to each. No
// authentication, no database, no resuming. Whatever Carillon takes more than this is what keeping and resuming cost.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const streams = new Map<string, Set<ServerResponse>>();

const server = createServer((request, response) => {
  const [, , , user = ""] = (request.url ?? "").split("/");
  if (request.method === "GET" && request.url?.endsWith("/stream")) {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": hello\n\n");
    const mine = streams.get(user) ?? new Set();
    streams.set(user, mine.add(response));
    response.once("close", () => mine.delete(response));
    return;
  }
  if (request.method === "GET") return void response.end("{}");
  let text = "";
  request.setEncoding("utf8").on("data", (part) => {
    text += part;
  });
  request.on("end", () => {
    const { recipient, content } = JSON.parse(text);
    const event = Buffer.from(`id: 1\nevent: notification\ndata: ${JSON.stringify(content)}\n\n`);
    for (const stream of streams.get(recipient.userId) ?? []) stream.write(event);
    response.writeHead(202).end("{}");
  });
});
server.listen(0, "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.once("SIGTERM", () => process.exit(0));
