// A name server on loopback: it answers as told, or never.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv4 } from "node:net";

export type NameServer = {
  /** As address:port. */
  address: string;
  /** The names that were asked for, each time. */
  asked: string[];
  /** Resolves once a name was asked for. */
  wasAsked(name: string): Promise<void>;
  close(): void;
};

/** What a name leads to: addresses, or silence. A name that is not told of does not exist. */
export type Zone = { [name: string]: readonly string[] | "silence" };

const A = 1;
const AAAA = 28;
const NO_SUCH_NAME = 3;

export async function startNameServer(zone: Zone): Promise<NameServer> {
  const socket = createSocket("udp4").bind(0, "127.0.0.1");
  await once(socket, "listening");
  const asked: string[] = [];
  socket.on("message", (query, { port, address }) => {
    const { name, type, end } = questionOf(query);
    const known = zone[name];
    if (known !== "silence") {
      const addresses = known?.filter((one) => type === (isIPv4(one) ? A : AAAA)) ?? [];
      socket.send(answerTo(query.subarray(0, end), addresses, known ? 0 : NO_SUCH_NAME), port, address);
    }
    asked.push(name);
    socket.emit("asked");
  });
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    async wasAsked(name) {
      while (!asked.includes(name)) await once(socket, "asked", { signal: AbortSignal.timeout(20_000) });
    },
    close: () => socket.close(),
  };
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let size = query.readUInt8(at); size > 0; size = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + size));
    at += 1 + size;
  }
  return { name: labels.join("."), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function answerTo(question: Buffer, addresses: readonly string[], fault: number): Buffer {
  const head = Buffer.from(question);
  head.writeUInt16BE(0x8180 | fault, 2);
  head.writeUInt16BE(addresses.length, 6);
  return Buffer.concat([head, ...addresses.map(recordOf)]);
}

/** Its name is that of the question; it holds for a minute. */
function recordOf(address: string): Buffer {
  const data = isIPv4(address) ? Buffer.from(address.split(".").map(Number)) : bytesOfSix(address);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(data.length === 4 ? A : AAAA, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(60, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

/** All eight groups must be written out. */
const bytesOfSix = (address: string): Buffer =>
  Buffer.from(
    address
      .split(":")
      .map((group) => group.padStart(4, "0"))
      .join(""),
    "hex",
  );
