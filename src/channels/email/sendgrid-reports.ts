// SendGrid's event webhook: what became of mails it accepted.

import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { Provider, Report } from "#channels/channel.ts";
import { oneLine } from "#domain/said.ts";
import { BadSettings } from "#wire/bad-settings.ts";

export type SendgridReportsOptions = {
  /** PEM, or base64 as SendGrid shows it. */
  publicKey: string;
  now: () => number;
  toleranceMs?: number;
};

// A report that comes twice is known by its id, so an old one is a nuisance, not a danger. SendGrid repeats what it
// could not hand over for a day; whether it signs anew then it does not say.
const TOLERANCE_MS = 24 * 60 * 60 * 1000 + 10 * 60 * 1000;

type Event = { [field: string]: unknown };
type Meaning = { kind: Report["kind"]; suppress?: "bounce" | "complaint" };

/** What is not here says nothing about delivery: processed, deferred, open, click and the like. */
const EVENTS: { readonly [event: string]: (event: Event) => Meaning } = {
  delivered: () => ({ kind: "delivered" }),
  // A block is the receiving server's mood of the day; the address may be fine.
  bounce: ({ type }) => (type === "blocked" ? { kind: "failed" } : { kind: "failed", suppress: "bounce" }),
  dropped: () => ({ kind: "failed" }),
  // Who complains has got it.
  spamreport: () => ({ kind: "delivered", suppress: "complaint" }),
};

export function createSendgridReports(options: SendgridReportsOptions): NonNullable<Provider["report"]> {
  const { publicKey, now, toleranceMs = TOLERANCE_MS } = options;
  const key = keyOf(publicKey);
  return async ({ header, body }) => {
    const signature = header("x-twilio-email-event-webhook-signature");
    const timestamp = header("x-twilio-email-event-webhook-timestamp");
    if (signature === undefined || timestamp === undefined || !/^[0-9]{1,12}$/.test(timestamp)) return undefined;
    if (Math.abs(now() - Number(timestamp) * 1000) > toleranceMs) return undefined;
    const signed = Buffer.concat([Buffer.from(timestamp), body]);
    if (!verify("sha256", signed, key, Buffer.from(signature, "base64"))) return undefined;
    return eventsOf(body).flatMap(reportOf);
  };
}

function keyOf(publicKey: string): KeyObject {
  try {
    const key = publicKey.includes("-----BEGIN")
      ? createPublicKey(publicKey)
      : createPublicKey({ key: Buffer.from(publicKey, "base64"), format: "der", type: "spki" });
    if (key.asymmetricKeyType === "ec") return key;
  } catch {
    // Told below, without what OpenSSL says.
  }
  const message = "must be the verification key that SendGrid shows";
  throw new BadSettings("sendgrid", [{ path: "/webhookPublicKey", message }]);
}

function eventsOf(body: Buffer): Event[] {
  try {
    const events: unknown = JSON.parse(body.toString("utf8"));
    return Array.isArray(events) ? events.filter((event) => event !== null && typeof event === "object") : [];
  } catch {
    return [];
  }
}

function reportOf(event: Event): Report[] {
  const { event: name, email, sg_event_id: reportId, sg_message_id: messageId, timestamp } = event;
  const meaning = typeof name === "string" && Object.hasOwn(EVENTS, name) ? EVENTS[name]?.(event) : undefined;
  // A mail dropped before it had an id cannot be told from others.
  if (!meaning || typeof reportId !== "string" || typeof messageId !== "string" || !Number.isSafeInteger(timestamp)) {
    return [];
  }
  const why = [event.reason, event.response].find((text) => typeof text === "string" && text !== "");
  const { kind, suppress } = meaning;
  return [
    {
      // The API's X-Message-Id, then the names of the machines that handled it.
      receipt: messageId.split(".")[0] ?? messageId,
      reportId,
      kind,
      at: new Date(Number(timestamp) * 1000),
      ...(typeof email === "string" && { address: email }),
      ...(suppress && typeof email === "string" && { suppress: { address: email, why: suppress } }),
      ...(kind === "failed" && typeof why === "string" && { reason: oneLine(why) }),
      ...(typeof event.status === "string" && event.status !== "" && { code: event.status }),
    },
  ];
}
