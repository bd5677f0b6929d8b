// Logs: JSON lines on standard error, readable ones on a terminal.
//
// Recipients, contents and secrets are never passed to the log; the redaction below is the second
// net, for objects that are logged whole. Standard output stays free for what a person reads.

import { type Logger, pino } from "pino";
import pretty from "pino-pretty";

export type { Logger };

const SECRET = [
  "authorization",
  "cookie",
  "password",
  "apiKey",
  "key",
  "secret",
  "token",
  "databaseUrl",
  "databaseDirectUrl",
];
const PERSONAL = ["recipient", "content", "email", "phone", "deviceTokens", "webhookUrl", "callbackUrl", "variables"];
const REDACTED = [...SECRET, ...PERSONAL].flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);

export function createLog(level: string, stream: NodeJS.WriteStream = process.stderr): Logger {
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: REDACTED, censor: "[redacted]" },
    serializers: { err: errorFields },
  };
  return pino(options, stream.isTTY ? pretty({ destination: stream, translateTime: "HH:MM:ss.l" }) : stream);
}

/** What is known of an error, without what PostgreSQL quotes of the data that caused it. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, stack } = error;
  const code = "code" in error ? error.code : undefined;
  return {
    name,
    message: withoutSecrets(error.message),
    ...(code !== undefined && { code }),
    stack: stack && withoutSecrets(stack),
    ...(error.cause !== undefined && { cause: errorFields(error.cause) }),
  };
}

/** A connection string may stand in any driver's message. */
export const withoutSecrets = (text: string): string =>
  text
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/)([^\s:/@]*):(\S+)@/gi, "$1$2:***@")
    .replace(/([?&](?:ssl)?password=)[^\s&]+/gi, "$1***")
    .replace(/\bck_([a-z0-9]{12})_[a-z0-9]+/g, "ck_$1_***");
