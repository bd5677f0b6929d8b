// From a message to the mail that every e-mail provider is given.
//
// A line break in a header or an address would let a sender write headers of their own, so CR, LF and NUL are refused
// twice: when the request comes in, and again here, as templates fill in subjects after that.

import { domainToASCII } from "node:url";
import type { Message } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import type { Fault } from "#domain/problems.ts";
import { pointer } from "#domain/schema.ts";
import { faultOfHeader } from "#domain/validate.ts";
import { BadSettings } from "#wire/bad-settings.ts";
import { plainTextOf } from "./plain-text.ts";

export type MailSettings = {
  /** The sender's address. */
  from: string;
  /** The name shown beside it. */
  fromName?: string;
  replyTo?: string;
  /** What a message may name as its own sender, beside addresses in the domain of `from`: addresses or whole domains. */
  allowFrom?: readonly string[];
  /** Added to every mail. */
  headers?: { readonly [name: string]: string };
  /** Where one click unsubscribes (RFC 8058): an https URL with `{{userId}}`, `{{email}}`, `{{notificationId}}`. */
  unsubscribeUrl?: string;
  maxAttachments?: number;
  /** All attachments of a mail together, decoded. */
  maxAttachmentBytes?: number;
};

export type Attachment = { filename: string; contentType: string /** Base64. */; content: string };
export type Mail = {
  from: { address: string; name?: string };
  to: string;
  /** Nobody twice, whatever the message says. */
  cc: readonly string[];
  bcc: readonly string[];
  replyTo?: string;
  subject: string;
  text: string;
  html?: string;
  attachments: readonly Attachment[];
  /** Beyond those above. */
  headers: { readonly [name: string]: string };
  /** With its angle brackets. The same for every attempt, so that mailboxes can tell a repetition. */
  messageId: string;
};

const MAX_ATTACHMENTS = 10;
// Most mail servers stop at 25 MB or so, and base64 adds a third.
const MAX_ATTACHMENT_BYTES = 15 * 1024 * 1024;
// RFC 5322 ends a line at 998 characters, and a URL cannot be folded.
const MAX_URL = 900;
const NOT_A_LINE = "must not contain a line break or NUL";

/** What no mail may be made of. A template's result is not known yet: what is missing is no fault here. */
export function mailFaults({ recipient, content }: NotificationRequest, settings: MailSettings): Fault[] {
  const faults: Fault[] = [];
  const line = (path: string, text: string | undefined) => {
    if (text !== undefined && !isLine(text)) faults.push({ path, message: NOT_A_LINE });
  };
  line("/recipient/email", recipient?.email);
  if (recipient?.email !== undefined && isLine(recipient.email) && addressOf(recipient.email) === undefined) {
    faults.push({ path: "/recipient/email", message: "must be an e-mail address" });
  }
  line("/content/subject", content.subject);
  line("/content/fromName", content.fromName);
  if (content.from !== undefined && !maySendAs(content.from, settings)) {
    faults.push({ path: "/content/from", message: "is not an address that this account may send from" });
  }
  for (const [path, address] of copiesIn(content)) {
    if (addressOf(address) === undefined) faults.push({ path, message: "must be an e-mail address" });
  }
  for (const [name, value] of Object.entries(content.headers ?? {})) {
    const path = pointer("/content/headers", name);
    const fault = faultOfHeader(name);
    if (fault !== undefined) faults.push({ path, message: fault });
    line(path, value);
  }
  for (const [index, { filename, contentType }] of (content.attachments ?? []).entries()) {
    line(`/content/attachments/${index}/filename`, filename);
    line(`/content/attachments/${index}/contentType`, contentType);
  }
  faults.push(...attachmentFaults(content.attachments ?? [], settings));
  return faults;
}

function copiesIn({ cc = [], bcc = [], replyTo }: NotificationRequest["content"]): [path: string, address: string][] {
  const listed = (name: string, list: readonly string[]) =>
    list.map((address, n): [string, string] => [`/content/${name}/${n}`, address]);
  return [
    ...listed("cc", cc),
    ...listed("bcc", bcc),
    ...(replyTo === undefined ? [] : [["/content/replyTo", replyTo] as [string, string]]),
  ];
}

/** Else anybody with a key could send in the name of whoever else uses the account, or of nobody who does. */
function maySendAs(address: string, { from, allowFrom = [] }: MailSettings): boolean {
  const given = addressOf(address)?.toLowerCase();
  if (given === undefined) return false;
  const domain = domainOf(given);
  return [domainOf(from), ...allowFrom].some((one) => {
    const allowed = (one.includes("@") ? asciiDomain(one) : domainToASCII(one)).toLowerCase();
    return allowed === given || allowed === domain;
  });
}

function attachmentFaults(attachments: readonly Attachment[], settings: MailSettings): Fault[] {
  const { maxAttachments = MAX_ATTACHMENTS, maxAttachmentBytes = MAX_ATTACHMENT_BYTES } = settings;
  const path = "/content/attachments";
  if (attachments.length > maxAttachments) return [{ path, message: `must be at most ${maxAttachments}` }];
  const bytes = attachments.reduce((sum, { content }) => sum + Buffer.byteLength(content, "base64"), 0);
  return bytes > maxAttachmentBytes
    ? [{ path, message: `must be at most ${maxAttachmentBytes} bytes together, not ${bytes}` }]
    : [];
}

