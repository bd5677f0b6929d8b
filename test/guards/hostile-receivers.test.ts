// A tenant who names servers by the thousand that hang, refuse, throttle or dribble: what others send goes on beside it, to servers
// that are known to be well and to new ones, and so does mail.
//
// Sends have a minute here, and nobody waits for that long: others' go while every one of the hostile tenant's is still under way.

import { createServer, type Socket } from "node:net";
import { after, before, test } from "node:test";
import type { NotificationRequest } from "#domain/notification.ts";
import { mail, many, type Neighbours, startNeighbours } from "../support/neighbours.ts";
import { until } from "../support/until.ts";

const ORIGINS = 1_000;
const SAMPLES = 3;

/** Every address of 127.0.0.0/8 is a server of its own: how it behaves, its second number tells. */
const ACTS: { [kind: number]: (socket: Socket) => void } = {
  1: (socket) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
  2: () => undefined,
  3: (socket) => void socket.write("HTTP/1.1 429 Slow down\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n"),
  4(socket) {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
    const dribble = setInterval(() => socket.write("."), 1_000);
    socket.once("close", () => clearInterval(dribble));
  },
};
const [WELL, HANGS, THROTTLES, DRIBBLES] = [1, 2, 3, 4];

let isTurned = false;
const arrived: string[] = [];
const sockets = new Set<Socket>();
const server = createServer((socket) => {
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
  socket.on("error", () => undefined);
  const address = socket.localAddress ?? "";
  const kind = Number(address.split(".")[1]);
  // A request is one write of ours, and ends with its body.
  socket.on("data", (data: Buffer) => {
    if (!data.includes("\r\n\r\n")) return;
    arrived.push(`${address} ${/webhook-id: (\S+)/i.exec(data.toString())?.[1]}`);
    (kind === TURNS ? ACTS[isTurned ? HANGS : WELL] : ACTS[kind])?.(socket);
  });
});
/** Well at first. */
const TURNS = 5;

let both: Neighbours;
let port = 0;
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  port = (server.address() as { port: number }).port;
});
after(async () => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

const hook = (kind: number, n: number, at = port): NotificationRequest => ({
  channel: "webhook",
  recipient: { webhookUrl: `http://127.${kind}.${Math.floor(n / 250)}.${1 + (n % 250)}:${at}/` },
  content: { body: "b" },
});

const arrives = (id: string) => until(async () => (arrived.some((line) => line.endsWith(` ${id}`)) ? true : undefined));
const sendsHook = async (n: number) => {
  const [id = ""] = await both.send("other", [hook(WELL, n)]);
  await arrives(id);
};

async function assertOthersGoOn(): Promise<void> {
  for (let n = 0; n < SAMPLES; n++) {
    await both.passedBy(mail());
    await sendsHook(0);
    await sendsHook(++used);
  }
}
let used = 0;

async function flooded(requests: NotificationRequest[], act: () => Promise<unknown>): Promise<void> {
  both = await startNeighbours({}, { concurrency: 20, sendTimeoutMs: 60_000 });
  try {
    await both.work();
    // A server that is known to be well.
    await sendsHook(0);
    await both.send("hostile", requests);
    await act();
    await assertOthersGoOn();
  } finally {
    for (const socket of sockets) socket.destroy();
    await both.stop();
  }
}

const isUnderWay = (kind: number) =>
  until(async () => (arrived.filter((line) => line.startsWith(`127.${kind}.`)).length >= 2 ? true : undefined));

for (const [what, kind] of [
  ["hang", HANGS],
  ["throttle for an hour", THROTTLES],
  ["answer a byte a second", DRIBBLES],
] as const) {
  test(`a thousand servers of one tenant that ${what} keep nobody else's waiting`, () =>
    flooded(
      many(ORIGINS, (n) => hook(kind as number, n)),
      () => isUnderWay(kind as number),
    ));
}

test("a thousand servers of one tenant that refuse keep nobody else's waiting", async () => {
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
  const { port: refusing } = closed.address() as { port: number };
  await new Promise((resolve) => closed.close(resolve));
  await flooded(
    many(ORIGINS, (n) => hook(WELL, n, refusing)),
    async () => undefined,
  );
});

test("servers of one tenant that were well and hang now keep nobody else's waiting", async () => {
  isTurned = false;
  const proven = many(30, (n) => hook(TURNS, n));
  await flooded(proven, async () => {
    await until(async () =>
      arrived.filter((line) => line.startsWith(`127.${TURNS}.`)).length >= 30 ? true : undefined,
    );
    isTurned = true;
    await both.send(
      "hostile",
      many(ORIGINS, (n) => hook(TURNS, n % 30)),
    );
    await until(async () =>
      arrived.filter((line) => line.startsWith(`127.${TURNS}.`)).length >= 32 ? true : undefined,
    );
  });
});
