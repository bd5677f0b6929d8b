// Requests that fetch would change or refuse: paths with dots, methods that browsers do not know.

import { type IncomingHttpHeaders, request } from "node:http";
import { ADMIN_KEY } from "./service.ts";

export type ByHand = { status: number; headers: IncomingHttpHeaders };

export function byHand(url: string, method: string, path: string, body?: string): Promise<ByHand> {
  const { hostname, port } = new URL(url);
  const headers = {
    authorization: `Bearer ${ADMIN_KEY}`,
    ...(body !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
  };
  return new Promise((resolve, reject) => {
    const asked = request({ method, hostname, port, path, headers, agent: false }, (answer) => {
      answer.resume();
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers });
    });
    asked.on("error", reject).end(body);
  });
}
