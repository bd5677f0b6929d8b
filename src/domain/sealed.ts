// Secrets at rest: AES-256-GCM with keys from the environment.
//
// The first key seals, all of them open: to rotate, put a new key first, seal everything again, take the old one away.
// What is sealed is bound to its place (tenant and provider), so that it cannot be moved to another row.

import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

export type SecretKeys = readonly Buffer[];

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Keys in base64, 32 bytes each, the sealing one first; undefined when one is not. */
export function readSecretKeys(text: string): SecretKeys | undefined {
  const keys = text.split(",").map((key) => Buffer.from(key.trim(), "base64"));
  return keys.every((key) => key.length === 32) ? keys : undefined;
}

/** `1.<key>.<nonce, ciphertext and tag>`; the key's own name is a few bytes of its hash. */
export function seal(keys: SecretKeys, place: string, plain: string): string {
  const [key] = keys;
  if (!key) throw new Error("there is no secret key");
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(place));
  const sealed = Buffer.concat([nonce, cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return `1.${nameOf(key)}.${sealed.toString("base64")}`;
}

/** Undefined when none of the keys opens it, or when it was changed or moved. */
export function open(keys: SecretKeys, place: string, text: string): string | undefined {
  const [version, name, body = ""] = text.split(".");
  const key = keys.find((one) => nameOf(one) === name);
  const sealed = Buffer.from(body, "base64");
  if (version !== "1" || !key || sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(place))
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
  } catch {
    return undefined;
  }
}

/** Sealed with another key than the first. */
export const isOldSeal = (keys: SecretKeys, text: string): boolean =>
  keys[0] !== undefined && text.split(".")[1] !== nameOf(keys[0]);

const nameOf = (key: Buffer): string => createHash("sha256").update(key).digest("hex").slice(0, 8);
