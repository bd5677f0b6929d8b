// Push to Apple's devices, by APNs itself: HTTP/2, one device per request, many requests side by side.
//
// Apple counts how often a provider token changes and answers 429 when it changes too often, so one is kept for most
// of the hour that it is good for.

import { createHash } from "node:crypto";
import type { Encoded, Message, Provider } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import type { Time } from "#wire/clock.ts";
import { type HttpAnswer, retryAfterMs } from "#wire/http.ts";
import { createHttp2 } from "#wire/http2.ts";
import { at, jsonOf, textAt } from "#wire/json-answer.ts";
import { readPrivateKey, signJwt } from "#wire/jwt.ts";
import { BAD_RECIPIENT, replyOf, verdictOfStatus } from "#wire/verdict.ts";
import { APNS_VERDICTS } from "./apns-reasons.ts";

export type ApnsSettings = {
  teamId: string;
  keyId: string;
  /** The content of the .p8 file. */
  privateKey: string;
  /** The app's bundle id. */
  topic: string;
  environment?: "production" | "sandbox";
  apiUrl?: string;
  /** The most connections at a time; each takes about a thousand requests. */
  connections?: number;
};
type Options = { now?: () => number; pingEveryMs?: number; pingAnswerMs?: number };

const MAX_BYTES = 4096;
const HOSTS = { production: "https://api.push.apple.com", sandbox: "https://api.sandbox.push.apple.com" };
// No device has this token. APNs looks at the credentials first, so its answer tells whether they are good.
const NO_DEVICE = "0".repeat(64);

export function apnsProvider(settings: ApnsSettings, { now = Date.now, ...pings }: Options = {}) {
  const { topic, environment = "production", apiUrl = HOSTS[environment], connections } = settings;
  const tokens = createProviderTokens(settings, now);
  const http = createHttp2({ origin: apiUrl, ...pings, ...(connections !== undefined && { connections }) });

  async function post(device: string, headers: { [name: string]: string }, body: string, time: Time) {
    const path = `/3/device/${encodeURIComponent(device)}`;
    const ask = (token: string) => {
      const known = { authorization: `bearer ${token}`, "apns-topic": topic, "content-type": "application/json" };
      return http.ask({ path, headers: { ...known, ...headers }, body, ...time });
    };
    const token = tokens.current();
    const answer = await ask(token);
    if ("kind" in answer || reasonOf(answer) !== "ExpiredProviderToken") return answer;
    const next = tokens.renewed(token);
    return next === undefined ? answer : ask(next);
  }

  return {
    name: "apns",
    channels: ["push"],
    capabilities: { batch: 1, attachments: false, tracking: false, reconciles: false, maxBytes: MAX_BYTES, cost: 0 },
    validate,
    encode: encodeApns,
    async send(message, { signal, timeoutMs }) {
      const encoded = encodeApns(message);
      if ("kind" in encoded) return encoded;
      const { id, headers, body } = encoded;
      const answer = await post(message.device?.token ?? "", headers, body, { signal, timeoutMs });
      return "kind" in answer ? answer : readAnswer(answer, id, now());
    },
    async check(signal) {
      const headers = { "apns-push-type": "background", "apns-priority": "5" };
      const answer = await post(NO_DEVICE, headers, JSON.stringify({ aps: { "content-available": 1 } }), { signal });
      if ("kind" in answer) return { healthy: false, detail: answer.reason };
      const reason = reasonOf(answer) ?? String(answer.status);
      if (reason === "BadDeviceToken") return { healthy: true, detail: "APNs takes the provider token" };
      return { healthy: false, detail: `APNs answers ${reason}` };
    },
    close: () => http.close(),
  } satisfies Provider;
}

export function encodeApns({ notificationId, request, device }: Message): (Required<Encoded> & { id: string }) | Reply {
  if (!device?.token) return replyOf(BAD_RECIPIENT, { reason: "the message names no device" });
  const id = stableId(notificationId, device.token);
  const headers = { ...headersOf(request), "apns-id": id };
  return { id, type: "application/json", body: JSON.stringify(payloadOf(request)), headers };
}

