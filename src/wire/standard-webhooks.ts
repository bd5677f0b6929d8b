// How we sign what we post, as Standard Webhooks describes: with `v1` (HMAC-SHA256) and `v1a` (ed25519), by every key there is.
// A receiver verifies with any library of the specification, and takes a message if one of the signatures is right: so
// secrets can be replaced while messages are under way.

import { createHmac, createSecretKey, type KeyObject, sign } from "node:crypto";
import { type EndpointSecrets, signingKeyOf } from "#domain/endpoint.ts";

/** In the order in which they sign. As objects: bytes would be made into one for each signature, which costs five times as much as to sign. */
export type SigningKeys = { hmac: readonly KeyObject[]; ed25519: readonly KeyObject[] };

/** Of secrets that we made ourselves. Costs more than a signature: made once and kept. */
export const signingKeysOf = (secrets: readonly EndpointSecrets[]): SigningKeys => ({
  hmac: secrets.map(({ secret }) => hmacKeyOf(secret) as KeyObject),
  ed25519: secrets.map(({ privateKey }) => signingKeyOf(privateKey)),
});

/** Undefined unless it is `whsec_` followed by 24 to 64 bytes in base64. */
export function hmacKeyOf(secret: string): KeyObject | undefined {
  const [, base64 = ""] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? [];
  const key = Buffer.from(base64, "base64");
  return key.length >= 24 && key.length <= 64 ? createSecretKey(key) : undefined;
}

/** The headers that name a message and sign it. `id` must have no full stop in it; `at` is this try's, in milliseconds since 1970. */
export function signWebhook(
  { id, at, body }: { id: string; at: number; body: string },
  { hmac, ed25519 }: SigningKeys,
): { [name: string]: string } {
  const seconds = Math.floor(at / 1000);
  const signed = Buffer.from(`${id}.${seconds}.${body}`);
  const signatures = [
    ...hmac.map((key) => `v1,${createHmac("sha256", key).update(signed).digest("base64")}`),
    ...ed25519.map((key) => `v1a,${sign(null, signed, key).toString("base64")}`),
  ];
  const headers = { "webhook-id": id, "webhook-timestamp": String(seconds) };
  return signatures.length === 0 ? headers : { ...headers, "webhook-signature": signatures.join(" ") };
}
