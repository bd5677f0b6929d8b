// One open stream: how far its reader has come, and what is written to it.
//
// Nothing is written past what the socket will hold: a reader who does not keep up is left alone until it has read, and
// catches up from the table then. Who reads nothing for too long is cut off. So a slow reader costs one full buffer and no more.

import type { ServerResponse } from "node:http";
import { bodyOfItem, type Inbox, ORIGIN, type Position, written } from "#domain/inbox.ts";
import type { News } from "#store/inbox-news.ts";

export type Reader = {
  inbox: Inbox;
  out: ServerResponse | undefined;
  position: Position;
  /** The count it was told last. */
  unread: number;
  /** Live readers are told what is new; the others read the table until they have caught up. */
  isLive: boolean;
  /** The reading that it was moved on by last, if it was its own; later readings have higher numbers. */
  readNo: number;
  /** Something came while it was not live. */
  isDirty: boolean;
  isEnded: boolean;
  /** When its buffer filled up. */
  fullSinceMs: number | undefined;
  wroteAtMs: number;
  endsAtMs: number;
};

/** Nobody has written to it yet: it stands nowhere, and has still to read. */
export const newReader = (inbox: Inbox, nowMs: number, endsAtMs: number): Reader => ({
  inbox,
  out: undefined,
  position: { epoch: 0, seq: 0 },
  unread: -1,
  isLive: false,
  readNo: 0,
  isDirty: false,
  isEnded: false,
  fullSinceMs: undefined,
  wroteAtMs: nowMs,
  endsAtMs,
});

/** Further behind than this, loading the list is quicker than being told one by one. */
const MOST_BEHIND = 1_000;

/** False when something that the reader has not seen may be gone, or the numbering is another one. */
export function canResume({ epoch, lastSeq, forgottenSeq }: News, from: Position): boolean {
  if (lastSeq - from.seq > MOST_BEHIND || from.seq < forgottenSeq) return false;
  return (from.epoch === ORIGIN.epoch && from.seq === ORIGIN.seq) || (from.epoch === epoch && from.seq <= lastSeq);
}

/** What is new, on the wire: items are written once, however many read them. */
export type Wire = (afterSeq: number) => { chunk: Buffer; lastSeq: number };

export function wireOf({ epoch, items }: News): Wire {
  const whole = new Map<number, { chunk: Buffer; lastSeq: number }>();
  let texts: string[] | undefined;
  return (afterSeq) => {
    let found = whole.get(afterSeq);
    if (!found) {
      texts ??= items.map((item) =>
        eventText("notification", JSON.stringify(bodyOfItem(item)), { epoch, seq: item.seq }),
      );
      const rest = texts.filter((_, n) => (items[n]?.seq ?? 0) > afterSeq);
      found = { chunk: Buffer.from(rest.join("")), lastSeq: items.at(-1)?.seq ?? afterSeq };
      whole.set(afterSeq, found);
    }
    return found;
  };
}

export function eventText(name: string, data: string, position?: Position): string {
  return `${position ? `id: ${written(position)}\n` : ""}event: ${name}\ndata: ${data}\n\n`;
}

/** Moves the reader on by what is new, and answers with what it must be told. */
export function advance(reader: Reader, news: News, wire: Wire): Buffer[] {
  const chunks: Buffer[] = [];
  if (canResume(news, reader.position)) {
    const { chunk, lastSeq } = wire(reader.position.seq);
    if (chunk.length > 0) chunks.push(chunk);
    // Without items nothing is left to tell up to where the inbox stands.
    const reached = news.items.length === 0 ? news.lastSeq : lastSeq;
    reader.position = { epoch: news.epoch, seq: Math.max(reader.position.seq, reached) };
  } else {
    reader.position = { epoch: news.epoch, seq: news.lastSeq };
    chunks.push(Buffer.from(eventText("reset", "{}", reader.position)));
  }
  if (reader.unread !== news.unread) {
    reader.unread = news.unread;
    chunks.push(Buffer.from(eventText("unread", String(news.unread))));
  }
  return chunks;
}

export const isCaughtUp = ({ position }: Reader, { epoch, lastSeq }: News): boolean =>
  position.epoch === epoch && position.seq >= lastSeq;

/** What is known of a stream by whoever writes to it. */
export type Written = Pick<Reader, "out" | "isEnded" | "wroteAtMs" | "fullSinceMs">;

export function write(reader: Written, chunk: string | Buffer, nowMs: number): void {
  const { out } = reader;
  if (!out || reader.isEnded || chunk.length === 0) return;
  reader.wroteAtMs = nowMs;
  if (!out.write(chunk)) reader.fullSinceMs ??= nowMs;
}

/** When it has been read from, or is gone. */
export const emptied = ({ out }: Pick<Written, "out">): Promise<void> =>
  new Promise((resolve) => {
    if (!out || out.destroyed) return resolve();
    const done = () => {
      out.off("drain", done).off("close", done);
      resolve();
    };
    out.once("drain", done).once("close", done);
  });
