// Whether a callback is Carillon's: for whoever receives them, on nothing but Web Crypto, so that it runs in Node, Deno, Bun and at the edge.
// Any library of Standard Webhooks does the same.

export type VerifyOptions = {
  /** How far the receiver's clock and ours may be apart, in seconds; what is older may be a recording that somebody plays again. */
  toleranceS?: number;
  now?: () => number;
};
export type CallbackHeaders = Headers | { [name: string]: string | string[] | undefined };

/** What a receiver gets. `data` depends on the type: docs/callbacks.md. */
export type CallbackBody = { type: string; timestamp: string; data: { [name: string]: unknown } };

/** Why a callback is not to be believed. */
export class CallbackError extends Error {
  override name = "CallbackError";
}

const TOLERANCE_S = 300;

/**
 * Resolves with the callback when one of its signatures is right and its timestamp recent; rejects with a CallbackError otherwise. `key` is the
 * endpoint's secret (`whsec_…`) or its public key (`whpk_…`); `body` is what came, byte for byte, before anybody parsed it.
 */
export async function verifyCallback(
  key: string,
  headers: CallbackHeaders,
  body: string | Uint8Array,
  { toleranceS = TOLERANCE_S, now = Date.now }: VerifyOptions = {},
): Promise<CallbackBody> {
  const { version, bytes, algorithm } = schemeOf(key);
  const [id, timestamp, signatures] = ["id", "timestamp", "signature"].map((name) =>
    headerOf(headers, `webhook-${name}`),
  ) as [string, string, string];
  if (!/^\d{1,12}$/.test(timestamp)) throw new CallbackError("webhook-timestamp is no number of seconds");
  const apartS = Math.abs(now() / 1000 - Number(timestamp));
  if (apartS > toleranceS) throw new CallbackError(`webhook-timestamp is ${Math.round(apartS)} s from now`);

  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const signed = concatenated(encoded(`${id}.${timestamp}.`), typeof body === "string" ? encoded(body) : body);
  const verifying = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
  for (const one of signatures.split(" ")) {
    const [of, base64 = ""] = one.split(",");
    const signature = of === version ? decoded(base64) : undefined;
    // Web Crypto compares in constant time.
    if (signature && (await crypto.subtle.verify(algorithm.name, verifying, signature, signed)))
      return JSON.parse(text) as CallbackBody;
  }
  throw new CallbackError("no signature is right");
}

type Bytes = Uint8Array<ArrayBuffer>;
type Scheme = { version: "v1" | "v1a"; bytes: Bytes; algorithm: { name: string; hash?: string } };

function schemeOf(key: string): Scheme {
  const [, kind, base64 = ""] = /^(whsec|whpk)_(.+)$/s.exec(key) ?? [];
  const bytes = decoded(base64);
  if (!kind || !bytes || bytes.length < 24)
    throw new CallbackError("the key must be an endpoint's secret, whsec_…, or public key, whpk_…");
  return kind === "whpk"
    ? { version: "v1a", bytes, algorithm: { name: "Ed25519" } }
    : { version: "v1", bytes, algorithm: { name: "HMAC", hash: "SHA-256" } };
}

function headerOf(headers: CallbackHeaders, name: string): string {
  const found =
    typeof headers.get === "function"
      ? (headers as Headers).get(name)
      : Object.entries(headers).find(([one, value]) => value !== undefined && one.toLowerCase() === name)?.[1];
  if (typeof found !== "string" || found === "") throw new CallbackError(`there is no header ${name}`);
  return found;
}

const encoded = (text: string): Bytes => new TextEncoder().encode(text) as Bytes;

function decoded(base64: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function concatenated(one: Bytes, other: Uint8Array): Bytes {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
