// What each type of provider may be told. The configuration, tenants' credentials and the documentation go by these.

import { type TSchema, Type } from "typebox";
import type { TestProviderOptions } from "#channels/dev/test.ts";
import type { SendgridSettings } from "#channels/email/sendgrid.ts";
import type { SesSettings } from "#channels/email/ses.ts";
import type { SmtpSettings } from "#channels/email/smtp.ts";
import type { ApnsSettings } from "#channels/push/apns.ts";
import type { FcmSettings } from "#channels/push/fcm.ts";
import type { WebPushSettings } from "#channels/push/web.ts";
import type { SlackSettings } from "#channels/slack/slack.ts";
import type { TwilioSettings } from "#channels/sms/twilio.ts";
import type { WebhookSettings } from "#channels/webhook/webhook.ts";
import { oneOf, strict } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import { compile } from "#domain/validate.ts";
import { parseAddress } from "#wire/address.ts";

export type Settings =
  | { type: "console" }
  | { type: "dev" }
  | { type: "file"; path?: string }
  | { type: "inbox" }
  | ({ type: "smtp" } & SmtpSettings)
  | ({ type: "sendgrid" } & SendgridSettings)
  | ({ type: "ses" } & SesSettings)
  | ({ type: "fcm" } & FcmSettings)
  | ({ type: "apns" } & ApnsSettings)
  | ({ type: "webpush" } & WebPushSettings)
  | ({ type: "twilio" } & TwilioSettings)
  | ({ type: "slack" } & SlackSettings)
  | ({ type: "webhook" } & WebhookSettings)
  | ({ type: "test" } & TestProviderOptions);

const text = (maxLength = 4096) => Type.String({ minLength: 1, maxLength });
/** What goes into a header or a URL as it is. */
const word = (maxLength = 4096) =>
  Type.String({ pattern: "^[!-~]+$", maxLength, "x-expects": "printable ASCII without spaces" });
const count = (maximum: number) => Type.Integer({ minimum: 1, maximum });
const url = Type.String({ pattern: "^https?://[!-~]+$", maxLength: 2048, "x-expects": "an http or https URL" });
const maybe = Type.Optional;

const mail = {
  from: text(254),
  fromName: maybe(text(200)),
  replyTo: maybe(text(254)),
  allowFrom: maybe(Type.Array(text(254), { maxItems: 100 })),
  headers: maybe(Type.Record(Type.String(), text(998))),
  unsubscribeUrl: maybe(url),
  maxAttachments: maybe(count(100)),
  maxAttachmentBytes: maybe(count(40_000_000)),
};
const share = Type.Number({ minimum: 0, maximum: 1 });

/** By type; `type` itself is added to each. */
export const SETTINGS = {
  console: {},
  dev: {},
  file: { path: maybe(text()) },
  inbox: {},
  smtp: {
    ...mail,
    host: text(253),
    port: maybe(count(65_535)),
    tls: maybe(oneOf(["implicit", "required", "opportunistic", "none"])),
    ca: maybe(text(100_000)),
    user: maybe(text(320)),
    password: maybe(text()),
    dkim: maybe(strict({ domain: text(253), selector: text(63), privateKey: text(20_000) })),
    clientName: maybe(word(253)),
    connections: maybe(count(1_000)),
    connectTimeoutMs: maybe(count(600_000)),
  },
  sendgrid: {
    ...mail,
    apiKey: word(),
    apiUrl: maybe(url),
    webhookPublicKey: maybe(text()),
    reportToleranceMs: maybe(count(86_400_000)),
  },
  ses: {
    ...mail,
    // It becomes part of a host name.
    region: Type.String({ pattern: "^[a-z0-9-]{1,32}$", "x-expects": "a region like eu-west-1" }),
    accessKeyId: word(128),
    secretAccessKey: word(256),
    sessionToken: maybe(word(8192)),
    configurationSet: maybe(text(64)),
    topicArns: maybe(Type.Array(text(256), { maxItems: 20 })),
    apiUrl: maybe(url),
  },
  fcm: {
    serviceAccount: Type.Object({ project_id: text(), client_email: text(), private_key: text(20_000) }),
    apiUrl: maybe(url),
    tokenUrl: maybe(url),
  },
  apns: {
    teamId: text(32),
    keyId: text(32),
    privateKey: text(20_000),
    topic: word(256),
    environment: maybe(oneOf(["production", "sandbox"])),
    apiUrl: maybe(url),
    connections: maybe(count(100)),
  },
  webpush: { publicKey: text(256), privateKey: text(256), subject: text(512) },
  twilio: {
    accountSid: text(64),
    authToken: text(128),
    from: maybe(text(32)),
    messagingServiceSid: maybe(text(64)),
    statusCallback: maybe(url),
    apiUrl: maybe(url),
    costPerSegment: maybe(Type.Number({ minimum: 0, maximum: 100 })),
  },
  slack: { token: maybe(word()), webhookUrl: maybe(url), apiUrl: maybe(url) },
  webhook: { secret: maybe(Type.Union([text(256), Type.Array(text(256), { minItems: 1, maxItems: 5 })])) },
  test: {
    log: maybe(text()),
    latencyMs: maybe(Type.Unknown()),
    mix: maybe(Type.Record(Type.String(), share)),
    retryAfterMs: maybe(Type.Integer({ minimum: 0 })),
    cost: maybe(Type.Number({ minimum: 0, maximum: 100 })),
    // Functions, from tests in the same process.
    random: maybe(Type.Unknown()),
    onSend: maybe(Type.Unknown()),
    decide: maybe(Type.Unknown()),
    receiver: maybe(Type.Unknown()),
  },
} as const satisfies { [type in Settings["type"]]: { [name: string]: TSchema } };

