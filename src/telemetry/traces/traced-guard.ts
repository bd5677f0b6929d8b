// The guard of an attempt that is recorded: what the others answer is a span, and from a ticket to its report is the send.

import { type Span, SpanStatusCode } from "@opentelemetry/api";
import type { Message, Provider } from "#channels/channel.ts";
import type { Admitted, Guard } from "#guards/guard.ts";
import { ERROR_TYPE, OUTCOME } from "./conventions.ts";
import { handedOn } from "./span-context.ts";

export function tracedGuard(guard: Guard, start: (step: "guard" | "send", provider: Provider) => Span): Guard {
  const sends = new Map<Message, Span>();

  function admitted(answer: Admitted, span: Span, provider: Provider, message: Message): Admitted {
    if (typeof answer !== "number") {
      span.setAttribute(OUTCOME, answer.kind).end();
      return answer;
    }
    span.end();
    const send = start("send", provider);
    sends.set(message, send);
    const trace = handedOn(message.request, send.spanContext());
    if (trace) message.trace = trace;
    return answer;
  }

  return {
    ...guard,
    admit(provider, message, turn) {
      const span = start("guard", provider);
      const answer = guard.admit(provider, message, turn);
      return answer instanceof Promise
        ? answer.then((later) => admitted(later, span, provider, message))
        : admitted(answer, span, provider, message);
    },
    report(provider, message, ticket, reply) {
      const send = sends.get(message);
      sends.delete(message);
      send?.setAttribute(OUTCOME, reply.kind);
      if (reply.kind !== "accepted") {
        send?.setAttribute(ERROR_TYPE, reply.code ?? reply.kind).setStatus({ code: SpanStatusCode.ERROR });
      }
      send?.end();
      guard.report(provider, message, ticket, reply);
    },
  };
}
