// E-mail through SendGrid's API, version 3.

import type { Provider } from "#channels/channel.ts";
import type { Category, Reply } from "#domain/attempt.ts";
import { oneLine, waitMsOf } from "#domain/said.ts";
import { ABREAST, createHttp, type HttpAnswer } from "#wire/http.ts";
import { checkMailSettings, type Mail, type MailSettings, mailFaults, mailOf } from "./mail.ts";
import { createSendgridReports } from "./sendgrid-reports.ts";

export type SendgridSettings = MailSettings & {
  apiKey: string;
  /** `https://api.eu.sendgrid.com` for accounts in the European Union. */
  apiUrl?: string;
  /** The verification key of the signed event webhook, as SendGrid shows it. Without it no reports are read. */
  webhookPublicKey?: string;
  /** How old a report's signature may be. */
  reportToleranceMs?: number;
};

type Rule = {
  status: number;
  /** The field that SendGrid complains about. */
  field?: RegExp;
  says?: RegExp;
  kind: Exclude<Reply["kind"], "accepted">;
  category: Category;
};

/** First match wins. */
const RULES: readonly Rule[] = [
  // A plan that is used up is told as if the key were wrong.
  { status: 401, says: /credits exceeded/i, kind: "limited", category: "throttled" },
  { status: 401, kind: "rejected", category: "credentials" },
  { status: 403, kind: "rejected", category: "credentials" },
  {
    status: 400,
    field: /^personalizations\b.*\bto\b/,
    says: /valid address/i,
    kind: "dead-recipient",
    category: "recipient",
  },
  { status: 429, kind: "limited", category: "throttled" },
  { status: 503, kind: "unavailable", category: "outage" },
];

export function sendgridProvider(
  settings: SendgridSettings,
  { now = Date.now }: { now?: () => number } = {},
): Provider {
  checkMailSettings("sendgrid", settings);
  const { apiKey, apiUrl = "https://api.sendgrid.com", webhookPublicKey, reportToleranceMs } = settings;
  const http = createHttp();
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const isTracking = webhookPublicKey !== undefined;

  return {
    name: "sendgrid",
    channels: ["email"],
    capabilities: {
      batch: 1,
      attachments: true,
      tracking: isTracking,
      reconciles: false,
      maxBytes: 30 * 1024 * 1024,
      abreast: ABREAST,
      cost: 0.0009,
    },
    validate: (request) => mailFaults(request, settings),
    async send(message, { signal, timeoutMs }) {
      const mail = mailOf(message, settings);
      if ("kind" in mail) return mail;
      const answer = await http.ask({
        url: `${apiUrl}/v3/mail/send`,
        headers,
        body: JSON.stringify(bodyOf(mail)),
        signal,
        timeoutMs,
      });
      return "kind" in answer ? answer : replyOf(answer, now());
    },
    async check(signal) {
      const answer = await http.ask({ method: "GET", url: `${apiUrl}/v3/scopes`, headers, signal });
      if ("kind" in answer) return { healthy: false, detail: answer.kind === "accepted" ? "" : answer.reason };
      if (answer.status !== 200) return { healthy: false, detail: wordsOf(answer) };
      return answer.text.includes('"mail.send"')
        ? { healthy: true, detail: "the key may send mail" }
        : { healthy: false, detail: "the key may not send mail" };
    },
    ...(isTracking && {
      report: createSendgridReports({
        publicKey: webhookPublicKey,
        now,
        ...(reportToleranceMs !== undefined && { toleranceMs: reportToleranceMs }),
      }),
    }),
    close: () => http.close(),
  } satisfies Provider;
}

function bodyOf({ from, to, cc, bcc, replyTo, subject, text, html, attachments, headers, messageId }: Mail): object {
  const listed = (list: readonly string[]) => list.map((email) => ({ email }));
  return {
    personalizations: [
      { to: listed([to]), ...(cc.length > 0 && { cc: listed(cc) }), ...(bcc.length > 0 && { bcc: listed(bcc) }) },
    ],
    from: { email: from.address, ...(from.name && { name: from.name }) },
    ...(replyTo !== undefined && { reply_to: { email: replyTo } }),
    subject,
    // Text first, as SendGrid asks.
    content: [
      { type: "text/plain", value: text },
      ...(html === undefined ? [] : [{ type: "text/html", value: html }]),
    ].filter(({ value }) => value !== ""),
    ...(attachments.length > 0 && {
      attachments: attachments.map(({ filename, contentType, content }) => ({
        filename,
        type: contentType,
        content,
        disposition: "attachment",
      })),
    }),
    headers: { ...headers, "Message-ID": messageId },
  };
}

function replyOf(answer: HttpAnswer, now: number): Reply {
  const { status } = answer;
  if (status >= 200 && status < 300) {
    const receipt = answer.header("x-message-id");
    // Anything but its 202 may come from something in between.
    return status === 202 || receipt !== undefined
      ? { kind: "accepted", ...(receipt !== undefined && { receipt }) }
      : { kind: "ambiguous", reason: `answered ${status} without an id`, code: String(status), category: "outage" };
  }
  const { field, says } = complaintOf(answer.text);
  const rule = RULES.find(
    (one) => one.status === status && (one.field?.test(field) ?? true) && (one.says?.test(says) ?? true),
  );
  const told = { reason: wordsOf(answer), code: String(status) };
  if (!rule) {
    // Behind a 5xx the request may have been taken, or not.
    return status >= 500
      ? { kind: "ambiguous", category: "outage", ...told }
      : { kind: "rejected", category: "content", ...told };
  }
  const { kind, category } = rule;
  // In seconds since 1970, unlike Retry-After.
  const resetMs = Number(answer.header("x-ratelimit-reset")) * 1000;
  const wait = kind === "limited" ? waitMsOf(resetMs - now) : undefined;
  return { kind, category, ...told, ...(wait !== undefined && { retryAfterMs: wait }) };
}

/** Its own words only: what is not its JSON may be a page of anybody's that shows our request. */
function wordsOf({ status, text }: HttpAnswer): string {
  const { field, says } = complaintOf(text);
  return says === "" ? `answered ${status}` : oneLine(field === "" ? says : `${field}: ${says}`);
}

function complaintOf(text: string): { field: string; says: string } {
  try {
    const { errors } = JSON.parse(text);
    const { field, message } = errors[0];
    return { field: typeof field === "string" ? field : "", says: typeof message === "string" ? message : "" };
  } catch {
    return { field: "", says: "" };
  }
}
