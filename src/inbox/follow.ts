// How readers of inboxes come to know what is new: at first and whenever they are behind from the table, each for itself; live,
// all that read an inbox from one reading.
//
// Readings are numbered, so that nobody is told by an old one what it has read for itself since. State: the last number.

import type { News, Reading } from "#store/inbox-news.ts";
import type { End, Hub, HubOptions } from "./hub.ts";
import { advance, emptied, eventText, isCaughtUp, type Reader, type Wire, wireOf, write } from "./reader.ts";
import type { Readers } from "./readers.ts";
import { inSlices, SLICE, turn } from "./slices.ts";

export type FollowOptions = Pick<HubOptions, "read" | "now" | "onEvents"> & {
  readers: Readers;
  end: (reader: Reader, reason: End) => void;
  /** How soon a client comes back when its stream ends. */
  retryMs: () => number;
};

export type Follow = Pick<Hub, "begin" | "open" | "readings" | "tell">;

type CatchUp = (reader: Reader) => Promise<void>;

const FROM_NOW_ON = Number.MAX_SAFE_INTEGER;

export function createFollow(options: FollowOptions): Follow {
  const { read, now, onEvents, readers, end, retryMs } = options;
  let lastNo = 0;
  const catchUp = createCatchUp(options, () => ++lastNo);

  function push(reader: Reader, news: News, wire: Wire): void {
    for (const chunk of advance(reader, news, wire)) write(reader, chunk, now());
    if (reader.fullSinceMs !== undefined || !isCaughtUp(reader, news)) void catchUp(reader);
  }

  return {
    async begin(reader, from) {
      reader.readNo = ++lastNo;
      const [news] = await read([{ ...reader.inbox, afterSeq: from?.seq ?? FROM_NOW_ON }]);
      if (!news) throw new Error("nothing was read");
      const chunks: Buffer[] = [Buffer.from(`retry: ${retryMs()}\n`)];
      if (from) {
        reader.position = from;
        chunks.push(...advance(reader, news, wireOf(news)));
      } else {
        // With an id: a reader that is told nothing more can still say from where on it was there.
        reader.position = { epoch: news.epoch, seq: news.lastSeq };
        reader.unread = news.unread;
        chunks.push(Buffer.from(eventText("unread", String(news.unread), reader.position)));
      }
      reader.isDirty ||= !isCaughtUp(reader, news);
      return Buffer.concat(chunks);
    },

    open(reader, out, first) {
      reader.out = out;
      out.on("drain", () => {
        reader.fullSinceMs = undefined;
      });
      out.once("close", () => end(reader, "left"));
      if (out.destroyed || out.socket?.destroyed) return end(reader, "left");
      // It was let go while it was still reading.
      if (reader.isEnded) return void out.end();
      out.socket?.setNoDelay(true);
      write(reader, first, now());
      if (reader.isDirty || reader.fullSinceMs !== undefined) void catchUp(reader);
      else reader.isLive = true;
    },

    readings(inboxes) {
      const no = ++lastNo;
      const groups = inboxes ? inboxes.map(readers.of) : [...readers.byInbox()];
      return groups.flatMap((group) => {
        const least = leastLive(group);
        return least ? [{ ...readingOf(least), no }] : [];
      });
    },

    async tell(readings, news) {
      let events = 0;
      for (const [n, reading] of readings.entries()) {
        const one = news[n];
        const group = readers.of(reading);
        if (!one || group.size === 0) continue;
        const wire = wireOf(one);
        await inSlices(group, (reader) => {
          if (reader.isEnded) return false;
          if (!reader.isLive) reader.isDirty = true;
          // It has read for itself since this was asked for, and may be ahead of it or behind: the table knows.
          else if (reader.readNo > reading.no) void catchUp(reader);
          else push(reader, one, wire);
          events++;
          return true;
        });
        if (n % SLICE === SLICE - 1) await turn();
      }
      onEvents?.(events);
    },
  };
}

/** Reads the table until nothing is missing, no faster than the reader takes it. */
function createCatchUp({ read, now, end }: FollowOptions, nextNo: () => number): CatchUp {
  return async (reader) => {
    reader.isLive = false;
    try {
      while (!reader.isEnded) {
        if (reader.fullSinceMs !== undefined) await emptied(reader);
        if (reader.isEnded) return;
        reader.isDirty = false;
        reader.readNo = nextNo();
        const [news] = await read([readingOf(reader)]);
        if (!news) throw new Error("nothing was read");
        for (const chunk of advance(reader, news, wireOf(news))) write(reader, chunk, now());
        if (isCaughtUp(reader, news) && !reader.isDirty && reader.fullSinceMs === undefined) break;
      }
      reader.isLive = true;
    } catch {
      // The database is away. The client comes back and says what it has.
      end(reader, "failed");
    }
  };
}

const readingOf = ({ inbox, position }: Reader): Reading => ({ ...inbox, afterSeq: position.seq });

/** Of an inbox's live readers the one that is furthest behind. The others will look again. */
function leastLive(group: ReadonlySet<Reader>): Reader | undefined {
  let least: Reader | undefined;
  for (const reader of group) {
    if (!reader.isLive) reader.isDirty = true;
    else if (!least || reader.position.seq < least.position.seq) least = reader;
  }
  return least;
}
