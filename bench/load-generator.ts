// A process that loads an HTTP server: connections that stay open, each with one request under way.
//
// Written on sockets, because server, database and load share few cores: what the load costs, the
// server lacks. Against the bare route on two cores a request costs 18 µs of CPU here and 24 µs with
// autocannon 8; 12 of the 18 are the kernel's. The bytes of a request are built once per connection
// and only its counter is written anew; of an answer, the status and the length are read.

import { connect, type Socket } from "node:net";
import { notification } from "./payload.ts";
import { quantile } from "./statistics.ts";

export type LoadOptions = { url: string; connections: number; apiKey: string };
export type LoadReport = { answers: number; seconds: number; p50Ms: number; p99Ms: number };
export type LoadAnswer = LoadReport | { error: string };

const HEAD_END = Buffer.from("\r\n\r\n");
const LENGTH = Buffer.from("content-length: ");
const STATUS_FROM = 9;
const STATUS_TO = 12;
const READ_BYTES = 16_384;

type Connection = {
  socket: Socket;
  request: Buffer;
  /** Where the seven digits of the counter stand in the request. */
  counterAt: number;
  sentAt: number;
  /** The beginning of an answer that came in pieces. */
  partial: Buffer | undefined;
};

let sent = 0;
let answers = 0;
let underWay = 0;
let deadline = 0;
let latencies: number[] = [];
let onIdle: (() => void) | undefined;

function send(connection: Connection): void {
  connection.request.write(String(1_000_000 + sent++), connection.counterAt, "latin1");
  connection.sentAt = performance.now();
  underWay++;
  connection.socket.write(connection.request);
}

function read(connection: Connection, chunk: Buffer): void {
  const data = connection.partial ? Buffer.concat([connection.partial, chunk]) : chunk;
  if (!isWhole(data)) {
    // A copy, because the next read overwrites the chunk.
    connection.partial = Buffer.from(data);
    return;
  }
  connection.partial = undefined;
  const status = data.toString("latin1", STATUS_FROM, STATUS_TO);
  if (status !== "202") fail(`an answer was ${data.toString("latin1", 0, 2000)}`);
  const now = performance.now();
  latencies.push(now - connection.sentAt);
  answers++;
  underWay--;
  if (now < deadline) send(connection);
  else if (underWay === 0) onIdle?.();
}

function isWhole(data: Buffer): boolean {
  const headEnd = data.indexOf(HEAD_END);
  if (headEnd < 0) return false;
  const at = data.indexOf(LENGTH);
  if (at < 0 || at > headEnd) fail(`an answer has no content-length: ${data.toString("latin1", 0, 2000)}`);
  const length = Number.parseInt(data.toString("latin1", at + LENGTH.length, headEnd), 10);
  return data.length >= headEnd + HEAD_END.length + length;
}

function fail(error: string): never {
  process.send?.({ error } satisfies LoadAnswer);
  throw new Error(error);
}

async function open({ url, apiKey }: LoadOptions): Promise<Connection> {
  const { hostname, port } = new URL(url);
  const body = JSON.stringify(notification(0));
  const head = [
    "POST /v1/notifications HTTP/1.1",
    `host: ${hostname}:${port}`,
    `authorization: Bearer ${apiKey}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
  ].join("\r\n");
  const request = Buffer.from(`${head}\r\n\r\n${body}`);
  const socket = connect({
    host: hostname,
    port: Number(port),
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafe(READ_BYTES),
      callback(length, buffer) {
        read(connection, (buffer as Buffer).subarray(0, length));
        return true;
      },
    },
  });
  const connection = { socket, request, counterAt: request.indexOf("1000000"), sentAt: 0, partial: undefined };
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  socket.on("error", (error) => fail(error.message)).on("close", () => fail("the server closed a connection"));
  return connection;
}

/** No request is cut off: the clock stops at the last answer. */
async function run(connections: readonly Connection[], seconds: number): Promise<LoadReport> {
  answers = 0;
  latencies = [];
  const startedAt = performance.now();
  deadline = startedAt + seconds * 1000;
  const idle = new Promise<void>((resolve) => {
    onIdle = resolve;
  });
  for (const connection of connections) send(connection);
  await idle;
  const elapsed = (performance.now() - startedAt) / 1000;
  return { answers, seconds: elapsed, p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) };
}

const options = JSON.parse(process.argv[2] ?? "") as LoadOptions;
const connections = await Promise.all(Array.from({ length: options.connections }, () => open(options)));
// Nobody is left to tell.
process.once("disconnect", () => process.exit());
process.on("message", async (seconds: number) => {
  process.send?.((await run(connections, seconds)) satisfies LoadAnswer);
});
