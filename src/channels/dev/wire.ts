// What a message would have been on the wire, made by the very functions of those who would have sent it.
//
// Where the deployment has an account for the channel, its settings count: who a mail is from, which secret signs. Otherwise made-up ones stand in.

import type { Encoded, Message } from "#channels/channel.ts";
import { type MailSettings, mailOf } from "#channels/email/mail.ts";
import { mimeOf } from "#channels/email/mime.ts";
import { encodeApns } from "#channels/push/apns.ts";
import { encodeFcm } from "#channels/push/fcm.ts";
import { encodeWebPush } from "#channels/push/web.ts";
import type { Settings } from "#channels/settings.ts";
import { encodeSlack } from "#channels/slack/slack.ts";
import { type Segments, segmentsOf } from "#channels/sms/segments.ts";
import { encodeSms, senderOf } from "#channels/sms/twilio.ts";
import { encodeWebhook, webhookKeys } from "#channels/webhook/webhook.ts";
import type { Reply } from "#domain/attempt.ts";
import { itemOf } from "#domain/inbox.ts";
import { lineOf } from "./console.ts";
import { fileLine } from "./file.ts";

/** `as`: whose way of writing it is. */
export type Wire = Encoded & {
  as: "smtp" | "twilio" | "fcm" | "apns" | "webpush" | "slack" | "webhook" | "inbox" | "console" | "file";
  url?: string;
  /** Of a mail: who gets it, and what is not part of its text. */
  mail?: {
    from: string;
    to: readonly string[];
    cc: readonly string[];
    bcc: readonly string[];
    replyTo?: string;
    subject: string;
    text: string;
    headers: { readonly [name: string]: string };
    messageId: string;
  };
  sms?: Segments & { characters: number };
};

export type WireOptions = {
  /** Of the deployment's providers. */
  settings: readonly Settings[];
  /** The true time: whoever checks a signature goes by it. */
  now: () => number;
  /** What recipients are told: the date of a mail. */
  clock: () => number;
};

const STAND_IN_MAIL: MailSettings = { from: "carillon@localhost.localdomain" };
const STAND_IN_NUMBER = "+15550100";

/** The message as it would have left, or the reply with which it would have been refused. */
export function createWire({ settings, now, clock }: WireOptions): (message: Message) => Promise<Wire | Reply> {
  const of = <Type extends Settings["type"]>(...types: Type[]) =>
    settings.find((one): one is Extract<Settings, { type: Type }> => types.some((type) => type === one.type));
  const mail = of("smtp", "sendgrid", "ses");
  const twilio = of("twilio");
  const sender = senderOf(twilio ?? { from: STAND_IN_NUMBER });
  const slack = of("slack") ?? { token: "stand-in" };
  const keys = webhookKeys(of("webhook")?.secret ?? []);
  const isAppleByGoogle = of("fcm") !== undefined && of("apns") === undefined;

  function pushOf(message: Message): Wire | Reply {
    const { device } = message;
    if (device?.subscription) {
      return as("webpush", encodeWebPush(message, clock()), { url: device.subscription.endpoint });
    }
    if (device?.platform === "ios" && !isAppleByGoogle) {
      const encoded = encodeApns(message);
      if ("kind" in encoded) return encoded;
      const { id: _, ...rest } = encoded;
      return as("apns", rest);
    }
    return as("fcm", encodeFcm(message, clock()));
  }

  return async (message) => {
    const { request } = message;
    switch (request.channel) {
      case "email":
        return mailWire(message, mail ?? standInFor(request.content.from), clock());
      case "sms": {
        const text = request.content.body ?? "";
        return as("twilio", encodeSms(message, sender), { sms: { ...segmentsOf(text), characters: [...text].length } });
      }
      case "push":
        return pushOf(message);
      case "slack": {
        const url = request.recipient?.webhookUrl;
        return as("slack", encodeSlack(message, slack), url === undefined ? {} : { url });
      }
      case "webhook":
        return as("webhook", encodeWebhook(message, keys, now()));
      case "inbox": {
        const item = itemOf({ id: message.notificationId, tenant: message.tenant }, request);
        if ("fault" in item) return { kind: "rejected", reason: item.fault, category: "content" };
        const { tenant: _, ...shown } = item;
        return as("inbox", { type: "application/json", body: JSON.stringify(shown) });
      }
      case "console":
        return as("console", { type: "text/plain", body: lineOf(message) });
      case "file":
        return as("file", { type: "application/json", body: fileLine(message, clock()) });
    }
  };
}

const as = (name: Wire["as"], encoded: Encoded | Reply, more: Partial<Wire> = {}): Wire | Reply =>
  "kind" in encoded ? encoded : { as: name, ...encoded, ...more };

/** Without an account there is none that somebody could pretend to be. */
const standInFor = (from: string | undefined): MailSettings =>
  from === undefined ? STAND_IN_MAIL : { ...STAND_IN_MAIL, allowFrom: [from] };

/** As SMTP carries it, whoever would: it is what arrives in a mailbox. */
async function mailWire(message: Message, settings: MailSettings, now: number): Promise<Wire | Reply> {
  const mail = mailOf(message, settings);
  if ("kind" in mail) return mail;
  const { envelope, bytes } = await mimeOf(mail, now);
  const { from, to, cc, bcc, replyTo, subject, text, headers, messageId } = mail;
  return {
    as: "smtp",
    type: "message/rfc822",
    body: bytes.toString(),
    mail: {
      from: from.name ? `${from.name} <${from.address}>` : (envelope.from ?? from.address),
      to: [to],
      cc,
      bcc,
      ...(replyTo !== undefined && { replyTo }),
      subject,
      text,
      headers,
      messageId,
    },
  };
}