const TOKEN_LIFE_MS = 50 * 60_000;
const TOKEN_REST_MS = 20 * 60_000;

function createProviderTokens({ teamId, keyId, privateKey }: ApnsSettings, now: () => number) {
  const key = readPrivateKey(privateKey, "ec", "apns", "/privateKey");
  const make = () => {
    const madeAt = now();
    const claims = { iss: teamId, iat: Math.floor(madeAt / 1000) };
    return { madeAt, token: signJwt("ES256", key, claims, { kid: keyId }) };
  };
  let held = make();
  return {
    current(): string {
      if (now() - held.madeAt >= TOKEN_LIFE_MS) held = make();
      return held.token;
    },
    /** Another token than the one that has expired. A young one that has expired means that a clock is wrong: none. */
    renewed(expired: string): string | undefined {
      if (held.token !== expired) return held.token;
      if (now() - held.madeAt < TOKEN_REST_MS) return undefined;
      held = make();
      return held.token;
    },
  };
}

const reasonOf = ({ text }: HttpAnswer): string | undefined => textAt(jsonOf(text), "reason");

function readAnswer(answer: HttpAnswer, id: string, now: number): Reply {
  if (answer.status === 200) return { kind: "accepted", receipt: answer.header("apns-id") ?? id, cost: 0 };
  const code = reasonOf(answer) ?? String(answer.status);
  const known = Object.hasOwn(APNS_VERDICTS, code) ? APNS_VERDICTS[code] : undefined;
  const goneAt = at(jsonOf(answer.text), "timestamp");
  const since = typeof goneAt === "number" && goneAt < 8.64e15 ? `, since ${new Date(goneAt).toISOString()}` : "";
  return replyOf(known ?? verdictOfStatus(answer.status), {
    reason: `APNs answered ${answer.status} ${code}${since}`,
    code,
    retryAfterMs: retryAfterMs(answer.header("retry-after"), now),
  });
}

/** The same for every attempt, so that what Apple tells about one of them can be found. */
function stableId(notificationId: string, token: string): string {
  const hash = createHash("sha256").update(`${notificationId}\n${token}`).digest();
  // Version 8 of RFC 9562: a UUID whose making is our own affair.
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x80, 6);
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = hash.toString("hex", 0, 16);
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

const isAlert = ({ content: { title, body } }: NotificationRequest): boolean =>
  title !== undefined || body !== undefined;

function headersOf(request: NotificationRequest): { [name: string]: string } {
  const { priority, expiresAt } = request;
  return {
    "apns-push-type": isAlert(request) ? "alert" : "background",
    // 10 is at once, 5 when it suits the battery. Background messages at 10 are refused.
    "apns-priority": isAlert(request) && priority !== "low" ? "10" : "5",
    ...(expiresAt && { "apns-expiration": String(Math.floor(Date.parse(expiresAt) / 1000)) }),
  };
}

function payloadOf(request: NotificationRequest): object {
  const { title, body, badge, sound, imageUrl, clickAction, data } = request.content;
  const aps = isAlert(request)
    ? { alert: { title, body }, badge, sound, ...(imageUrl && { "mutable-content": 1 }) }
    : { "content-available": 1 };
  return { ...data, imageUrl, clickAction, aps };
}

function validate(request: NotificationRequest): Fault[] {
  const faults: Fault[] = [];
  const { data = {} } = request.content;
  if (Object.hasOwn(data, "aps")) {
    faults.push({ path: "/content/data/aps", message: "must have another name: APNs keeps this one for itself" });
  }
  const bytes = Buffer.byteLength(JSON.stringify(payloadOf(request)));
  if (bytes > MAX_BYTES) {
    faults.push({ path: "/content", message: `must have at most ${MAX_BYTES} bytes for push, and has ${bytes}` });
  }
  return faults;
}
