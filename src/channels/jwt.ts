// Signs the JSON Web Tokens by which push services know us (RFC 7515, compact form).

import { createPrivateKey, type KeyObject, sign } from "node:crypto";

export type Algorithm = "RS256" | "ES256";

export function signJwt(alg: Algorithm, key: KeyObject, claims: object, header: object = {}): string {
  const head = `${part({ alg, typ: "JWT", ...header })}.${part(claims)}`;
  // JOSE wants the two numbers of an ECDSA signature side by side, not in DER. RSA takes no notice.
  const signature = sign("sha256", Buffer.from(head), { key, dsaEncoding: "ieee-p1363" });
  return `${head}.${signature.toString("base64url")}`;
}

/** A key in PEM. The error does not repeat the key, nor what OpenSSL says about it. */
export function readPrivateKey(pem: string, whose: string): KeyObject {
  try {
    // In environment variables, line breaks of a PEM file often arrive as backslash and n.
    return createPrivateKey(pem.replaceAll("\\n", "\n"));
  } catch {
    throw new Error(`${whose}: the private key is not a PEM key`);
  }
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
