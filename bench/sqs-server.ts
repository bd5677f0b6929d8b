// A server that speaks SQS, in a process of its own so that its processor is nobody else's. It answers as late as it is told to, as what is far away does.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { startFauxqs } from "fauxqs";

let delayMs = 0;
process.on("message", (told) => {
  delayMs = Number(told);
});
const server = await startFauxqs({ port: 0, logger: false });
const target = `http://127.0.0.1:${server.port}/`;

const front = createServer(async (request, response) => {
  const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
  const body = Buffer.concat(await request.toArray());
  if (delayMs > 0) await sleep(delayMs);
  const answer = await fetch(target, { method: "POST", headers: headers as { [name: string]: string }, body });
  response.writeHead(answer.status).end(await answer.text());
});
front.listen(0, "127.0.0.1", () => process.send?.({ port: (front.address() as AddressInfo).port }));
