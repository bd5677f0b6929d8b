// How providers speak HTTP/2 to one origin: many requests side by side on few connections.
//
// A connection takes as many requests as its server allows. When all are full another is opened, up to a bound; what
// finds no room waits. As with HTTP/1.1, a failure tells whether the request may have arrived: not if it never got a
// connection, if the server refused its stream, or if a GOAWAY names an earlier one as the last that was processed.

import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { Category } from "#domain/attempt.ts";
import { oneLine } from "#domain/said.ts";
import { type Clock, startClock, type Time } from "./clock.ts";
import { hear } from "./heard.ts";
import type { HttpAnswer } from "./http.ts";
import type { Failed } from "./verdict.ts";

export type Http2Options = {
  origin: string;
  /** The most connections at a time. */
  connections?: number;
  /** How often a connection is asked whether it lives; one that does not answer in time is given up. */
  pingEveryMs?: number;
  pingAnswerMs?: number;
};
export type Http2Request = Time & { path: string; headers: { [name: string]: string }; body: string };

export type Http2 = {
  /** Resolves with the answer, or with a failure when there is none. */
  ask(request: Http2Request): Promise<HttpAnswer | Failed>;
  close(): Promise<void>;
};

type Line = {
  session: ClientHttp2Session;
  open: number;
  /** How many requests it takes at a time: none before it is connected, nor once it is ending. */
  room: number;
  /** From a GOAWAY: what came after this was not processed. */
  lastProcessed: number | undefined;
};
type Waiter = { take: (line: Line) => void; fail: (reason: string) => void };

const MAX_ANSWER_BYTES = 65_536;
const CONNECT_MS = 10_000;
// A server that names no bound gets this many; RFC 9113 asks servers not to allow fewer than a hundred.
const UNNAMED_ROOM = 100;

export function createHttp2(options: Http2Options): Http2 {
  const { origin, connections = 4, pingEveryMs = 60_000, pingAnswerMs = 10_000 } = options;
  if (!/^https?:$/.test(new URL(origin).protocol)) throw new Error("HTTP/2 needs an http or https URL");
  /** Those that take requests or will soon. */
  const lines = new Set<Line>();
  /** All, with those that only finish what they have. */
  const sessions = new Set<ClientHttp2Session>();
  const waiters = new Set<Waiter>();
  let isClosed = false;

  function open(): void {
    const line = openLine(
      origin,
      { pingEveryMs, pingAnswerMs },
      {
        onRoom: serve,
        onEnding() {
          lines.delete(line);
          serve();
        },
        onClosed(hadRoom, reason) {
          lines.delete(line);
          sessions.delete(line.session);
          if (hadRoom) return serve();
          // Opening the next one at once would hammer a server that is away; whoever comes later opens it.
          if (lines.size === 0) for (const waiter of waiters) waiter.fail(reason);
        },
      },
    );
    lines.add(line);
    sessions.add(line.session);
  }

  function freeLine(): Line | undefined {
    for (const line of lines) if (line.open < line.room) return line;
    return undefined;
  }

  /** Gives room to those who wait, in their order; opens a connection where there is none to be had. */
  function serve(): void {
    // A connection tells its requests that it has ended before it tells us.
    for (const line of lines) if (line.session.destroyed || line.session.closed) lines.delete(line);
    for (const waiter of waiters) {
      const line = freeLine();
      if (!line) break;
      waiter.take(line);
    }
    if (waiters.size === 0 || lines.size >= connections || isClosed) return;
    const isOpening = [...lines].some((line) => line.room === 0);
    if (!isOpening) open();
  }

  /** At once, if nobody waits and there is room. */
  function takeLine(): Line | undefined {
    const line = waiters.size === 0 ? freeLine() : undefined;
    if (!line || line.session.destroyed || line.session.closed) return undefined;
    line.open++;
    return line;
  }

  function waitForLine(signal: AbortSignal): Promise<Line | string> {
    const line = stand(waiters, signal);
    serve();
    return line;
  }

  async function askWithin(request: Http2Request, { signal, restart }: Clock): Promise<HttpAnswer | Failed> {
    if (isClosed) return unsent("the connection is closed", signal);
    if (signal.aborted) return unsent("no connection in time", signal);
    const line = takeLine() ?? (await waitForLine(signal));
    if (typeof line === "string") return unsent(line, signal);
    restart();
    try {
      return await exchange(line, { ...request, signal });
    } finally {
      line.open--;
      serve();
    }
  }

  return {
    async ask(request) {
      const clock = startClock(request);
      try {
        const answer = await askWithin(request, clock);
        if ("status" in answer) hear(request.signal, answer);
        return answer;
      } finally {
        clock.stop();
      }
    },
    async close() {
      isClosed = true;
      for (const waiter of waiters) waiter.fail("the connection is closed");
      const ends = [...sessions].map((session) => new Promise((resolve) => session.once("close", resolve)));
      for (const session of sessions) session.destroy();
      await Promise.all(ends);
    },
  };
}

