// HTTP for bodies too large to be held as text: an answer is read as it comes. What fails, throws: whoever archives tries again later.

import { Agent, type Dispatcher, request } from "undici";

export type BulkRequest = {
  method: "GET" | "PUT" | "HEAD";
  url: string;
  headers: { [name: string]: string };
  body?: Buffer;
};
/** A body must be read to its end, or dumped. */
export type BulkAnswer = {
  status: number;
  header: (name: string) => string | undefined;
  body: Dispatcher.ResponseData["body"];
};

export type BulkHttp = { ask(request: BulkRequest): Promise<BulkAnswer>; close(): Promise<void> };

const CONNECT_MS = 10_000;
/** Without a byte, in either direction. A store that hangs must not keep a chore for longer. */
const SILENT_MS = 30_000;

export function createBulkHttp(): BulkHttp {
  const agent = new Agent({
    connect: { timeout: CONNECT_MS },
    headersTimeout: SILENT_MS,
    bodyTimeout: SILENT_MS,
    keepAliveTimeout: 10_000,
    pipelining: 1,
  });
  return {
    async ask({ method, url, headers, body }) {
      const answer = await request(url, { dispatcher: agent, method, headers, ...(body && { body }) });
      return {
        status: answer.statusCode,
        header: (name) => [answer.headers[name]].flat()[0],
        body: answer.body,
      };
    },
    close: () => agent.destroy(),
  };
}