export type ProviderType = keyof typeof SETTINGS;
export const PROVIDER_TYPES = Object.keys(SETTINGS) as ProviderType[];

const checks = new Map(
  Object.entries(SETTINGS).map(([type, fields]) => [type, compile(strict({ type: Type.Literal(type), ...fields }))]),
);

/** Every fault of a provider's settings; the values themselves are never repeated. */
export function faultsOfSettings(settings: unknown): Fault[] {
  const type = settings !== null && typeof settings === "object" && "type" in settings ? settings.type : undefined;
  const check = typeof type === "string" ? checks.get(type) : undefined;
  if (!check) return [{ path: "/type", message: `must be one of ${PROVIDER_TYPES.join(", ")}` }];
  return check(settings);
}

/** What tenants may bring themselves. */
export const OWN_TYPES = ["smtp", "sendgrid", "ses", "fcm", "apns", "webpush", "twilio", "slack", "webhook"] as const;

/** These would let a tenant choose which machine of ours is spoken to. */
const OURS = ["apiUrl", "tokenUrl", "ca"];

/** Every fault of settings that a tenant brings. */
export function ownFaults(settings: { type: string } & { [name: string]: unknown }): Fault[] {
  if (!OWN_TYPES.some((type) => type === settings.type)) {
    return [{ path: "/type", message: `must be one of ${OWN_TYPES.join(", ")}` }];
  }
  const faults = faultsOfSettings(settings);
  for (const name of OURS) {
    if (name in settings) faults.push({ path: `/${name}`, message: "may be set by the deployment only" });
  }
  const { serviceAccount, host } = settings;
  if (serviceAccount !== null && typeof serviceAccount === "object" && "token_uri" in serviceAccount) {
    if (serviceAccount.token_uri !== "https://oauth2.googleapis.com/token") {
      faults.push({ path: "/serviceAccount/token_uri", message: "must be https://oauth2.googleapis.com/token" });
    }
  }
  if (typeof host === "string" && !isPublicName(host)) {
    faults.push({ path: "/host", message: "must be the public name of a mail server" });
  }
  return faults;
}

/** Not an address in any of its notations (127.1, 0x7f.1, ::1); what the name leads to is looked at when it is connected to. */
function isPublicName(host: string): boolean {
  const url = `http://${host}/`;
  if (!URL.canParse(url)) return false;
  const { hostname, href } = new URL(url);
  return href === `http://${hostname}/` && hostname.includes(".") && parseAddress(hostname) === undefined;
}

/** Texts of the form `env:NAME` stand for a variable of the environment. Answers with those that are missing. */
export function withEnvironment(
  value: unknown,
  env: { [name: string]: string | undefined },
  missing: string[],
): unknown {
  if (typeof value === "string" && /^env:[A-Za-z_][A-Za-z0-9_]*$/.test(value)) {
    const name = value.slice("env:".length);
    const found = env[name];
    if (found === undefined || found === "") missing.push(name);
    return found;
  }
  if (Array.isArray(value)) return value.map((one) => withEnvironment(one, env, missing));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withEnvironment(one, env, missing)]));
}