/** In the order in which they came. Resolves with a connection's line, or with why there is none. */
function stand(waiters: Set<Waiter>, signal: AbortSignal): Promise<Line | string> {
  return new Promise((resolve) => {
    const end = (outcome: Line | string) => {
      waiters.delete(waiter);
      signal.removeEventListener("abort", onAbort);
      // Taken here, before anybody else looks.
      if (typeof outcome !== "string") outcome.open++;
      resolve(outcome);
    };
    const onAbort = () => end("no connection in time");
    const waiter: Waiter = { take: end, fail: end };
    signal.addEventListener("abort", onAbort, { once: true });
    waiters.add(waiter);
  });
}

type LineEvents = {
  /** It takes requests, or more of them than before. */
  onRoom: () => void;
  /** It only finishes what it has. */
  onEnding: () => void;
  onClosed: (hadRoom: boolean, reason: string) => void;
};

function openLine(
  origin: string,
  { pingEveryMs, pingAnswerMs }: { pingEveryMs: number; pingAnswerMs: number },
  { onRoom, onEnding, onClosed }: LineEvents,
): Line {
  const session = connect(origin);
  const line: Line = { session, open: 0, room: 0, lastProcessed: undefined };
  let lastError = "the connection was closed";
  let hadRoom = false;
  const connecting = setTimeout(() => session.destroy(new Error("no connection in time")), CONNECT_MS);
  const pinging = setInterval(() => ping(session, pingAnswerMs), pingEveryMs);
  pinging.unref();

  // Servers may change their mind: APNs allows one request until it has seen a valid token, then a thousand.
  session.on("remoteSettings", ({ maxConcurrentStreams }) => {
    clearTimeout(connecting);
    if (line.lastProcessed === undefined) line.room = maxConcurrentStreams ?? UNNAMED_ROOM;
    hadRoom ||= line.room > 0;
    onRoom();
  });
  session.on("goaway", (_code, lastStreamId, data) => {
    line.room = 0;
    line.lastProcessed = lastStreamId;
    lastError = oneLine(`the server is ending the connection ${data ? Buffer.from(data).toString("utf8") : ""}`);
    onEnding();
  });
  session.on("error", (error) => {
    lastError = wordsOf(error);
  });
  session.on("close", () => {
    clearTimeout(connecting);
    clearInterval(pinging);
    onClosed(hadRoom, lastError);
  });
  return line;
}

/** One request on a connection. Never rejects. */
function exchange(line: Line, { path, headers, body, signal }: Http2Request): Promise<HttpAnswer | Failed> {
  return new Promise((resolve) => {
    let stream: ClientHttp2Stream;
    try {
      stream = line.session.request({ ":method": "POST", ":path": path, ...headers });
    } catch (error) {
      // The connection ended between being chosen and being used.
      return resolve(unsent(wordsOf(error), signal));
    }
    const parts: Buffer[] = [];
    let size = 0;
    let status = 0;
    let answered: { [name: string]: string | string[] | number | undefined } = {};
    let isComplete = false;
    let lastError = "the connection was closed before the answer";
    const onAbort = () => stream.close(constants.NGHTTP2_CANCEL);
    signal.addEventListener("abort", onAbort, { once: true });

    stream.on("response", (received) => {
      status = Number(received[":status"]);
      answered = { ...received };
    });
    stream.on("data", (part: Buffer) => {
      parts.push(part);
      size += part.length;
      if (size <= MAX_ANSWER_BYTES) return;
      // What it said so far is enough.
      isComplete = true;
      stream.close(constants.NGHTTP2_CANCEL);
    });
    // The answer is whole; the stream's own end comes some turns later.
    stream.on("end", () => {
      isComplete = status > 0 && !signal.aborted;
      if (isComplete) answer();
    });
    stream.on("error", (error) => {
      lastError = wordsOf(error);
    });
    function answer(): void {
      signal.removeEventListener("abort", onAbort);
      const header = (name: string) => {
        const value = answered[name.toLowerCase()];
        return value === undefined ? undefined : String(Array.isArray(value) ? value[0] : value);
      };
      resolve({ status, header, text: Buffer.concat(parts).toString("utf8") });
    }
    stream.on("close", () => {
      if (isComplete) return answer();
      signal.removeEventListener("abort", onAbort);
      if (wasNotProcessed(line, stream)) return resolve(unsent(lastError, signal));
      const reason = signal.aborted ? "no answer in time" : lastError;
      resolve({ kind: "ambiguous", reason, category: categoryOf(signal) });
    });
    stream.end(body);
  });
}

function wasNotProcessed({ lastProcessed }: Line, { id, rstCode }: ClientHttp2Stream): boolean {
  if (id === undefined || rstCode === constants.NGHTTP2_REFUSED_STREAM) return true;
  return lastProcessed !== undefined && id > lastProcessed;
}

/** A connection whose other end is gone without a word would hold its requests until their deadlines. */
function ping(session: ClientHttp2Session, answerMs: number): void {
  if (session.connecting || session.destroyed || session.closed) return;
  const late = setTimeout(() => session.destroy(new Error("the server does not answer a ping")), answerMs);
  late.unref();
  session.ping((error) => {
    clearTimeout(late);
    if (error) session.destroy(error);
  });
}

const unsent = (reason: string, signal: AbortSignal): Failed => ({
  kind: "unavailable",
  reason,
  category: categoryOf(signal),
});
const categoryOf = (signal: AbortSignal): Category => (signal.aborted ? "timeout" : "network");

function wordsOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? ` (${error.code})` : "";
  return oneLine(`${error instanceof Error ? error.message || error.name : error}${code}`);
}
