// Holds many streams open and says when things arrived. Plain sockets: a client that costs more than the server would
// be what is measured.
//
// What is sent carries the instant of sending in its title, `at <milliseconds>`, by the clock that both processes share.

import { connect } from "node:net";

export type Asked = { kind: "open"; url: string; users: string[]; apiKey: string } | { kind: "expect"; count: number };
export type Said = { kind: "opened"; seconds: number } | { kind: "arrived"; latenciesMs: number[] };

const ABREAST = 200;
const now = () => performance.timeOrigin + performance.now();
const say = (said: Said) => void process.send?.(said);

let latenciesMs: number[] = [];
let expected = Number.POSITIVE_INFINITY;

function arrived(text: string): void {
  for (const [, at] of text.matchAll(/"title":"at ([\d.]+)"/g)) {
    latenciesMs.push(now() - Number(at));
    if (latenciesMs.length < expected) continue;
    say({ kind: "arrived", latenciesMs });
    latenciesMs = [];
    expected = Number.POSITIVE_INFINITY;
  }
}

function openOne(url: URL, user: string, apiKey: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname);
    socket.once("error", reject);
    socket.setEncoding("utf8").on("data", (text: string) => {
      if (!text.startsWith("HTTP/1.1 ")) return arrived(text);
      if (!text.startsWith("HTTP/1.1 200")) return reject(new Error(text.slice(0, 200)));
      resolve();
    });
    socket.write(`GET /v1/inbox/${user}/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${apiKey}\r\n\r\n`);
  });
}

async function openAll(url: URL, users: string[], apiKey: string): Promise<number> {
  const startedAt = performance.now();
  let next = 0;
  const line = async () => {
    for (let user = users[next++]; user !== undefined; user = users[next++]) await openOne(url, user, apiKey);
  };
  await Promise.all(Array.from({ length: ABREAST }, line));
  return (performance.now() - startedAt) / 1000;
}

process.on("message", async (asked: Asked) => {
  if (asked.kind === "expect") expected = asked.count;
  else say({ kind: "opened", seconds: await openAll(new URL(asked.url), asked.users, asked.apiKey) });
});
process.once("disconnect", () => process.exit(0));