/** The mail, or why there can be none. */
export function mailOf({ notificationId, request }: Message, settings: MailSettings): Mail | Reply {
  const [fault] = mailFaults(request, settings);
  if (fault) {
    const category = fault.path.startsWith("/recipient") ? "recipient" : "content";
    return { kind: "rejected", reason: `${fault.path.slice(1)} ${fault.message}`, category };
  }
  const { recipient, content } = request;
  const to = recipient?.email === undefined ? undefined : addressOf(recipient.email);
  if (to === undefined) return { kind: "rejected", reason: "there is no address to send to", category: "recipient" };
  const { htmlBody: html, textBody = html === undefined ? undefined : plainTextOf(html), subject } = content;
  if (subject === undefined || textBody === undefined) {
    return { kind: "rejected", reason: "there is no subject or no body", category: "content" };
  }
  const { from, headers } = settings;
  const fromName = content.fromName ?? (content.from === undefined ? settings.fromName : undefined);
  const replyTo = content.replyTo ?? settings.replyTo;
  const told = new Set([to.toLowerCase()]);
  const cc = othersOf(content.cc, told);
  const bcc = othersOf(content.bcc, told);
  return {
    from: { address: asciiDomain(content.from ?? from), ...(fromName !== undefined && { name: fromName }) },
    to,
    cc,
    bcc,
    ...(replyTo !== undefined && { replyTo: asciiDomain(replyTo) }),
    subject,
    text: textBody,
    ...(html !== undefined && { html }),
    attachments: content.attachments ?? [],
    headers: {
      ...withoutOverwritten(headers, content.headers),
      ...content.headers,
      ...unsubscribeHeaders(settings.unsubscribeUrl, { ...recipient, notificationId }),
    },
    messageId: `<${notificationId}@${asciiDomain(from).split("@")[1]}>`,
  };
}

/** Those of the list that `told` does not hold yet; it holds them afterwards. SendGrid refuses an address that stands twice. */
function othersOf(list: readonly string[] = [], told: Set<string>): string[] {
  return list.map(asciiDomain).filter((address) => {
    const isNew = !told.has(address.toLowerCase());
    told.add(address.toLowerCase());
    return isNew;
  });
}

/** Names of headers are the same in any case: a message's own header stands instead of the account's. */
function withoutOverwritten(headers: MailSettings["headers"] = {}, own: MailSettings["headers"] = {}) {
  const names = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.has(name.toLowerCase())));
}

function unsubscribeHeaders(
  template: string | undefined,
  values: { userId?: string; email?: string; notificationId: string },
): { [name: string]: string } {
  if (template === undefined) return {};
  let isComplete = true;
  const url = template.replace(/\{\{\s*(userId|email|notificationId)\s*\}\}/g, (_, name: keyof typeof values) => {
    isComplete &&= values[name] !== undefined;
    return encodeURIComponent(values[name] ?? "");
  });
  // A link that unsubscribes nobody is worse than none, and one that does not fit on a line ruins the mail.
  if (!isComplete || url.length > MAX_URL) return {};
  return { "List-Unsubscribe": `<${url}>`, "List-Unsubscribe-Post": "List-Unsubscribe=One-Click" };
}

/** What is wrong with settings is told when the provider is opened, all of it. */
export function checkMailSettings(provider: string, settings: MailSettings): void {
  const { from, fromName = "", replyTo, allowFrom = [], headers = {}, unsubscribeUrl } = settings;
  const faults: Fault[] = [];
  const wrong = (path: string, message: string) => faults.push({ path, message });
  if (addressOf(from) === undefined) wrong("/from", "must be an e-mail address");
  if (replyTo !== undefined && addressOf(replyTo) === undefined) wrong("/replyTo", "must be an e-mail address");
  for (const [n, one] of allowFrom.entries()) {
    if (addressOf(one.includes("@") ? one : `any@${one}`) === undefined)
      wrong(`/allowFrom/${n}`, "must be an e-mail address or a domain");
  }
  if (!isLine(fromName)) wrong("/fromName", NOT_A_LINE);
  for (const [name, value] of Object.entries(headers)) {
    const fault = faultOfHeader(name);
    if (fault !== undefined) wrong(pointer("/headers", name), fault);
    else if (!isLine(value)) wrong(pointer("/headers", name), NOT_A_LINE);
  }
  // RFC 8058 knows https only; angle brackets and spaces would end the header's URL.
  if (unsubscribeUrl !== undefined && !/^https:\/\/[!-;=?-~]+$/.test(unsubscribeUrl)) {
    wrong("/unsubscribeUrl", "must be an https URL");
  }
  if (faults.length > 0) throw new BadSettings(provider, faults);
}

const isLine = (text: string) => !/[\r\n\0]/.test(text);

/** With its domain as DNS knows it; undefined when it is no address. */
function addressOf(text: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  if (!/^[^\u0000-\u0020\u007f@<>(),;:"\\]+@[^\u0000-\u0020\u007f@<>(),;:"\\]+$/.test(text)) return undefined;
  const address = asciiDomain(text);
  return address.endsWith("@") ? undefined : address;
}

const domainOf = (address: string): string => asciiDomain(address).slice(address.lastIndexOf("@") + 1);

function asciiDomain(address: string): string {
  const at = address.lastIndexOf("@");
  return `${address.slice(0, at)}@${domainToASCII(address.slice(at + 1))}`;
}
