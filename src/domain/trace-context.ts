// The trace that a notification is part of, in the words of W3C Trace Context: what its sender said, what we keep of our own, and what is
// handed on. A sender's word is a hint from outside: it is never a reason to refuse a send that came with it in a header.

/** `trace` is the context of our own span of the acceptance. No door lets anybody give it. */
export type TraceContext = { traceparent?: string; tracestate?: string; trace?: string };

export const TRACEPARENT = "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$";
export const TRACESTATE = "^[ -~]+$";
export const MOST_TRACESTATE = 512;

/** What a later version adds comes after a further dash, and is nothing to us. */
const HEADER = /^([0-9a-f]{2})-([0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})(-.*)?$/;
const MOST_HEADER = 256;
const STATE = /^[ -~]{1,512}$/;
const NOBODY = /^00-(0{32}-|[0-9a-f]{32}-0{16}-)/;

/** What two headers say; undefined where that is nothing, or nonsense. */
export function contextOf(
  traceparent: string | undefined,
  tracestate: string | undefined,
): Pick<TraceContext, "traceparent" | "tracestate"> | undefined {
  if (traceparent === undefined || traceparent.length > MOST_HEADER) return undefined;
  const [, version, ids, more] = HEADER.exec(traceparent) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  const given = `00-${ids}`;
  if (NOBODY.test(given)) return undefined;
  return tracestate !== undefined && STATE.test(tracestate)
    ? { traceparent: given, tracestate }
    : { traceparent: given };
}

/** The request with a context that came beside it, unless it brings its own. */
export function withContext(request: unknown, context: ReturnType<typeof contextOf>): unknown {
  if (!context || request === null || typeof request !== "object" || Array.isArray(request)) return request;
  return "traceparent" in request ? request : { ...request, ...context };
}

/** By which it is found among the traces: ours, or else its sender's. */
export function traceIdOf({ trace, traceparent }: TraceContext): string | undefined {
  const known = trace ?? traceparent;
  return known === undefined || NOBODY.test(known) ? undefined : idOf(known);
}

/** The headers with which a receiver goes on: with our part of its sender's trace, or with what the sender said if ours is another. */
export function traceHeaders({ trace, traceparent, tracestate }: TraceContext): { [name: string]: string } {
  const isOurs = trace !== undefined && (traceparent === undefined || idOf(trace) === idOf(traceparent));
  const handed = isOurs ? trace : traceparent;
  if (handed === undefined || NOBODY.test(handed)) return NOTHING;
  return tracestate === undefined ? { traceparent: handed } : { traceparent: handed, tracestate };
}

const NOTHING = {};
const idOf = (traceparent: string): string => traceparent.slice(3, 35);
