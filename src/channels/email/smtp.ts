// E-mail over SMTP.
//
// A mail is the server's from the moment it has read the final dot, and its answer comes after that. So what a lost
// connection means depends on the dot: before it left, nothing was sent; after it, nobody can tell.

import { Readable } from "node:stream";
import { rootCertificates } from "node:tls";
import type { Provider } from "#channels/channel.ts";
import type { Reply } from "#domain/attempt.ts";
import { oneLine } from "#domain/said.ts";
import { type Clock, startClock } from "#wire/clock.ts";
import { type PublicLookup, REFUSED } from "#wire/public-lookup.ts";
import type { Failed } from "#wire/verdict.ts";
import { type DkimSettings, dkimSigner } from "./dkim.ts";
import { checkMailSettings, type Mail, type MailSettings } from "./mail.ts";
import { type MailCarrier, mailProvider } from "./mailing.ts";
import { type Mime, mimeOf } from "./mime.ts";
import { type Connections, createConnections, type Lent } from "./smtp-connections.ts";
import { replyTo, type SmtpError } from "./smtp-replies.ts";

export type SmtpSettings = MailSettings & {
  host: string;
  /** 465 with `tls: "implicit"`, else 587, unless told otherwise. */
  port?: number;
  /**
   * `implicit`: TLS from the first byte. `required`: STARTTLS or nothing, the default. `opportunistic`: STARTTLS where
   * the server offers it. `none`: never, for servers on the same machine.
   */
  tls?: "implicit" | "required" | "opportunistic" | "none";
  /** A PEM certificate to trust besides those that Node trusts. */
  ca?: string;
  user?: string;
  password?: string;
  /** Signs every mail. */
  dkim?: DkimSettings;
  /** How we call ourselves in EHLO. */
  clientName?: string;
  connections?: number;
  /** To connect, to greet and to agree on TLS. */
  connectTimeoutMs?: number;
};

const MAILS_PER_CONNECTION = 100;
/** Of these one is kept for urgent and high mails. */
const CONNECTIONS = 6;
// RFC 5321 asks servers to wait five minutes; going first, we are never cut off while we begin a mail.
const IDLE_MS = 60_000;
const PART_BYTES = 16_384;

type Options = {
  now?: () => number;
  /** For a server that a tenant named. */
  lookup?: Pick<PublicLookup, "dial">;
};

export function smtpProvider(settings: SmtpSettings, { now = Date.now, lookup }: Options = {}): Provider {
  checkMailSettings("smtp", settings);
  const options = connectionsOptions(settings);
  const { host = "", port = 0 } = options.connect;
  const dial = lookup && ((signal: AbortSignal) => lookup.dial(host, Number(port), signal));
  const connections = createConnections({ ...options, dial });
  const closing = new AbortController();
  const sign = settings.dkim && dkimSigner(settings.dkim);

  async function compose(mail: Mail): Promise<Mime> {
    const mime = await mimeOf(mail, now());
    return sign ? { ...mime, bytes: await sign(mime.bytes) } : mime;
  }

  const own: MailCarrier = {
    name: "smtp",
    capabilities: { abreast: settings.connections ?? CONNECTIONS },
    encode: async (mail) => ({ type: "message/rfc822", body: (await compose(mail)).bytes.toString() }),
    async carry(mail, options) {
      const mime = await compose(mail);
      const { timeoutMs } = options;
      const clock = startClock({ signal: AbortSignal.any([options.signal, closing.signal]), timeoutMs });
      return sendMime(mime, mail.messageId, connections, clock).finally(clock.stop);
    },
    async check(signal) {
      try {
        await connections.probe(signal);
        return { healthy: true, detail: "the server answers and knows us" };
      } catch (error) {
        const { reason } = replyTo(asSmtp(error)) ?? failure(error, { isDotSent: false }, signal);
        return { healthy: false, detail: reason };
      }
    },
    async close() {
      closing.abort();
      connections.close();
    },
  };
  return mailProvider(own, settings);
}

