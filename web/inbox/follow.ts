// Keeps the stream of an inbox open: reads it, and when it ends opens it again where it stopped.

import { isUnauthorized, type Resume } from "./api.ts";
import { createEventReader, type StreamEvent } from "./event-stream.ts";

/** `waiting` until the next try; `lost` when several tries have failed and the reader should be told. */
export type Connection = "connecting" | "open" | "waiting" | "lost" | "unauthorized";

export type FollowOptions = {
  open: (resume: Resume | undefined, signal: AbortSignal) => Promise<Response>;
  resume: () => Resume | undefined;
  onEvent: (event: StreamEvent) => void;
  onConnection: (connection: Connection, isResumed: boolean) => void;
  signal: AbortSignal;
  /** Ends a wait early: the network is back, or somebody pressed "try again". */
  hurry: EventTarget;
  random?: () => number;
};

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** A stream that held this long was a good one; the next failure starts a new count. */
const GOOD_AFTER_MS = 5_000;
/** The server sends a comment every 25 s. Two missed: the connection is dead and nobody has told us. */
const SILENT_MS = 60_000;
const TELL_AFTER = 2;

export async function follow(options: FollowOptions): Promise<void> {
  const { open, resume, onEvent, onConnection, signal, hurry, random = Math.random } = options;
  let failures = 0;
  let retryMs = FIRST_WAIT_MS;

  while (!signal.aborted) {
    const attempt = new AbortController();
    const abort = () => attempt.abort();
    signal.addEventListener("abort", abort);
    let watchdog = setTimeout(abort, SILENT_MS);
    let openedAt = Number.POSITIVE_INFINITY;
    let askedMs = 0;
    if (failures < TELL_AFTER) onConnection("connecting", false);
    try {
      const from = resume();
      const response = await open(from, attempt.signal);
      if (isUnauthorized(response)) return onConnection("unauthorized", false);
      askedMs = Number(response.headers.get("retry-after") ?? 0) * 1000 || 0;
      if (response.ok && response.body) {
        openedAt = performance.now();
        onConnection("open", from !== undefined);
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        const events = createEventReader(onEvent, (ms) => {
          retryMs = ms;
        });
        for (let read = await reader.read(); !read.done; read = await reader.read()) {
          clearTimeout(watchdog);
          watchdog = setTimeout(abort, SILENT_MS);
          events.feed(read.value);
        }
      }
    } catch {
      // The network failed or the watchdog bit: the same as an end.
    } finally {
      clearTimeout(watchdog);
      signal.removeEventListener("abort", abort);
      attempt.abort();
    }
    if (signal.aborted) return;
    failures = performance.now() - openedAt > GOOD_AFTER_MS ? 1 : failures + 1;
    onConnection(failures >= TELL_AFTER ? "lost" : "waiting", false);
    // When a server restarts, all its readers come back: the jitter keeps them from coming at once.
    const backoffMs = Math.min(LONGEST_WAIT_MS, retryMs * 2 ** Math.min(failures - 1, 10));
    await pause(Math.max(askedMs, backoffMs) * (1 + random() / 2), signal, hurry);
  }
}

function pause(waitMs: number, signal: AbortSignal, hurry: EventTarget): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, waitMs);
    signal.addEventListener("abort", done);
    hurry.addEventListener("hurry", done);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      hurry.removeEventListener("hurry", done);
      resolve();
    }
  });
}
