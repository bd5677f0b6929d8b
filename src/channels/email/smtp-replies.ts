// What an SMTP server's reply amounts to: one table, first match wins.
//
// The enhanced code (RFC 3463) says more than the plain one, and the command says whom the reply is about: a 550 to RCPT
// TO is about the recipient, a 550 to the message is about what it says or who sends it.

import type { Category, Failure } from "#domain/attempt.ts";
import { oneLine } from "#domain/said.ts";
import { REFUSED } from "#wire/public-lookup.ts";

export type SmtpError = { responseCode?: number; response?: string; command?: string; code?: string; message: string };

export type Refused = Failure & { kind: "rejected" | "dead-recipient" | "unavailable" | "limited" };

type Rule = {
  code: RegExp;
  enhanced?: RegExp;
  command?: RegExp;
  says?: RegExp;
  kind: Refused["kind"];
  category: Category;
};

const THROTTLED = /throttl|\brate\b|too (many|fast|quick)/i;

const RULES: readonly Rule[] = [
  // Before there is a message, a refusal is about this server or our place on the network, not about the message.
  { code: /^5/, command: /^(CONN|[EH][EH]LO|STARTTLS)$/, kind: "unavailable", category: "outage" },
  { code: /^(530|534|535|538)/, kind: "rejected", category: "credentials" },
  { code: /^5/, command: /^AUTH/, kind: "rejected", category: "credentials" },
  { code: /^4/, command: /^AUTH/, kind: "unavailable", category: "outage" },

  // Amazon SES answers 454 to those who send too fast.
  { code: /^454/, says: THROTTLED, kind: "limited", category: "throttled" },
  { code: /^4/, enhanced: /^4\.7\./, kind: "limited", category: "throttled" },
  { code: /^4/, enhanced: /^4\.5\.3/, kind: "limited", category: "throttled" },
  { code: /^4/, enhanced: /^4\.2\.1/, kind: "limited", category: "throttled" },
  { code: /^4/, enhanced: /^4\.2\.2/, kind: "unavailable", category: "recipient" },
  { code: /^4/, enhanced: /^4\.4\./, kind: "unavailable", category: "network" },
  { code: /^4(21|5[012])/, says: THROTTLED, kind: "limited", category: "throttled" },
  { code: /^4/, kind: "unavailable", category: "outage" },

  // 5.1.7 and 5.1.8 are about the sender's address: the recipient may live.
  { code: /^5/, enhanced: /^5\.1\.[78]/, kind: "rejected", category: "credentials" },
  { code: /^5/, enhanced: /^5\.1\./, kind: "dead-recipient", category: "recipient" },
  { code: /^5/, enhanced: /^5\.2\.1/, kind: "dead-recipient", category: "recipient" },
  // A full mailbox is somebody's, if not for this message.
  { code: /^5/, enhanced: /^5\.2\.2/, kind: "rejected", category: "recipient" },
  { code: /^5/, enhanced: /^5\.[2-7]\./, kind: "rejected", category: "content" },
  { code: /^55[013]/, command: /^RCPT TO/, kind: "dead-recipient", category: "recipient" },
  { code: /^5/, command: /^MAIL FROM/, kind: "rejected", category: "credentials" },
  { code: /^55[0-4]/, kind: "rejected", category: "content" },
  // 50x: our commands are not understood. Another attempt may meet a server that does.
  { code: /^50/, kind: "unavailable", category: "outage" },
  { code: /^5/, kind: "rejected", category: "content" },
];

const UNQUOTED: { readonly [code: string]: string } = {
  EPROTOCOL: "the server does not speak SMTP",
  ETLS: "TLS could not be agreed on",
  ETIMEDOUT: "the server did not answer in time",
};

/**
 * What went wrong with a connection to a host of which nothing is known, in our words and its numbers. Whatever stands there may
 * greet with what is nobody's business; who knows us and refuses the login has proved a mail server.
 */
export function unquoted(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code, command = "", response = "" }: SmtpError = error;
  // Without a code they are our own words.
  if (code === undefined || code === REFUSED || command.startsWith("AUTH")) return error;
  const told = /^[245]\d\d(?=[ -]|$)/.exec(response)?.[0];
  const enhanced = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1];
  const said = told && { responseCode: Number(told), response: enhanced ? `${told} ${enhanced}` : told };
  return Object.assign(new Error(UNQUOTED[code] ?? `the server cannot be reached (${code})`), {
    code,
    command,
    ...said,
  });
}

/** Undefined when the server did not say anything that settles it. */
export function replyTo({ responseCode, response = "", command = "" }: SmtpError): Refused | undefined {
  if (responseCode === undefined) return undefined;
  const code = String(responseCode);
  const enhanced = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1];
  const rule = RULES.find(
    (one) =>
      one.code.test(code) &&
      (one.enhanced === undefined || (enhanced !== undefined && one.enhanced.test(enhanced))) &&
      (one.command === undefined || one.command.test(command)) &&
      (one.says === undefined || one.says.test(response)),
  );
  if (!rule) return undefined;
  const { kind, category } = rule;
  return { kind, category, code: enhanced ? `${code} ${enhanced}` : code, reason: oneLine(response) };
}
