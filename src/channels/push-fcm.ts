// Push by Firebase Cloud Messaging, HTTP v1: one device per call.

import type { Reply } from "../domain/attempt.ts";
import type { NotificationRequest } from "../domain/notification.ts";
import type { Fault } from "../domain/problems.ts";
import type { Device, Provider } from "./channel.ts";
import { createGoogleTokens, type ServiceAccount } from "./google-token.ts";
import { createHttp, type HttpAnswer, retryAfterMs } from "./http.ts";
import { jsonOf, listAt, textAt } from "./json-answer.ts";
import {
  AWAY,
  BAD_CONTENT,
  BAD_CREDENTIALS,
  BAD_RECIPIENT,
  BROKE,
  DEAD,
  LIMITED,
  replyOf,
  type Verdict,
  verdictOfStatus,
} from "./verdict.ts";

export type FcmSettings = {
  serviceAccount: ServiceAccount;
  apiUrl?: string;
  /** Where access tokens come from; else what the service account says. */
  tokenUrl?: string;
};

const SCOPE = "https://www.googleapis.com/auth/firebase.messaging";
const MAX_BYTES = 4096;
/** The longest FCM keeps a message. */
const MAX_TTL_SECONDS = 2_419_200;
// Google asks for a minute where a quota error comes without Retry-After.
const QUOTA_WAIT_MS = 60_000;

/** By FcmError.errorCode, or by error.status where Google's front end answers before FCM does. */
const VERDICTS: { readonly [code: string]: Verdict } = {
  UNREGISTERED: DEAD,
  SENDER_ID_MISMATCH: DEAD,
  INVALID_ARGUMENT: BAD_CONTENT,
  QUOTA_EXCEEDED: { ...LIMITED, retryAfterMs: QUOTA_WAIT_MS },
  RESOURCE_EXHAUSTED: { ...LIMITED, retryAfterMs: QUOTA_WAIT_MS },
  UNAVAILABLE: AWAY,
  INTERNAL: BROKE,
  UNSPECIFIED_ERROR: BROKE,
  THIRD_PARTY_AUTH_ERROR: BAD_CREDENTIALS,
  UNAUTHENTICATED: BAD_CREDENTIALS,
  PERMISSION_DENIED: BAD_CREDENTIALS,
  // Without an FcmError it is the project that was not found.
  NOT_FOUND: BAD_CREDENTIALS,
};

export function fcmProvider(settings: FcmSettings, { now = Date.now }: { now?: () => number } = {}) {
  const { serviceAccount: account, apiUrl = "https://fcm.googleapis.com", tokenUrl } = settings;
  const url = `${apiUrl}/v1/projects/${encodeURIComponent(account.project_id)}/messages:send`;
  const http = createHttp();
  const tokens = createGoogleTokens({ account, scope: SCOPE, http, tokenUrl, now });

  async function post(body: string, signal: AbortSignal, triesLeft = 2): Promise<HttpAnswer | Reply> {
    const granted = await tokens.get(signal);
    if ("refused" in granted) return granted.refused;
    const headers = { authorization: `Bearer ${granted.token}`, "content-type": "application/json" };
    const answer = await http.ask({ url, headers, body, signal });
    // A token may be revoked before its time; a 401 also says that nothing was sent.
    if ("kind" in answer || answer.status !== 401 || triesLeft <= 1) return answer;
    tokens.drop(granted.token);
    return post(body, signal, triesLeft - 1);
  }

  return {
    name: "fcm",
    channels: ["push"],
    // 600 000 messages a minute and project.
    capabilities: {
      batch: 1,
      attachments: false,
      tracking: false,
      reconciles: false,
      maxBytes: MAX_BYTES,
      perSecond: 10_000,
      cost: 0,
    },
    validate,
    async send({ request, device }, { signal }) {
      if (!device?.token) return replyOf(BAD_RECIPIENT, { reason: "the message names no device" });
      const answer = await post(JSON.stringify({ message: messageOf(request, device, now()) }), signal);
      return "kind" in answer ? answer : readAnswer(answer, device.token, now());
    },
    async check(signal) {
      const granted = await tokens.get(signal);
      if ("token" in granted) return { healthy: true, detail: "Google grants an access token" };
      return { healthy: false, detail: "reason" in granted.refused ? granted.refused.reason : "no access token" };
    },
    close: () => http.close(),
  } satisfies Provider;
}

