// As much of PostgreSQL's protocol as the proxy needs to know what it is cutting.

export type Message = { type: string; bytes: Buffer };

/** Cuts a stream into whole messages. A client's first message has no type; it comes out with an empty one. */
export function createFramer(side: "client" | "server"): (chunk: Buffer) => Message[] {
  let rest: Buffer = Buffer.alloc(0);
  let isFirst = side === "client";
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const messages: Message[] = [];
    for (;;) {
      const head = isFirst ? 0 : 1;
      if (rest.length < head + 4) return messages;
      const size = head + rest.readInt32BE(head);
      if (rest.length < size) return messages;
      const type = isFirst ? "" : String.fromCharCode(rest[0] as number);
      messages.push({ type, bytes: rest.subarray(0, size) });
      rest = rest.subarray(size);
      isFirst = false;
    }
  };
}

/** The name of the prepared statement that a Bind message runs; undefined for every other message. */
export function boundStatement({ type, bytes }: Message): string | undefined {
  if (type !== "B") return undefined;
  const from = bytes.indexOf(0, 5) + 1;
  return bytes.toString("utf8", from, bytes.indexOf(0, from));
}

/** How many rows a CommandComplete speaks of: the last word of its tag. */
export function completedRows({ type, bytes }: Message): number | undefined {
  if (type !== "C") return undefined;
  const tag = bytes.toString("utf8", 5, bytes.length - 1);
  return Number(/\d+$/.exec(tag)?.[0] ?? 0);
}