function connectionsOptions(settings: SmtpSettings): Parameters<typeof createConnections>[0] {
  const { host, tls = "required", port = tls === "implicit" ? 465 : 587, connectTimeoutMs = 10_000 } = settings;
  const { user, password, ca, clientName, connections = CONNECTIONS } = settings;
  return {
    connect: {
      host,
      port,
      secure: tls === "implicit",
      requireTLS: tls === "required",
      ignoreTLS: tls === "none",
      ...(clientName !== undefined && { name: clientName }),
      ...(ca !== undefined && { tls: { ca: [...rootCertificates, ca] } }),
      connectionTimeout: connectTimeoutMs,
      greetingTimeout: connectTimeoutMs,
      dnsTimeout: connectTimeoutMs,
    },
    ...(user !== undefined && { login: { user, pass: password ?? "" } }),
    mayLoginInTheClear: tls === "none",
    most: connections,
    mailsPerConnection: MAILS_PER_CONNECTION,
    idleMs: IDLE_MS,
  };
}

type Progress = { isDotSent: boolean };
type Sent = { rejectedErrors?: readonly (Error & { recipient?: string | undefined })[] | undefined };

async function sendMime(mime: Mime, receipt: string, connections: Connections, clock: Clock): Promise<Reply> {
  const { signal } = clock;
  while (true) {
    const progress: Progress = { isDotSent: false };
    let lent: Lent | undefined;
    try {
      lent = await connections.take(signal);
      clock.restart();
      await transmit(lent, mime, progress, signal);
      lent.giveBack();
      return { kind: "accepted", receipt };
    } catch (error) {
      const said = replyTo(asSmtp(error));
      if (said) {
        lent?.resetAndGiveBack();
        return said;
      }
      lent?.drop();
      // The server closed it while it lay idle, and the dot never left: another connection may carry the mail.
      if (lent?.isUsed && !progress.isDotSent && !signal.aborted) continue;
      return failure(error, progress, signal);
    }
  }
}

function transmit({ connection }: Lent, { envelope, bytes }: Mime, progress: Progress, signal: AbortSignal) {
  // nodemailer reads this only after the server's 354, and writes the dot when it has ended.
  const body = Readable.from(partsOf(bytes), { objectMode: false });
  body.once("end", () => {
    progress.isDotSent = true;
  });
  return new Promise<void>((resolve, reject) => {
    const stop = () => settle(signal.reason);
    // Later, as the error that ended it, with the server's last words, is told after the end.
    const lost = () => setImmediate(settle, new Error("the connection was lost"));
    function settle(error: Error | null, sent?: Sent): void {
      signal.removeEventListener("abort", stop);
      connection.off("end", lost);
      // Of a mail with copies the recipient alone decides; those that go to somebody have gone then.
      const refused = sent?.rejectedErrors?.find(({ recipient }) => recipient === envelope.to[0]);
      if (error ?? refused) reject(error ?? refused);
      else resolve();
    }
    signal.addEventListener("abort", stop, { once: true });
    connection.once("end", lost);
    connection.send({ ...envelope, size: bytes.length }, body, settle);
  });
}

const REFUSED_BY_US: { readonly [code: string]: Failed } = {
  EAUTH: { kind: "rejected", reason: "the server knows no way to log in that we know", category: "credentials" },
  EENVELOPE: { kind: "rejected", reason: "the address cannot be used in SMTP", category: "recipient" },
  EMESSAGE: { kind: "rejected", reason: "the mail is larger than the server allows", category: "content" },
};

/** Where the server did not say what it thinks of the mail. */
function failure(error: unknown, { isDotSent }: Progress, signal: AbortSignal): Failed {
  const { message, code = "" } = asSmtp(error);
  if (code === REFUSED)
    return { kind: "rejected", reason: `the mail server is refused: ${message}`, category: "credentials" };
  const refusal = isDotSent ? undefined : REFUSED_BY_US[code];
  if (refusal) return refusal;
  const reason = signal.aborted ? "no answer in time" : oneLine(message || code || "the connection was lost");
  const category = signal.aborted || code === "ETIMEDOUT" ? "timeout" : "network";
  return { kind: isDotSent ? "ambiguous" : "unavailable", reason, category };
}

const asSmtp = (error: unknown): SmtpError => (error instanceof Error ? error : { message: String(error) });

/** In parts, so that the stream ends when nearly all has been taken, not when it has merely been offered. */
function* partsOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PART_BYTES) yield bytes.subarray(at, at + PART_BYTES);
}
