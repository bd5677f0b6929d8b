// How a push service knows us: VAPID (RFC 8292).

import { createECDH, createPrivateKey, type KeyObject } from "node:crypto";
import { BadSettings } from "#wire/bad-settings.ts";
import { signJwt } from "#wire/jwt.ts";

export type VapidSettings = {
  /** Both in base64url, as `web-push generate-vapid-keys` prints them. The public one is what browsers subscribe with. */
  publicKey: string;
  privateKey: string;
  /** Whom a push service may write to: `mailto:` or `https:`. */
  subject: string;
};

const LIFE_MS = 12 * 3_600_000;
const USE_MS = 11 * 3_600_000;
// There are few push services, but tenants may name any host.
const MAX_ORIGINS = 1000;

/** The header for an origin. It is signed twice a day, not for every message. */
export function createVapid({ publicKey, privateKey, subject }: VapidSettings, now: () => number) {
  if (!/^(mailto:|https:)/.test(subject)) {
    throw new BadSettings("webpush", [{ path: "/subject", message: "must begin with mailto: or https:" }]);
  }
  const key = readKey(publicKey, privateKey);
  const byOrigin = new Map<string, { header: string; madeAt: number }>();
  return (origin: string): string => {
    const held = byOrigin.get(origin);
    if (held && now() - held.madeAt < USE_MS) return held.header;
    const madeAt = now();
    const claims = { aud: origin, exp: Math.floor((madeAt + LIFE_MS) / 1000), sub: subject };
    const header = `vapid t=${signJwt("ES256", key, claims)}, k=${publicKey}`;
    byOrigin.delete(origin);
    const [oldest] = byOrigin.keys();
    if (byOrigin.size >= MAX_ORIGINS && oldest !== undefined) byOrigin.delete(oldest);
    byOrigin.set(origin, { header, madeAt });
    return header;
  };
}

/** With another public key than its own, every send would fail: better told at the start. */
function readKey(publicKey: string, privateKey: string): KeyObject {
  const point = Buffer.from(publicKey, "base64url");
  const ecdh = createECDH("prime256v1");
  let isPair = false;
  try {
    ecdh.setPrivateKey(Buffer.from(privateKey, "base64url"));
    isPair = ecdh.getPublicKey().equals(point);
  } catch {
    // Told below, without the key.
  }
  if (!isPair)
    throw new BadSettings("webpush", [{ path: "/privateKey", message: "must be the other half of publicKey" }]);
  const half = (from: number) => point.toString("base64url", from, from + 32);
  const d = Buffer.from(privateKey, "base64url").toString("base64url");
  return createPrivateKey({ format: "jwk", key: { kty: "EC", crv: "P-256", d, x: half(1), y: half(33) } });
}
