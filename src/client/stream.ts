// Server-sent events, for as long as somebody wants them: opened again after the last that came, through lost connections and processes
// that are replaced.

import { baseOf, type CallOptions, type ClientOptions, isPassing, wait } from "./call.ts";
import { CarillonError, errorOf } from "./error.ts";

export type StreamEvent = { name: string; data: string; id: string | undefined };
/** `path` is what is asked for. Never ends by itself but by an error that does not pass. */
export type Follow = (path: string, options?: CallOptions) => AsyncGenerator<StreamEvent, void>;

/** A comment comes every 25 s: whatever is silent for longer is gone. */
const SILENT_MS = 60_000;
const BACK_MS = 1_000;
const MOST_BACK_MS = 30_000;

export function createFollow(client: ClientOptions): Follow {
  const { sleep = wait } = client;
  return async function* follow(path, { signal, maxAttempts = Number.POSITIVE_INFINITY } = {}) {
    let position: string | undefined;
    for (let failures = 0; !signal?.aborted; ) {
      try {
        for await (const event of eventsOf(client, path, position, signal)) {
          failures = 0;
          position = event.id ?? position;
          yield event;
        }
      } catch (error) {
        if (signal?.aborted) return;
        if (error instanceof CarillonError && !isPassing(error.status)) throw error;
        if (++failures >= maxAttempts) throw error;
      }
      // Those whose process ended come back one by one.
      if (!signal?.aborted) await sleep(Math.random() * Math.min(MOST_BACK_MS, BACK_MS * 2 ** failures));
    }
  };
}

/** Of one connection, to its end. */
async function* eventsOf(
  client: ClientOptions,
  path: string,
  position: string | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamEvent> {
  const silent = new AbortController();
  const either = signal ? AbortSignal.any([signal, silent.signal]) : silent.signal;
  const within = async <Value>(work: Promise<Value>): Promise<Value> => {
    const timer = setTimeout(() => silent.abort(new Error("the stream fell silent")), SILENT_MS);
    return work.finally(() => clearTimeout(timer));
  };
  const url = baseOf(client) + path;
  const headers = {
    authorization: `Bearer ${client.key}`,
    accept: "text/event-stream",
    ...(position !== undefined && { "last-event-id": position }),
  };
  const answer = await within((client.fetch ?? fetch)(url, { headers, signal: either }));
  if (!answer.ok || !answer.body) throw await errorOf(answer, { method: "GET", url });
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await within(reader.read());
      if (done) return;
      const parts = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      rest = parts.pop() ?? "";
      yield* parts.map(eventOf);
    }
  } finally {
    silent.abort();
  }
}

/** Lines that begin with a colon are comments. */
function eventOf(text: string): StreamEvent {
  const event: StreamEvent = { name: "", data: "", id: undefined };
  for (const line of text.split(/\r?\n/)) {
    const [, field, value = ""] = /^(\w+):? ?(.*)$/.exec(line) ?? [];
    if (field === "event") event.name = value;
    else if (field === "data") event.data += value;
    else if (field === "id") event.id = value;
  }
  return event;
}
