// One request and its answer, through lost answers and outages.

import { context, propagation } from "@opentelemetry/api";
import type { Call, Request } from "./bind.ts";
import { errorOf, UnreachableError } from "./error.ts";
import { ONCE } from "./methods.ts";

export type ClientOptions = {
  /** Where Carillon listens, for example http://127.0.0.1:8420. */
  url: string;
  /** An API key, `ck_…`. */
  key: string;
  /** Tries in all, the first included. */
  maxAttempts?: number;
  /** For one try. */
  timeoutMs?: number;
  /** In place of the global one. */
  fetch?: typeof fetch;
  /** In place of a timer, for tests. */
  sleep?: (ms: number) => Promise<void>;
};
export type CallOptions = {
  /** Ends the call, and what it is waiting for. */
  signal?: AbortSignal;
  /** Tries in all, where it is not to be as for all calls. */
  maxAttempts?: number;
  /** For one try, likewise. */
  timeoutMs?: number;
};

const BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5_000;
/** Answers that say "not now": overloaded, away, or a proxy that found nobody. */
const RETRIED = new Set([429, 502, 503, 504]);
/** What they ask is whether it is well: no is an answer. */
const ANSWERED = new Set(["GET /health", "GET /ready"]);

export const isPassing = (status: number): boolean => RETRIED.has(status);
export const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export function createCall(options: ClientOptions): Call {
  const { sleep = wait } = options;
  const base = baseOf(options);
  const attempt = attempter(options, base);
  return async (request, callOptions = {}) => {
    const { signal, maxAttempts = options.maxAttempts ?? 5 } = callOptions;
    const { operation, method, path } = request;
    const most = ONCE.has(operation) ? 1 : maxAttempts;
    const asked = { method, url: base + path };
    for (let tried = 1; ; tried++) {
      const isLast = tried >= most;
      const answer = await attempt(request, callOptions).catch((error: unknown) => {
        if (signal?.aborted) throw error;
        if (isLast) throw new UnreachableError(asked, error);
        return undefined;
      });
      if (answer && (answer.ok || (ANSWERED.has(operation) && answer.status === 503))) return readAnswer(answer);
      if (answer && (isLast || !isPassing(answer.status))) throw await errorOf(answer, asked);
      // Full jitter spreads clients that failed together; the server's own wish is a floor under it.
      const backoffMs = Math.random() * Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** tried);
      await sleep(Math.max(backoffMs, retryAfterMs(answer)));
      signal?.throwIfAborted();
    }
  };
}

export const baseOf = ({ url }: ClientOptions): string => url.replace(/\/+$/, "");

function attempter({ key, fetch: given, timeoutMs: usualMs = 10_000 }: ClientOptions, base: string) {
  const send = given ?? fetch;
  return ({ method, path, body, raw }: Request, { signal, timeoutMs = usualMs }: CallOptions): Promise<Response> => {
    const timeout = AbortSignal.timeout(timeoutMs);
    const headers: { [name: string]: string } = { authorization: `Bearer ${key}`, ...raw?.headers };
    if (body !== undefined) headers["content-type"] = "application/json";
    // The trace that the caller is in, if it has an SDK for that; otherwise nothing.
    propagation.inject(context.active(), headers);
    const content = raw ? raw.body : body === undefined ? undefined : JSON.stringify(body);
    return send(base + path, {
      method,
      headers,
      ...(content !== undefined && { body: content }),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
  };
}

async function readAnswer(answer: Response): Promise<unknown> {
  if (answer.status === 204) return undefined;
  const type = answer.headers.get("content-type") ?? "";
  if (type.includes("json")) return answer.json();
  return type === "application/octet-stream" ? new Uint8Array(await answer.arrayBuffer()) : answer.text();
}

function retryAfterMs(answer: Response | undefined): number {
  const seconds = Number(answer?.headers.get("retry-after") ?? 0);
  return Number.isFinite(seconds) ? Math.min(seconds, 60) * 1000 : 0;
}
