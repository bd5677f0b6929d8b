// Receives webhooks as its paths say: /ok takes them, /refuse refuses them for good, /down is out of order until it is mended,
// /hold takes them and answers once it is told to. Mail through a stand-in for SendGrid is taken too.

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { until } from "../support/until.ts";

export type Receiver = {
  url: string;
  /** How often something that says this has come. */
  times(text: string): number;
  /** Resolves once something that says this has come. */
  arrived(text: string): Promise<void>;
  /** From now on /down takes what comes. */
  mend(): void;
  /** What is held is answered, and what comes to /hold from now on at once. */
  release(): void;
  /** What comes to /hold from now on is held again. */
  hold(): void;
  close(): Promise<void>;
};

export async function startReceiver(): Promise<Receiver> {
  const bodies: string[] = [];
  let held: (() => void)[] | undefined = [];
  let isMended = false;
  let mails = 0;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += part;
    const path = request.url ?? "";
    bodies.push(body);
    const answer = (status: number) => void response.writeHead(status).end();
    if (path === "/v3/mail/send") response.writeHead(202, { "x-message-id": `sg-${++mails}` }).end();
    else if (path === "/refuse") answer(400);
    else if (path === "/down") answer(isMended ? 204 : 503);
    else if (path === "/hold" && held) held.push(() => answer(204));
    else answer(204);
  }
  const server = createServer((request, response) => {
    // Whoever was killed goes away in the middle.
    serve(request, response).catch(() => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const times = (text: string) => bodies.filter((body) => body.includes(text)).length;

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    times,
    arrived: async (text) => void (await until(async () => times(text) > 0 || undefined)),
    mend() {
      isMended = true;
    },
    release() {
      for (const answer of held ?? []) answer();
      held = undefined;
    },
    hold() {
      held ??= [];
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
