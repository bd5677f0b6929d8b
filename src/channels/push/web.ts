// Push to browsers: Web Push (RFC 8030) with VAPID (RFC 8292).
//
// The endpoint comes from a browser by way of a tenant, so the HTTP client is handed in: the one that refuses private
// addresses.

import { createHash } from "node:crypto";
import type { Device, Encoded, Message, Provider } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import { type Http, type HttpAnswer, retryAfterMs } from "#wire/http.ts";
import { jsonOf, textAt } from "#wire/json-answer.ts";
import { originOf } from "#wire/public-only.ts";
import {
  BAD_CONTENT,
  BAD_CREDENTIALS,
  BAD_RECIPIENT,
  DEAD,
  LIMITED,
  replyOf,
  type Verdict,
  verdictOfStatus,
} from "#wire/verdict.ts";
import { createVapid, type VapidSettings } from "./vapid.ts";
import { encrypt, MAX_PLAIN_BYTES } from "./web-encryption.ts";

export type WebPushSettings = VapidSettings;
/** `clock`: by which messages expire, where that is not the true time. */
type Options = { http: Http; now?: () => number; clock?: () => number };

/** Four weeks: push services keep nothing longer. */
const MAX_TTL_SECONDS = 2_419_200;
const URGENCY = { urgent: "high", high: "high", normal: "normal", low: "low" };

type Meaning = Verdict & { reason: string };
const VERDICTS: { readonly [status: number]: Meaning } = {
  400: { ...BAD_CREDENTIALS, reason: "the push service does not take our VAPID key or headers" },
  401: { ...BAD_CREDENTIALS, reason: "the push service does not take our VAPID key" },
  403: { ...BAD_CREDENTIALS, reason: "the push service does not take our VAPID key for this subscription" },
  404: { ...DEAD, reason: "the subscription does not exist" },
  // Windows' service says so when it is asked too often.
  406: { ...LIMITED, reason: "the push service asks for a pause" },
  410: { ...DEAD, reason: "the subscription is gone" },
  413: { ...BAD_CONTENT, reason: "the message is too large" },
  429: { ...LIMITED, reason: "the push service asks for a pause" },
};

export function webPushProvider(settings: WebPushSettings, { http, now = Date.now, clock = now }: Options) {
  const authorization = createVapid(settings, now);
  return {
    name: "web-push",
    channels: ["push"],
    capabilities: {
      batch: 1,
      attachments: false,
      tracking: false,
      reconciles: false,
      maxBytes: MAX_PLAIN_BYTES,
      cost: 0,
    },
    validate,
    receiver: ({ device }) => originOf(device?.subscription?.endpoint),
    encode: (message) => encodeWebPush(message, clock()),
    async send(message, { signal, timeoutMs }) {
      const { request, device } = message;
      const found = addressOf(device);
      if ("kind" in found) return found;
      const { subscription, origin } = found;
      const body = encrypt(plainOf(request), subscription.keys);
      if (!body) return replyOf(DEAD, { reason: "the subscription's keys are none" });
      const headers = {
        authorization: authorization(origin),
        "content-type": "application/octet-stream",
        "content-encoding": "aes128gcm",
        ...headersOf(message, clock()),
      };
      const answer = await http.ask({ url: subscription.endpoint, headers, body, signal, timeoutMs });
      return "kind" in answer ? answer : readAnswer(answer, now());
    },
    // Every browser has a push service of its own, and none answers without a subscription. That the keys are a pair
    // was found out when they were read.
    async check() {
      return { healthy: true, detail: "the VAPID keys are a pair" };
    },
  } satisfies Provider;
}

function addressOf(
  device: Device | undefined,
): { subscription: NonNullable<Device["subscription"]>; origin: string } | Reply {
  const subscription = device?.subscription;
  if (!subscription) return replyOf(BAD_RECIPIENT, { reason: "the message names no subscription" });
  const origin = originOf(subscription.endpoint);
  return origin ? { subscription, origin } : replyOf(DEAD, { reason: "the subscription's endpoint is no web address" });
}

export function encodeWebPush(message: Message, now: number): Encoded | Reply {
  const found = addressOf(message.device);
  if ("kind" in found) return found;
  return { type: "application/json", body: plainOf(message.request).toString(), headers: headersOf(message, now) };
}

const headersOf = ({ notificationId, request }: Message, now: number) => ({
  ttl: String(ttlSeconds(request, now)),
  urgency: URGENCY[request.priority ?? "normal"],
  // Whatever waits for the browser under the same topic is replaced: sent twice, it is most often shown once.
  topic: createHash("sha256").update(notificationId).digest("base64url").slice(0, 32),
});

function readAnswer({ status, text, header }: HttpAnswer, now: number): Reply {
  if (status >= 200 && status < 300) {
    const receipt = header("location");
    return { kind: "accepted", cost: 0, ...(receipt && { receipt }) };
  }
  const known = VERDICTS[status];
  // Apple names its reason in a word. Free text is left out: it may repeat the endpoint, which is a secret.
  const told = textAt(jsonOf(text), "reason");
  const reason = known?.reason ?? `the push service answered ${status}`;
  const code = told && /^\w{1,60}$/.test(told) ? told : String(status);
  return replyOf(known ?? verdictOfStatus(status), {
    reason,
    code,
    retryAfterMs: retryAfterMs(header("retry-after"), now),
  });
}

function ttlSeconds({ expiresAt }: NotificationRequest, now: number): number {
  if (!expiresAt) return MAX_TTL_SECONDS;
  return Math.min(MAX_TTL_SECONDS, Math.max(0, Math.floor((Date.parse(expiresAt) - now) / 1000)));
}

/** What the page's service worker gets. */
function plainOf({ content }: NotificationRequest): Buffer {
  const { title, body, icon, imageUrl, badge, sound, clickAction, data } = content;
  return Buffer.from(JSON.stringify({ title, body, icon, imageUrl, badge, sound, clickAction, data }));
}

function validate(request: NotificationRequest): Fault[] {
  const bytes = plainOf(request).length;
  if (bytes <= MAX_PLAIN_BYTES) return [];
  return [{ path: "/content", message: `must have at most ${MAX_PLAIN_BYTES} bytes for push, and has ${bytes}` }];
}
