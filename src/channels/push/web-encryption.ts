// Encrypts a message so that only the browser can read it, not the push service in between: RFC 8291, in the form
// aes128gcm of RFC 8188 with a single record.

import { createCipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto";

/** From the browser's subscription, in base64url. */
export type SubscriptionKeys = { p256dh: string; auth: string };

const CURVE = "prime256v1";
const RECORD_BYTES = 4096;
const POINT_BYTES = 65;
/** Salt, record size, length of the key, the key. */
const HEADER_BYTES = 16 + 4 + 1 + POINT_BYTES;
/** A push service need not take more than a body of 4096 bytes; one goes to the delimiter and 16 to the tag. */
export const MAX_PLAIN_BYTES = RECORD_BYTES - HEADER_BYTES - 1 - 16;

/** Undefined when the browser's keys are none. The salt and our half of the key agreement are new for each message. */
export function encrypt(
  plain: Buffer,
  { p256dh, auth }: SubscriptionKeys,
  { salt = randomBytes(16), privateKey }: { salt?: Buffer; privateKey?: Buffer } = {},
): Buffer | undefined {
  const theirs = Buffer.from(p256dh, "base64url");
  const authSecret = Buffer.from(auth, "base64url");
  if (theirs.length !== POINT_BYTES || authSecret.length < 16) return undefined;

  const ecdh = createECDH(CURVE);
  if (privateKey) ecdh.setPrivateKey(privateKey);
  else ecdh.generateKeys();
  const ours = ecdh.getPublicKey();
  let shared: Buffer;
  try {
    shared = ecdh.computeSecret(theirs);
  } catch {
    // Not a point of the curve.
    return undefined;
  }
  const info = Buffer.concat([Buffer.from("WebPush: info\0"), theirs, ours]);
  const material = derive(shared, authSecret, info, 32);
  const key = derive(material, salt, Buffer.from("Content-Encoding: aes128gcm\0"), 16);
  const nonce = derive(material, salt, Buffer.from("Content-Encoding: nonce\0"), 12);

  const cipher = createCipheriv("aes-128-gcm", key, nonce);
  const size = Buffer.alloc(5);
  size.writeUInt32BE(RECORD_BYTES);
  size.writeUInt8(POINT_BYTES, 4);
  // 2 says that this is the last record.
  const sealed = Buffer.concat([
    cipher.update(plain),
    cipher.update(Buffer.of(2)),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  return Buffer.concat([salt, size, ours, sealed]);
}

const derive = (material: Buffer, salt: Buffer, info: Buffer, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", material, salt, info, bytes));
