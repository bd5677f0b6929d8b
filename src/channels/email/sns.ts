// Messages that Amazon SNS posts to a URL of ours: believed only when Amazon signed them and the topic is one of ours.
//
// The message names the certificate that is to vouch for it, so the name decides everything: https, a host of SNS, no
// port. Anybody with an account at Amazon can have a topic, so a good signature on a foreign topic means nothing.
// https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html

import { verify, X509Certificate } from "node:crypto";

export type SnsOptions = {
  topicArns: readonly string[];
  /** Reads a URL whose host was checked. Rejects when it cannot. */
  fetchText: (url: string) => Promise<string>;
  now: () => number;
};
export type SnsMessage = { id: string; type: string; at: Date; text: string };

export type Sns = {
  /**
   * The message, or undefined when it is not to be believed. Confirms subscriptions on the way. Throws when Amazon cannot
   * be asked: the door then answers with an error, and SNS comes again.
   */
  read(body: Buffer): Promise<SnsMessage | undefined>;
};

type Fields = { readonly [name: string]: string };

/** Which fields are signed, in this order. */
const SIGNED: { readonly [type: string]: readonly string[] } = {
  Notification: ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"],
  SubscriptionConfirmation: ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"],
  UnsubscribeConfirmation: ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"],
};
const DIGESTS: { readonly [version: string]: string } = { "1": "sha1", "2": "sha256" };
/** Amazon changes its certificate about once a year. */
const MAX_CERTIFICATES = 8;

export function createSns({ topicArns, fetchText, now }: SnsOptions): Sns {
  const certificates = new Map<string, Promise<X509Certificate>>();

  function certificateAt(url: string): Promise<X509Certificate> {
    const known = certificates.get(url);
    if (known) return known;
    const fetched = fetchText(url).then((pem) => new X509Certificate(pem));
    certificates.set(url, fetched);
    // What failed is asked for again the next time.
    fetched.catch(() => certificates.delete(url));
    const [oldest] = certificates.keys();
    if (certificates.size > MAX_CERTIFICATES && oldest !== undefined) certificates.delete(oldest);
    return fetched;
  }

  async function isGenuine(fields: Fields): Promise<boolean> {
    const { Type = "", SigningCertURL = "", SignatureVersion = "", Signature = "" } = fields;
    const names = Object.hasOwn(SIGNED, Type) ? SIGNED[Type] : undefined;
    const digest = Object.hasOwn(DIGESTS, SignatureVersion) ? DIGESTS[SignatureVersion] : undefined;
    if (!names || !digest || !isSnsUrl(SigningCertURL) || !new URL(SigningCertURL).pathname.endsWith(".pem"))
      return false;
    const certificate = await certificateAt(SigningCertURL);
    if (now() < Date.parse(certificate.validFrom) || now() > Date.parse(certificate.validTo)) return false;
    const text = names.flatMap((name) => (fields[name] === undefined ? [] : [`${name}\n${fields[name]}\n`])).join("");
    return verify(digest, Buffer.from(text), certificate.publicKey, Buffer.from(Signature, "base64"));
  }

  return {
    async read(body) {
      const fields = fieldsOf(body);
      const { Type = "", TopicArn = "", MessageId, Message = "", Timestamp = "", SubscribeURL = "" } = fields;
      // The topic first: it costs nothing, the certificate a request.
      if (MessageId === undefined || !topicArns.includes(TopicArn) || !(await isGenuine(fields))) return undefined;
      if (Type === "SubscriptionConfirmation" && isSnsUrl(SubscribeURL)) await fetchText(SubscribeURL);
      return { id: MessageId, type: Type, at: new Date(Timestamp), text: Message };
    },
  };
}

function isSnsUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, port, username, password } = new URL(text);
  const isAmazon = /^sns\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$/.test(hostname);
  return protocol === "https:" && isAmazon && port === "" && username === "" && password === "";
}

function fieldsOf(body: Buffer): Fields {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    const entries = value !== null && typeof value === "object" ? Object.entries(value) : [];
    return Object.fromEntries(entries.filter(([, field]) => typeof field === "string"));
  } catch {
    return {};
  }
}
