// What a fetch brought for one partition, as messages: without markers, without what was aborted, without what lies before where we asked.

import type { FetchResponse } from "./kafka-asking.ts";
import { type Batch, type Message, MOST_HEADER_BYTES } from "./source.ts";

export type Fetched = FetchResponse["responses"][number]["partitions"][number];
export type Headers = readonly (readonly [Buffer | null, Buffer | null])[];
/** With its headers as they came, for whoever is told that it was refused. */
export type Read = Message & { raw: Headers; key: Buffer | null; bytes: number };

const IS_TRANSACTIONAL = 1 << 4;
const IS_CONTROL = 1 << 5;
const ABORT = 0;

/** `next` is where to go on, also where none of them is for us. */
export function messagesOf(
  { records, abortedTransactions }: Fetched,
  from: number,
): { messages: Read[]; next: number } {
  const messages: Read[] = [];
  let next = from;
  // As Kafka's own client does it: whoever aborts is left out from the first of its messages to its marker.
  const aborted = [...(abortedTransactions ?? [])].sort((a, b) => Number(a.firstOffset - b.firstOffset));
  const aborting = new Set<bigint>();
  for (const batch of records ?? []) {
    const first = Number(batch.firstOffset);
    const last = first + batch.lastOffsetDelta;
    if (last < from) continue;
    next = Math.max(next, last + 1);
    while (aborted[0] && Number(aborted[0].firstOffset) <= last) aborting.add(aborted.shift()?.producerId as bigint);
    if (batch.attributes & IS_CONTROL) {
      if (batch.records[0]?.key?.readInt16BE(2) === ABORT) aborting.delete(batch.producerId);
      continue;
    }
    if (batch.attributes & IS_TRANSACTIONAL && aborting.has(batch.producerId)) continue;
    for (const { key, value, headers, offsetDelta } of batch.records) {
      const offset = first + offsetDelta;
      if (offset >= from) messages.push(messageOf(offset, key, value, headers));
    }
  }
  return { messages, next };
}

const NO_HEADERS: ReadonlyMap<string, string> = new Map();

function messageOf(offset: number, key: Buffer | null, value: Buffer | null, raw: Headers): Read {
  let headerBytes = 0;
  for (const [name, said] of raw) headerBytes += (name?.length ?? 0) + (said?.length ?? 0);
  const bytes = headerBytes + (value?.length ?? 0) + (key?.length ?? 0);
  const headers = raw.length === 0 || headerBytes > MOST_HEADER_BYTES ? NO_HEADERS : headersOf(raw);
  return { offset, headers, headerBytes, value: value ?? undefined, raw, key, bytes };
}

function headersOf(raw: Headers): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (const [name, said] of raw) {
    if (name && said) headers.set(name.toString("latin1").toLowerCase(), said.toString("utf8"));
  }
  return headers;
}

/** What is kept in one transaction. Those of a partition wait for each other: with a thousand, what each takes besides its rows was a sixth of its reader's time. */
const MOST_MESSAGES = 4_000;
const MOST_BYTES = 4 * 1024 * 1024;

export type ReadBatch = Omit<Batch, "messages"> & { messages: readonly Read[]; bytes: number };

export function batchesOf(
  place: Pick<Batch, "topic" | "partition" | "from" | "next" | "ends">,
  messages: readonly Read[],
): ReadBatch[] {
  const batches: ReadBatch[] = [];
  let { from } = place;
  let some: Read[] = [];
  let bytes = 0;
  const close = (next: number) => {
    batches.push({ ...place, from, next, messages: some, bytes });
    [from, some, bytes] = [next, [], 0];
  };
  for (const message of messages) {
    if (some.length === MOST_MESSAGES || (some.length > 0 && bytes + message.bytes > MOST_BYTES)) close(message.offset);
    some.push(message);
    bytes += message.bytes;
  }
  if (place.next > from) close(place.next);
  return batches;
}

/** Two that are half as large: what is too much for one transaction may not be too much for two. */
export function halves(batch: ReadBatch): ReadBatch[] {
  const middle = batch.messages[Math.ceil(batch.messages.length / 2)];
  if (!middle) return [batch];
  const at = middle.offset;
  const part = (from: number, next: number, messages: readonly Read[]): ReadBatch => ({
    ...batch,
    from,
    next,
    messages,
    bytes: messages.reduce((sum, { bytes }) => sum + bytes, 0),
  });
  return [
    part(
      batch.from,
      at,
      batch.messages.filter(({ offset }) => offset < at),
    ),
    part(
      at,
      batch.next,
      batch.messages.filter(({ offset }) => offset >= at),
    ),
  ];
}
