// How providers speak HTTP/1.1: pooled connections, a deadline, a capped answer, and an honest word about what a failure
// means. A request that never left is `unavailable`; one whose answer was lost is `ambiguous`.
//
// Nothing waits for a connection here: as many are opened as there are requests under way, which the guards bound.

import type { LookupFunction } from "node:net";
import { Agent, type Dispatcher, errors, request } from "undici";
import type { Category } from "#domain/attempt.ts";
import { oneLine, waitMsOf } from "#domain/said.ts";
import { startClock, type Time } from "./clock.ts";
import type { Failed } from "./verdict.ts";

export type HttpOptions = {
  /** Resolves names for connections; the client for public addresses only refuses private addresses here. */
  lookup?: LookupFunction;
  /** How long an idle connection is kept. */
  keepAliveMs?: number;
};
export type HttpRequest = Time & {
  method?: "GET" | "POST" | "PUT";
  url: string;
  headers?: { [name: string]: string };
  body?: string | Buffer;
};
export type HttpAnswer = { status: number; header: (name: string) => string | undefined; text: string };

export type Http = {
  /** Resolves with the answer, or with a failure when there is none. */
  ask(request: HttpRequest): Promise<HttpAnswer | Failed>;
  close(): Promise<void>;
};

/** How many messages a provider's API is given at a time. */
export const ABREAST = 128;
const MAX_ANSWER_BYTES = 1_048_576;
const CONNECT_MS = 10_000;
const KEEP_ALIVE_MS = 30_000;

export function createHttp({ lookup, keepAliveMs = KEEP_ALIVE_MS }: HttpOptions = {}): Http {
  const agent = new Agent({
    pipelining: 1,
    keepAliveTimeout: keepAliveMs,
    // However long the server says that it would.
    keepAliveMaxTimeout: keepAliveMs,
    // The clock is the only deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: CONNECT_MS, ...(lookup && { lookup }) },
  });

  const dispatcher = agent.compose(noteStart);

  return {
    async ask({ method = "POST", url, headers, body, ...time }) {
      const clock = startClock(time);
      const { signal } = clock;
      const sent: Sent = { isSent: false, note: clock.restart };
      let leave = () => {};
      // undici heeds the signal only once it has a connection. Before that we leave; it then sends nothing.
      const left = new Promise<never>((_, reject) => {
        leave = () => {
          if (!sent.isSent) reject(signal.reason);
        };
      });
      try {
        signal.throwIfAborted();
        signal.addEventListener("abort", leave, { once: true });
        const asked = request(url, {
          dispatcher,
          opaque: sent,
          method,
          ...(headers && { headers }),
          ...(body !== undefined && { body }),
          signal,
        });
        const answer = await Promise.race([asked, left]);
        return {
          status: answer.statusCode,
          header: (name) => first(answer.headers[name.toLowerCase()]),
          text: await read(answer.body),
        };
      } catch (error) {
        return failure(error, sent.isSent, signal);
      } finally {
        clock.stop();
      }
    },
    close: () => agent.destroy(),
  };
}

type Sent = { isSent: boolean; note: () => void };

/** Notes when a request is handed to a connection: from then on it may have arrived. */
function noteStart(dispatch: Dispatcher["dispatch"]): Dispatcher["dispatch"] {
  return (options, handler) => {
    const start = handler.onRequestStart?.bind(handler);
    handler.onRequestStart = (controller, context) => {
      if ("opaque" in options) {
        const sent = options.opaque as Sent;
        sent.isSent = true;
        sent.note();
      }
      start?.(controller, context);
    };
    return dispatch(options, handler);
  };
}

const first = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

/** A provider that answers with a gigabyte is cut off; what it said so far is enough. */
async function read(body: AsyncIterable<Buffer> & { destroy(): void }): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of body) {
    parts.push(part);
    size += part.length;
    if (size > MAX_ANSWER_BYTES) {
      body.destroy();
      break;
    }
  }
  return Buffer.concat(parts).toString("utf8");
}

function failure(error: unknown, isSent: boolean, signal: AbortSignal): Failed {
  const reason = wordsOf(error, signal);
  const isLate = signal.aborted || error instanceof errors.HeadersTimeoutError;
  const category: Category = isLate ? "timeout" : "network";
  return isSent ? { kind: "ambiguous", reason, category } : { kind: "unavailable", reason, category };
}

function wordsOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return "no answer in time";
  const code = error instanceof Error && "code" in error ? ` (${error.code})` : "";
  return oneLine(`${error instanceof Error ? error.message || error.name : error}${code}`);
}

/** `Retry-After` in seconds or as a date, at most a day. */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const seconds = Number(value);
  return waitMsOf(Number.isNaN(seconds) ? Date.parse(value) - now : seconds * 1000);
}
