// How providers speak HTTP/1.1: pooled connections, a deadline, a capped answer, and an honest word about what a failure
// means. A request that never left is `unavailable`; one whose answer was lost is `ambiguous`.
//
// Nothing waits for a connection here: as many are opened as there are requests under way, which the guards bound.

import type { IncomingHttpHeaders } from "node:http";
import type { LookupFunction } from "node:net";
import { Agent, type Dispatcher } from "undici";
import type { Category } from "#domain/attempt.ts";
import { oneLine, waitMsOf } from "#domain/said.ts";
import type { Time } from "./clock.ts";
import { hear } from "./heard.ts";
import type { Failed } from "./verdict.ts";

export type HttpOptions = {
  /** Resolves names for connections; the client for public addresses only refuses private addresses here. */
  lookup?: LookupFunction;
  /** How long an idle connection is kept. */
  keepAliveMs?: number;
};
export type HttpRequest = Time & {
  method?: "GET" | "POST" | "PUT";
  url: string | URL;
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

  return {
    ask: ({ method = "POST", url, headers, body, signal, timeoutMs }) =>
      new Promise((resolve) => {
        const exchange = new Exchange(signal, timeoutMs, resolve);
        if (signal.aborted) return exchange.giveUp(signal.reason);
        try {
          const { origin, pathname, search } = typeof url === "string" ? new URL(url) : url;
          const options = { origin, path: pathname + search, method, headers: headers ?? null, body: body ?? null };
          agent.dispatch(options, exchange);
        } catch (error) {
          exchange.giveUp(error);
        }
      }),
    close: () => agent.destroy(),
  };
}

/**
 * One request, from its wait for a connection to the end of its answer. It takes what undici reads as it comes: a stream of each answer, which
 * undici makes for others, costs as much as the rest of a request.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: HttpAnswer | Failed) => void;
  readonly #signal: AbortSignal;
  /** So long to get a connection, and once it leaves as long again to be answered. */
  readonly #timer: NodeJS.Timeout | undefined;
  /** Once it was handed to a connection: from then on it may have arrived. */
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  #isOver = false;
  #isLate = false;

  constructor(signal: AbortSignal, timeoutMs: number | undefined, resolve: (answer: HttpAnswer | Failed) => void) {
    this.#resolve = resolve;
    this.#signal = signal;
    if (timeoutMs !== undefined) this.#timer = setTimeout(this.#onLate, timeoutMs);
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** undici heeds nobody before it has a connection: so long we leave by ourselves. What was left then is not sent. */
  giveUp(reason: unknown): void {
    if (this.#controller) this.#controller.abort(reason instanceof Error ? reason : new Error(String(reason)));
    this.#fail(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#isOver) controller.abort(new Error("it was given up"));
    else {
      this.#controller = controller;
      this.#timer?.refresh();
    }
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
  }

  /** A provider that answers with a gigabyte is cut off; what it said so far is enough. */
  onResponseData(controller: Dispatcher.DispatchController, part: Buffer): void {
    if (this.#isOver) return;
    this.#parts.push(part);
    this.#bytes += part.length;
    if (this.#bytes <= MAX_ANSWER_BYTES) return;
    this.onResponseEnd();
    controller.abort(new Error("the answer is too long"));
  }

  onResponseEnd(): void {
    const headers = this.#headers;
    const answer: HttpAnswer = {
      status: this.#status,
      header: (name) => first(headers[name.toLowerCase()]),
      text: this.#bytes === 0 ? "" : Buffer.concat(this.#parts).toString("utf8"),
    };
    hear(this.#signal, answer);
    this.#end(answer);
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }

  readonly #onLate = (): void => {
    this.#isLate = true;
    this.giveUp(new Error("no answer in time"));
  };

  readonly #onAbort = (): void => this.giveUp(this.#signal.reason);

  #fail(error: unknown): void {
    this.#end(failure(error, this.#controller !== undefined, this.#isLate || this.#signal.aborted));
  }

  #end(answer: HttpAnswer | Failed): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#resolve(answer);
  }
}

const first = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

function failure(error: unknown, isSent: boolean, isLate: boolean): Failed {
  const reason = isLate ? "no answer in time" : wordsOf(error);
  const category: Category = isLate ? "timeout" : "network";
  return isSent ? { kind: "ambiguous", reason, category } : { kind: "unavailable", reason, category };
}

function wordsOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? ` (${error.code})` : "";
  return oneLine(`${error instanceof Error ? error.message || error.name : error}${code}`);
}

/** `Retry-After` in seconds or as a date, at most a day. */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const seconds = Number(value);
  return waitMsOf(Number.isNaN(seconds) ? Date.parse(value) - now : seconds * 1000);
}
