// Push by Firebase Cloud Messaging, HTTP v1: one device per call.

import type { Encoded, Message, Provider } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import type { Time } from "#wire/clock.ts";
import { ABREAST, createHttp, type HttpAnswer, retryAfterMs } from "#wire/http.ts";
import { jsonOf, listAt, textAt } from "#wire/json-answer.ts";
import {
  AWAY,
  BAD_CONTENT,
  BAD_CREDENTIALS,
  BAD_RECIPIENT,
  BROKE,
  DEAD,
  type Failed,
  LIMITED,
  replyOf,
  type Verdict,
  verdictOfStatus,
} from "#wire/verdict.ts";
import { MAX_BYTES, messageOf, validate } from "./fcm-message.ts";
import { createGoogleTokens, type ServiceAccount } from "./google-token.ts";

export type FcmSettings = {
  serviceAccount: ServiceAccount;
  apiUrl?: string;
  /** Where access tokens come from; else what the service account says. */
  tokenUrl?: string;
};

const SCOPE = "https://www.googleapis.com/auth/firebase.messaging";
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

/** `clock`: by which messages expire, where that is not the true time. */
type Options = { now?: () => number; clock?: () => number };

export function fcmProvider(settings: FcmSettings, { now = Date.now, clock = now }: Options = {}) {
  const { serviceAccount: account, apiUrl = "https://fcm.googleapis.com", tokenUrl } = settings;
  const url = `${apiUrl}/v1/projects/${encodeURIComponent(account.project_id)}/messages:send`;
  const http = createHttp();
  const tokens = createGoogleTokens({ account, scope: SCOPE, http, tokenUrl, now });

  async function post(body: string, time: Time, triesLeft = 2): Promise<HttpAnswer | Failed> {
    const granted = await tokens.get(time.signal);
    if ("refused" in granted) return granted.refused;
    const headers = { authorization: `Bearer ${granted.token}`, "content-type": "application/json" };
    const answer = await http.ask({ url, headers, body, ...time });
    // A token may be revoked before its time; a 401 also says that nothing was sent.
    if ("kind" in answer || answer.status !== 401 || triesLeft <= 1) return answer;
    tokens.drop(granted.token);
    return post(body, time, triesLeft - 1);
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
      abreast: ABREAST,
      cost: 0,
    },
    validate,
    encode: (message) => encodeFcm(message, clock()),
    async send(message, { signal, timeoutMs }) {
      const encoded = encodeFcm(message, clock());
      if ("kind" in encoded) return encoded;
      const answer = await post(encoded.body, { signal, timeoutMs });
      return "kind" in answer ? answer : readAnswer(answer, message.device?.token ?? "", now());
    },
    async check(signal) {
      const granted = await tokens.get(signal);
      if ("token" in granted) return { healthy: true, detail: "Google grants an access token" };
      return { healthy: false, detail: granted.refused.reason };
    },
    close: () => http.close(),
  } satisfies Provider;
}

export function encodeFcm({ request, device }: Message, now: number): Encoded | Reply {
  if (!device?.token) return replyOf(BAD_RECIPIENT, { reason: "the message names no device" });
  return { type: "application/json", body: JSON.stringify({ message: messageOf(request, device, now) }) };
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
