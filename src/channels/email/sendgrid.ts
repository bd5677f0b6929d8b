// E-mail through SendGrid's API, version 3.

import type { Provider } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import { oneLine, waitMsOf } from "#domain/said.ts";
import { ABREAST, createHttp, type HttpAnswer } from "#wire/http.ts";
import { AWAY, BAD_CONTENT, BAD_CREDENTIALS, BROKE, DEAD, LIMITED, type Verdict } from "#wire/verdict.ts";
import { checkMailSettings, type Mail, type MailSettings } from "./mail.ts";
import { type MailCarrier, mailProvider } from "./mailing.ts";
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
  verdict: Verdict;
};

/** First match wins. */
const RULES: readonly Rule[] = [
  // A plan that is used up is told as if the key were wrong.
  { status: 401, says: /credits exceeded/i, verdict: LIMITED },
  { status: 401, verdict: BAD_CREDENTIALS },
  { status: 403, verdict: BAD_CREDENTIALS },
  { status: 400, field: /^personalizations\b.*\bto\b/, says: /valid address/i, verdict: DEAD },
  { status: 429, verdict: LIMITED },
  { status: 503, verdict: AWAY },
];

export function sendgridProvider(
  settings: SendgridSettings,
  { now = Date.now }: { now?: () => number } = {},
): Provider {
  checkMailSettings("sendgrid", settings);
  const { apiKey, apiUrl = "https://api.sendgrid.com", webhookPublicKey, reportToleranceMs } = settings;
  const http = createHttp();
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };

  const own: MailCarrier = {
    name: "sendgrid",
    capabilities: { maxBytes: 30 * 1024 * 1024, abreast: ABREAST, cost: 0.0009 },
    encode: (mail) => ({ type: "application/json", body: jsonOf(mail) }),
    async carry(mail, { signal, timeoutMs }) {
      const answer = await http.ask({
        url: `${apiUrl}/v3/mail/send`,
        headers,
        body: jsonOf(mail),
        signal,
        timeoutMs,
      });
      return "kind" in answer ? answer : replyOf(answer, now());
    },
    async check(signal) {
      const answer = await http.ask({ method: "GET", url: `${apiUrl}/v3/scopes`, headers, signal });
      if ("kind" in answer) return { healthy: false, detail: answer.reason };
      if (answer.status !== 200) return { healthy: false, detail: wordsOf(answer) };
      return answer.text.includes('"mail.send"')
        ? { healthy: true, detail: "the key may send mail" }
        : { healthy: false, detail: "the key may not send mail" };
    },
    ...(webhookPublicKey !== undefined && {
      report: createSendgridReports({
        publicKey: webhookPublicKey,
        now,
        ...(reportToleranceMs !== undefined && { toleranceMs: reportToleranceMs }),
      }),
    }),
    close: () => http.close(),
  };
  return mailProvider(own, settings);
}

const jsonOf = (mail: Mail): string => JSON.stringify(bodyOf(mail));

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
  // Behind a 5xx the request may have been taken, or not.
  const { kind, category } = rule?.verdict ?? (status >= 500 ? BROKE : BAD_CONTENT);
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
