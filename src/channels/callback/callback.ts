// Posts callbacks to tenants' endpoints, signed as Standard Webhooks describes by all secrets that the endpoint has at that moment.
// `webhook-id` stays the same over all tries.
//
// Callbacks are at least once: where an answer was lost it is posted again as a matter of course.

import type { Message, Provider } from "#channels/channel.ts";
import type { Answer, Category, Reply } from "#domain/attempt.ts";
import { callbackOf } from "#domain/callback.ts";
import { cut } from "#domain/text.ts";
import { traceHeaders } from "#domain/trace-context.ts";
import { type HttpAnswer, retryAfterMs } from "#wire/http.ts";
import { originOf, type PublicHttp } from "#wire/public-only.ts";
import { signWebhook } from "#wire/standard-webhooks.ts";
import { outcomeAt } from "./endpoint.ts";
import type { Endpoints } from "./endpoints.ts";

export type CallbackOptions = {
  http: PublicHttp;
  /** What was found when the guard let it through: to look anything up here would take time that nobody looks at. */
  endpoints: Pick<Endpoints, "known">;
  now: () => number;
};

/** Of what a receiver answers, for the list of deliveries. */
const MOST_ANSWER = 1_024;

export function callbackProvider({ http, endpoints, now }: CallbackOptions) {
  return {
    name: "callback",
    channels: [],
    capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false, cost: 0 },
    receiver: (to) => originOf(urlOf(to)),
    async send(message, { signal, timeoutMs }) {
      const callback = callbackOf(message.request);
      if (!callback) return { kind: "rejected", reason: "it is no callback" };
      const { webhookId: id, type, timestamp, data } = callback;
      const endpoint = endpoints.known({ tenant: -message.tenant, id: callback.endpoint });
      const outcome = outcomeAt(endpoint);
      if (outcome?.kind === "rejected") return outcome;
      if (!endpoint?.keys) return SEALED;
      const url = callback.url ?? endpoint.url;
      if (url === null) return NOWHERE;
      const at = now();
      const body = JSON.stringify({ type, timestamp, data });
      const headers = {
        "content-type": "application/json",
        ...traceHeaders(message.trace ?? message.request),
        ...signWebhook({ id, at, body }, endpoint.keys),
      };
      const answer = await http.ask({ url, headers, body, signal, timeoutMs });
      return "kind" in answer ? failed(answer) : replyTo(answer, at);
    },
    close: () => http.close(),
  } satisfies Provider;
}

const urlOf = ({ request, endpoint }: Pick<Message, "request" | "endpoint">): string | undefined =>
  callbackOf(request)?.url ?? endpoint?.url ?? undefined;

const NOWHERE: Reply = { kind: "rejected", reason: "the endpoint has no URL", category: "recipient" };
const SEALED: Reply = {
  kind: "unavailable",
  reason: "no secret key opens the endpoint's secrets",
  category: "credentials",
};

/** A redirect is not followed, and may be gone tomorrow; an address that is not allowed stays so. */
const failed = (reply: Exclude<Reply, { kind: "accepted" }>): Reply =>
  reply.kind === "rejected" && reply.code !== undefined ? { ...reply, kind: "unavailable", category: "outage" } : reply;

const VERDICTS: { [status: number]: { kind: "unavailable" | "limited" | "dead-recipient"; category: Category } } = {
  408: { kind: "unavailable", category: "timeout" },
  410: { kind: "dead-recipient", category: "recipient" },
  425: { kind: "unavailable", category: "outage" },
  429: { kind: "limited", category: "throttled" },
};

function replyTo({ status, header, text }: HttpAnswer, now: number): Reply {
  const answer: Answer = { status, body: readable(text) };
  if (status >= 200 && status < 300) return { kind: "accepted", answer };
  const isFinal = status >= 400 && status < 500;
  const { kind, category } =
    VERDICTS[status] ??
    (isFinal
      ? { kind: "rejected" as const, category: "recipient" as const }
      : { kind: "unavailable" as const, category: "outage" as const });
  const failure = { reason: `the receiver answered ${status}`, code: String(status), category, answer };
  const waitMs = retryAfterMs(header("retry-after"), now);
  const mayWait = kind === "limited" || kind === "unavailable";
  return mayWait && waitMs !== undefined ? { kind, ...failure, retryAfterMs: waitMs } : { kind, ...failure };
}

/** As it may be stored and shown; a binary one is nobody's to read. */
const readable = (text: string): string => cut(text, MOST_ANSWER).replaceAll("\0", "\u{fffd}").toWellFormed();
