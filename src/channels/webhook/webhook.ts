// Posts notifications to a tenant's own URL, signed as Standard Webhooks describes: a receiver can verify them with any
// of its libraries. `webhook-id` is the notification's id and stays the same over retries, so that a receiver can tell
// one it has seen.

import type { Encoded, Message, Provider } from "#channels/channel.ts";
import type { Category, Reply } from "#domain/attempt.ts";
import { traceHeaders } from "#domain/trace-context.ts";
import { BadSettings } from "#wire/bad-settings.ts";
import { type HttpAnswer, retryAfterMs } from "#wire/http.ts";
import { createPublicHttp, originOf } from "#wire/public-only.ts";
import { hmacKeyOf, type SigningKeys, signWebhook } from "#wire/standard-webhooks.ts";

export type WebhookSettings = {
  /** `whsec_` and base64 of 24 to 64 bytes. Several while one is being replaced: each signs. None: nothing is signed. */
  secret?: string | string[];
};
export type WebhookOptions = WebhookSettings & {
  /** Hosts, addresses and CIDRs that may be reached although they are not public. */
  allow: string[];
  now: () => number;
};

type Posted = Required<Encoded>;
type Verdict = { kind: Exclude<Reply["kind"], "accepted">; category: Category };

const ANSWERS: { [status: number]: Verdict } = {
  401: { kind: "rejected", category: "credentials" },
  403: { kind: "rejected", category: "credentials" },
  408: { kind: "unavailable", category: "timeout" },
  410: { kind: "dead-recipient", category: "recipient" },
  413: { kind: "rejected", category: "content" },
  415: { kind: "rejected", category: "content" },
  422: { kind: "rejected", category: "content" },
  425: { kind: "unavailable", category: "outage" },
  429: { kind: "limited", category: "throttled" },
  // The receiver's own word that it did nothing.
  503: { kind: "unavailable", category: "outage" },
};
/** Every other 4xx. */
const REFUSAL: Verdict = { kind: "rejected", category: "recipient" };
/**
 * Everything else, and 5xx above all: what a proxy says whose server is away. The receiver has answered that it failed, however far it
 * came, and `webhook-id` tells it of a copy. So where the sender has not said otherwise it is tried again for as long as one
 * that cannot be reached, and not just twice as after an answer that was lost. Nothing tells us that it looks at the id: a sender who said
 * `hold` is not overruled.
 */
const FAILED: Verdict = { kind: "unavailable", category: "outage" };
const DOUBTED: Verdict = { kind: "ambiguous", category: "outage" };

export function webhookProvider({ secret = [], allow, now }: WebhookOptions) {
  const keys = webhookKeys(secret);
  const http = createPublicHttp({ allow });
  return {
    name: "webhook",
    channels: ["webhook"],
    capabilities: { batch: 1, attachments: true, tracking: false, reconciles: false, cost: 0 },
    validate({ recipient }) {
      const path = "/recipient/webhookUrl";
      if (recipient?.webhookUrl === undefined) return [{ path, message: "is required" }];
      const refusal = http.refusalOf(recipient.webhookUrl);
      return refusal === undefined ? [] : [{ path, message: `is refused: ${refusal}` }];
    },
    receiver: ({ request: { recipient } }) => originOf(recipient?.webhookUrl),
    encode: (message) => encodeWebhook(message, keys, now()),
    async send(message, { signal, timeoutMs }) {
      const at = now();
      const encoded = encodeWebhook(message, keys, at);
      if ("kind" in encoded) return encoded;
      const { url, body, headers } = encoded;
      const answer = await http.ask({ url, headers, body, signal, timeoutMs });
      return "kind" in answer ? answer : replyTo(answer, message, at);
    },
    close: () => http.close(),
  } satisfies Provider;
}

const NOWHERE: Reply = { kind: "rejected", reason: "there is no webhookUrl", category: "recipient" };

export function encodeWebhook(message: Message, keys: SigningKeys, at: number): (Posted & { url: string }) | Reply {
  const url = message.request.recipient?.webhookUrl;
  if (url === undefined) return NOWHERE;
  const type = "application/json";
  const body = bodyOf(message, at);
  const headers = {
    "content-type": type,
    ...signWebhook({ id: message.notificationId, at, body }, keys),
    ...traceHeaders(message.trace ?? message.request),
  };
  return { url, type, body, headers };
}

/** The body is the receiver's to write and might hold anything, so none of it is quoted. */
function replyTo({ status, header }: HttpAnswer, { request }: Message, now: number): Reply {
  if (status >= 200 && status < 300) return { kind: "accepted" };
  const failed = (request.onAmbiguous ?? "resend") === "resend" ? FAILED : DOUBTED;
  const { kind, category } = ANSWERS[status] ?? (status >= 400 && status < 500 ? REFUSAL : failed);
  const failure = { reason: `the receiver answered ${status}`, code: String(status), category };
  const waitMs = retryAfterMs(header("retry-after"), now);
  const mayWait = kind === "limited" || kind === "unavailable";
  return mayWait && waitMs !== undefined ? { kind, ...failure, retryAfterMs: waitMs } : { kind, ...failure };
}

/** Templates are rendered by now, so what they were made of stays here. */
function bodyOf({ notificationId, request }: Message, at: number): string {
  const { templateId, templateVersion, variables, ...content } = request.content;
  const { metadata } = request;
  const data = { id: notificationId, content, ...(metadata && { metadata }) };
  return JSON.stringify({ type: "notification", timestamp: new Date(at).toISOString(), data });
}

/** Throws when a secret is not as it must be; the message does not repeat it. */
export function webhookKeys(secrets: string | readonly string[]): SigningKeys {
  const hmac = [secrets].flat().map((secret, n) => {
    const key = hmacKeyOf(secret);
    if (key) return key;
    const path = typeof secrets === "string" ? "/secret" : `/secret/${n}`;
    throw new BadSettings("webhook", [{ path, message: "must be whsec_ followed by 24 to 64 bytes in base64" }]);
  });
  return { hmac, ed25519: [] };
}