function readAnswer({ status, text, header }: HttpAnswer, token: string, now: number): Reply {
  const body = jsonOf(text);
  if (status === 200) {
    const receipt = textAt(body, "name");
    return { kind: "accepted", cost: 0, ...(receipt && { receipt }) };
  }
  const details = listAt(body, "error", "details");
  const fcmCode = details.map((detail) => textAt(detail, "errorCode")).find((code) => code !== undefined);
  const code = fcmCode ?? textAt(body, "error", "status") ?? String(status);
  const words = textAt(body, "error", "message") ?? `FCM answered ${status}`;
  const reason = words.replaceAll(token, "the device's token");
  const blamesToken =
    /registration token/i.test(reason) ||
    details.some((detail) => listAt(detail, "fieldViolations").some((one) => textAt(one, "field") === "message.token"));
  const known = Object.hasOwn(VERDICTS, code) ? VERDICTS[code] : undefined;
  // INVALID_ARGUMENT covers both a token that never was one and a message FCM cannot read.
  const verdict = fcmCode === "INVALID_ARGUMENT" && blamesToken ? DEAD : (known ?? verdictOfStatus(status));
  return replyOf(verdict, { reason, code, retryAfterMs: retryAfterMs(header("retry-after"), now) });
}

function messageOf({ content, priority, expiresAt }: NotificationRequest, { token, platform }: Device, now: number) {
  const { title, body, imageUrl: image, sound, badge, icon, clickAction } = content;
  const isAlert = title !== undefined || body !== undefined;
  const isUrgent = priority === "urgent" || priority === "high";
  const ttl = expiresAt && Math.min(MAX_TTL_SECONDS, Math.max(0, Math.floor((Date.parse(expiresAt) - now) / 1000)));
  // Only the part for this device's platform: all three would take from the same 4 KB.
  const platforms = {
    android: () => ({
      android: {
        priority: isUrgent ? "HIGH" : "NORMAL",
        ...(ttl !== undefined && { ttl: `${ttl}s` }),
        ...(isAlert && { notification: { icon, sound, click_action: clickAction, notification_count: badge } }),
      },
    }),
    ios: () => ({
      apns: {
        headers: {
          // Apple takes background messages at 5 only.
          "apns-priority": isAlert && priority !== "low" ? "10" : "5",
          ...(expiresAt && { "apns-expiration": String(Math.floor(Date.parse(expiresAt) / 1000)) }),
        },
        payload: {
          aps: {
            sound,
            badge,
            category: clickAction,
            ...(image && { "mutable-content": 1 }),
            ...(!isAlert && { "content-available": 1 }),
          },
        },
        ...(image && { fcm_options: { image } }),
      },
    }),
    web: () => ({
      webpush: {
        headers: { Urgency: isUrgent ? "high" : "normal", ...(ttl !== undefined && { TTL: String(ttl) }) },
        ...(isAlert && { notification: { icon } }),
        // FCM takes no other links than these.
        ...(clickAction?.startsWith("https://") && { fcm_options: { link: clickAction } }),
      },
    }),
  };
  return {
    token,
    ...(isAlert && { notification: { title, body, image } }),
    ...(content.data && { data: stringsOf(content.data) }),
    ...platforms[platform](),
  };
}

/** FCM takes strings only; everything else goes as JSON. */
function stringsOf(data: { [name: string]: unknown }): { [name: string]: string } {
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
}

/** FCM counts names and values. What it counts besides it tells itself, as INVALID_ARGUMENT. */
function validate({ content }: NotificationRequest): Fault[] {
  const { title, body, imageUrl, data = {} } = content;
  const counted = [title, body, imageUrl, ...Object.entries(stringsOf(data)).flat()];
  const bytes = counted.reduce((sum, text) => sum + Buffer.byteLength(text ?? ""), 0);
  const faults = Object.keys(data)
    .filter((name) => /^(from$|message_type$|google\.|gcm\.)/.test(name))
    .map((name) => ({
      path: `/content/data/${name}`,
      message: "must have another name: FCM keeps this one for itself",
    }));
  if (bytes > MAX_BYTES) {
    faults.push({ path: "/content", message: `must have at most ${MAX_BYTES} bytes for push, and has ${bytes}` });
  }
  return faults;
}
