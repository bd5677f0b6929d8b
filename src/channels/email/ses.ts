// E-mail through Amazon SES, API version 2. SES replaces the Message-ID by one of its own, which is the receipt.

import { encodeWords } from "nodemailer/lib/mime-funcs";
import type { Provider } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import type { Time } from "#wire/clock.ts";
import { ABREAST, createHttp, type Http, type HttpAnswer } from "#wire/http.ts";
import { createPublicHttp } from "#wire/public-only.ts";
import { type AwsCredentials, signV4 } from "#wire/sigv4.ts";
import { checkMailSettings, type Mail, type MailSettings } from "./mail.ts";
import { type MailCarrier, mailProvider } from "./mailing.ts";
import { mimeOf } from "./mime.ts";
import { failureOf, fieldsOf } from "./ses-errors.ts";
import { sesReports } from "./ses-reports.ts";
import { createSns } from "./sns.ts";

export type SesSettings = MailSettings &
  AwsCredentials & {
    region: string;
    apiUrl?: string;
    /** Decides where SES publishes its events. */
    configurationSet?: string;
    /** The SNS topics whose reports are ours. Without any no reports are read. */
    topicArns?: readonly string[];
  };
export type SesOptions = {
  now?: () => number;
  /** Hosts, addresses and CIDRs that SNS may be reached at although they are not public, as inside a VPC. */
  allow?: readonly string[];
  /** Reads the certificates of SNS and confirms its subscriptions. */
  fetchText?: (url: string) => Promise<string>;
};

export function sesProvider(settings: SesSettings, options: SesOptions = {}): Provider {
  checkMailSettings("ses", settings);
  const { now = Date.now, allow = [], fetchText = (url) => textAt(url, publicHttp) } = options;
  const { region, apiUrl = `https://email.${region}.amazonaws.com`, topicArns = [] } = settings;
  const http = createHttp();
  const publicHttp = createPublicHttp({ allow });

  function ask(method: "GET" | "POST", path: string, body: string, time: Time) {
    const request = { method, url: `${apiUrl}${path}`, body, headers: { "content-type": "application/json" } };
    const { host: _, ...headers } = signV4(request, { service: "ses", region, credentials: settings, now: now() });
    return http.ask({ method, url: request.url, headers, ...(body !== "" && { body }), ...time });
  }
  const sns = createSns({ topicArns, now, fetchText });

  const jsonOf = async (mail: Mail) => JSON.stringify(await bodyOf(mail, settings, now()));

  const own: MailCarrier = {
    name: "ses",
    capabilities: { maxBytes: 40 * 1024 * 1024, abreast: ABREAST, cost: 0.0001 },
    encode: async (mail) => ({ type: "application/json", body: await jsonOf(mail) }),
    async carry(mail, { signal, timeoutMs }) {
      const body = await jsonOf(mail);
      const answer = await ask("POST", "/v2/email/outbound-emails", body, { signal, timeoutMs });
      return "kind" in answer ? answer : replyOf(answer);
    },
    async check(signal) {
      const answer = await ask("GET", "/v2/email/account", "", { signal });
      if ("kind" in answer) return { healthy: false, detail: answer.reason };
      if (answer.status !== 200) return { healthy: false, detail: failureOf(answer).reason };
      const { SendingEnabled, ProductionAccessEnabled } = fieldsOf(answer.text);
      if (SendingEnabled !== true) return { healthy: false, detail: "the account may not send" };
      return { healthy: true, detail: ProductionAccessEnabled === true ? "the account may send" : "in the sandbox" };
    },
    ...(topicArns.length > 0 && {
      async report({ body }) {
        const message = await sns.read(body);
        return message && sesReports(message);
      },
    }),
    async close() {
      await Promise.all([http.close(), publicHttp.close()]);
    },
  };
  return mailProvider(own, settings);
}

// What SES allows in the headers of a message it composes itself.
const MAX_HEADERS = 15;
const SIMPLE_HEADER = /^[ -~]{1,870}$/;

async function bodyOf(mail: Mail, { configurationSet }: SesSettings, now: number): Promise<object> {
  const { from, to, cc, bcc, replyTo, headers, attachments } = mail;
  const entries = Object.entries(headers);
  const isSimple =
    attachments.length === 0 &&
    entries.length <= MAX_HEADERS &&
    entries.every(([, value]) => SIMPLE_HEADER.test(value));
  return {
    FromEmailAddress: from.name ? `${nameOf(from.name)} <${from.address}>` : from.address,
    Destination: {
      ToAddresses: [to],
      ...(cc.length > 0 && { CcAddresses: cc }),
      ...(bcc.length > 0 && { BccAddresses: bcc }),
    },
    ...(replyTo !== undefined && { ReplyToAddresses: [replyTo] }),
    Content: isSimple
      ? { Simple: simpleOf(mail) }
      : { Raw: { Data: (await mimeOf(mail, now)).bytes.toString("base64") } },
    ...(configurationSet !== undefined && { ConfigurationSetName: configurationSet }),
  };
}

function simpleOf({ subject, text, html, headers }: Mail): object {
  const utf8 = (Data: string) => ({ Data, Charset: "UTF-8" });
  const entries = Object.entries(headers);
  return {
    Subject: utf8(subject),
    // HTML without a word, such as one picture, has no text.
    Body: { ...(text !== "" && { Text: utf8(text) }), ...(html !== undefined && { Html: utf8(html) }) },
    ...(entries.length > 0 && { Headers: entries.map(([Name, Value]) => ({ Name, Value })) }),
  };
}

/** SES takes names beyond ASCII only as mail headers carry them. */
const nameOf = (name: string) =>
  /^[ -~]*$/.test(name) ? `"${name.replace(/["\\]/g, "\\$&")}"` : encodeWords(name, "B", 52, true);

function replyOf(answer: HttpAnswer): Reply {
  if (answer.status < 200 || answer.status >= 300) return failureOf(answer);
  const { MessageId } = fieldsOf(answer.text);
  return typeof MessageId === "string"
    ? { kind: "accepted", receipt: MessageId }
    : { kind: "ambiguous", reason: `answered ${answer.status} without an id`, category: "outage" };
}

const FETCH_MS = 10_000;

async function textAt(url: string, http: Http): Promise<string> {
  const answer = await http.ask({ method: "GET", url, signal: AbortSignal.timeout(FETCH_MS) });
  if ("kind" in answer) throw new Error("Amazon SNS did not answer");
  if (answer.status !== 200) throw new Error(`Amazon SNS answered ${answer.status}`);
  return answer.text;
}
