// A server that callbacks are posted to: it notes what came, and answers as it is told.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever was posted, and fails if it is not there
export type Posted = { path: string; headers: IncomingHttpHeaders; raw: string; body: any };

export type CallbackReceiver = {
  url: string;
  posted: Posted[];
  /** Of one path. */
  at(path: string): Posted[];
  close(): void;
};

/** `answer` ends the response, now or later or never. */
export async function startReceiver(
  answer: (posted: Posted, response: ServerResponse) => void = (_, response) => response.writeHead(204).end(),
): Promise<CallbackReceiver> {
  const posted: Posted[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const raw = Buffer.concat(parts).toString();
      const one = { path: request.url ?? "", headers: request.headers, raw, body: JSON.parse(raw) };
      posted.push(one);
      answer(one, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    posted,
    at: (path) => posted.filter((one) => one.path === path),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
