// From what is kept and given to what the API of OpenTelemetry works with, and back.

import { createTraceState, isSpanContextValid, type SpanContext } from "@opentelemetry/api";
import type { TraceContext } from "#domain/trace-context.ts";

export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

/** As it is kept, or as somebody gave it in the form that the contract has. */
export function spanContextOf(
  traceparent: string | undefined,
  tracestate: string | undefined,
): SpanContext | undefined {
  if (traceparent === undefined) return undefined;
  const spanContext: SpanContext = {
    traceId: traceparent.slice(3, 35),
    spanId: traceparent.slice(36, 52),
    traceFlags: Number.parseInt(traceparent.slice(53, 55), 16),
    isRemote: true,
  };
  if (tracestate !== undefined) spanContext.traceState = createTraceState(tracestate);
  return isSpanContextValid(spanContext) ? spanContext : undefined;
}

export const isSameTrace = (one: string | undefined, other: string | undefined): boolean =>
  one?.slice(3, 35) === other?.slice(3, 35);

/** What a receiver goes on with. A sender whose trace is not ours keeps its own: undefined. */
export function handedOn({ traceparent }: TraceContext, send: SpanContext): TraceContext | undefined {
  const context = { traceparent: traceparentOf(send) };
  if (traceparent !== undefined && traceparent.slice(3, 35) !== send.traceId) return undefined;
  const tracestate = send.traceState?.serialize();
  return tracestate ? { ...context, tracestate } : context;
}
