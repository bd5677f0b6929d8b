// SMS by Twilio: one recipient per call. What became of a message Twilio tells later, by HTTP; report() reads it.

import type { Encoded, Message, Provider, Report, ReportRequest } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import { BadSettings } from "#wire/bad-settings.ts";
import { ABREAST, createHttp, type HttpAnswer, retryAfterMs } from "#wire/http.ts";
import { at, jsonOf, textAt } from "#wire/json-answer.ts";
import { BAD_CONTENT, BAD_RECIPIENT, replyOf, verdictOfStatus } from "#wire/verdict.ts";
import { segmentsOf } from "./segments.ts";
import { TWILIO_FAILURES, TWILIO_VERDICTS } from "./twilio-codes.ts";
import { signedFields } from "./twilio-signature.ts";

export type TwilioSettings = {
  accountSid: string;
  authToken: string;
  /** Where Twilio tells what became of a message: the public URL of our report door, exactly as Twilio is to call it. */
  statusCallback?: string;
  apiUrl?: string;
  /** US dollars per segment, for the estimate of costs. The default is Twilio's list price in the US without carrier fees. */
  costPerSegment?: number;
} & ({ from: string } | { messagingServiceSid: string });

const MAX_CHARACTERS = 1600;

export function senderOf(settings: { from?: string; messagingServiceSid?: string }): { [name: string]: string } {
  const { from, messagingServiceSid } = settings;
  if (from !== undefined) return { From: from };
  if (messagingServiceSid !== undefined) return { MessagingServiceSid: messagingServiceSid };
  throw new BadSettings("twilio", [{ path: "/from", message: "is required, or instead messagingServiceSid" }]);
}

export function twilioProvider(settings: TwilioSettings, { now = Date.now }: { now?: () => number } = {}) {
  const {
    accountSid,
    authToken,
    statusCallback,
    apiUrl = "https://api.twilio.com",
    costPerSegment = 0.0083,
  } = settings;
  const account = `${apiUrl}/2010-04-01/Accounts/${encodeURIComponent(accountSid)}`;
  const authorization = `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString("base64")}`;
  const sender = senderOf(settings);
  const http = createHttp();

  const encode = (message: Message) =>
    encodeSms(message, { ...sender, ...(statusCallback && { StatusCallback: statusCallback }) });

  return {
    name: "twilio",
    channels: ["sms"],
    capabilities: {
      batch: 1,
      attachments: false,
      tracking: true,
      reconciles: false,
      abreast: ABREAST,
      cost: costPerSegment,
    },
    validate,
    encode,
    async send(message, { signal, timeoutMs }) {
      const encoded = encode(message);
      if ("kind" in encoded) return encoded;
      const { phone, text } = wordsOf(message);
      const answer = await http.ask({
        url: `${account}/Messages.json`,
        headers: { authorization, "content-type": encoded.type },
        body: encoded.body,
        signal,
        timeoutMs,
      });
      if ("kind" in answer) return answer;
      return readAnswer(answer, { phone, cost: segmentsOf(text).segments * costPerSegment, now: now() });
    },
    async check(signal) {
      const answer = await http.ask({ method: "GET", url: `${account}.json`, headers: { authorization }, signal });
      if ("kind" in answer) return { healthy: false, detail: answer.reason };
      const status = textAt(jsonOf(answer.text), "status") ?? "in an unknown state";
      if (answer.status !== 200) return { healthy: false, detail: `Twilio answers ${answer.status}` };
      return { healthy: status === "active", detail: `the account is ${status}` };
    },
    async report(request: ReportRequest) {
      const fields = signedFields(request, authToken);
      return fields && reportsOf(fields, new Date(now()));
    },
    close: () => http.close(),
  } satisfies Provider;
}

/** `sender`: the fields that are the account's. */
export function encodeSms(message: Message, sender: { [name: string]: string }): Encoded | Reply {
  const { phone, text } = wordsOf(message);
  if (phone === "") return replyOf(BAD_RECIPIENT, { reason: "the message names no phone number" });
  if (text === "") return replyOf(BAD_CONTENT, { reason: "the message has no text" });
  const form = { To: phone, Body: text, ...sender };
  return { type: "application/x-www-form-urlencoded", body: new URLSearchParams(form).toString() };
}

const wordsOf = ({ request: { recipient, content } }: Message) => ({
  phone: recipient?.phone ?? "",
  text: content.body ?? "",
});

function readAnswer(answer: HttpAnswer, sent: { phone: string; cost: number; now: number }): Reply {
  const { status, text, header } = answer;
  const body = jsonOf(text);
  if (status >= 200 && status < 300) {
    const receipt = textAt(body, "sid");
    return { kind: "accepted", cost: sent.cost, ...(receipt && { receipt }) };
  }
  const told = at(body, "code");
  const code = typeof told === "number" ? String(told) : undefined;
  const known = code !== undefined && Object.hasOwn(TWILIO_VERDICTS, code) ? TWILIO_VERDICTS[code] : undefined;
  const words = textAt(body, "message") ?? `Twilio answered ${status}`;
  return replyOf(known ?? verdictOfStatus(status), {
    // Twilio repeats the number, with and without its plus.
    reason: words.replaceAll(sent.phone, "the recipient").replaceAll(sent.phone.slice(1), "the recipient"),
    code: code ?? String(status),
    retryAfterMs: retryAfterMs(header("retry-after"), sent.now),
  });
}

/** Of the many states a message passes only the last says something new. */
function reportsOf(fields: { [name: string]: string }, now: Date): Report[] {
  const { MessageSid: receipt, MessageStatus: status, ErrorCode: code, To: address } = fields;
  if (!receipt || !status) return [];
  const known = { receipt, reportId: `${receipt}:${status}`, at: now };
  if (status === "delivered") return [{ ...known, kind: "delivered" }];
  if (status !== "undelivered" && status !== "failed") return [];
  const failing = code !== undefined && Object.hasOwn(TWILIO_FAILURES, code) ? TWILIO_FAILURES[code] : undefined;
  const why = failing?.suppress;
  return [
    {
      ...known,
      kind: "failed",
      reason: failing?.reason ?? `Twilio reports ${status}`,
      ...(code && { code }),
      ...(why && address && { suppress: { address, why } }),
    },
  ];
}

function validate({ content: { body = "" } }: NotificationRequest): Fault[] {
  const { length } = [...body];
  if (length <= MAX_CHARACTERS) return [];
  return [
    { path: "/content/body", message: `must have at most ${MAX_CHARACTERS} characters for SMS, and has ${length}` },
  ];
}
