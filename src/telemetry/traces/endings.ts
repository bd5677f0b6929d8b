// How a span ends, and what is linked to what before it does.

import { type Span, SpanStatusCode } from "@opentelemetry/api";
import type { Decision } from "#domain/acceptance.ts";
import { Problem } from "#domain/problems.ts";
import * as names from "./conventions.ts";

export function linkBoth(one: Span, shared: Span): void {
  if (!shared.isRecording()) return;
  one.addLink({ context: shared.spanContext() });
  shared.addLink({ context: one.spanContext() });
}

/** Words of errors may hold what people wrote: the kind alone. */
export function fail(span: Span, type: string): Span {
  return span.setAttribute(names.ERROR_TYPE, type).setStatus({ code: SpanStatusCode.ERROR });
}

/** The answer to one that was sent before is the notification of then. */
export function endAccepted(span: Span, decision: Decision | undefined): void {
  if (decision && "isReplay" in decision && decision.isReplay) {
    span.setAttributes({ [names.MESSAGE_ID]: decision.notificationId, [names.OUTCOME]: "replay" });
  }
  endBy(span, decision);
}

export function endBy(span: Span, outcome: unknown): void {
  if (outcome instanceof Problem) fail(span, outcome.code);
  else if (outcome instanceof Error) fail(span, outcome.name);
  span.end();
}
