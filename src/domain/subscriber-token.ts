// Subscribers' tokens: `ct_<claims>.<signature>`. Whoever has one may read and mark one user's inbox, until it expires.
//
// They are signed and not stored: a browser's request costs no query to believe. So they cannot be taken back one by one,
// which is why they are short-lived.

import { createHmac, timingSafeEqual } from "node:crypto";

export type Subscriber = { tenant: number; userId: string; expiresAtMs: number };

export const DEFAULT_TOKEN_SECONDS = 3_600;
export const MAX_TOKEN_SECONDS = 86_400;

const FORM = /^ct_([A-Za-z0-9_-]{1,2048})\.([A-Za-z0-9_-]{43})$/;

export const isToken = (text: string): boolean => text.startsWith("ct_");

/** The secret of the deployment signs nothing itself: each use has a key of its own. */
export const tokenKey = (secret: Buffer): Buffer => createHmac("sha256", secret).update("subscriber token 1").digest();

export function mintToken(key: Buffer, { tenant, userId, expiresAtMs }: Subscriber): string {
  const claims = JSON.stringify({ t: tenant, u: userId, e: Math.floor(expiresAtMs / 1000) });
  const body = Buffer.from(claims).toString("base64url");
  return `ct_${body}.${sign(key, body)}`;
}

/** Whose it is, expired or not; undefined when we did not sign it. */
export function readToken(key: Buffer, token: string): Subscriber | undefined {
  const [, body = "", signature = ""] = FORM.exec(token) ?? [];
  if (!timingSafeEqual(Buffer.from(sign(key, body)), Buffer.from(signature.padEnd(43)))) return undefined;
  const { t, u, e } = JSON.parse(Buffer.from(body, "base64url").toString("utf8"));
  return { tenant: t, userId: u, expiresAtMs: e * 1000 };
}

const sign = (key: Buffer, body: string): string => createHmac("sha256", key).update(body).digest("base64url");
