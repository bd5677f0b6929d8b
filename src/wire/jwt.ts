// Signs the JSON Web Tokens by which push services know us (RFC 7515, compact form).

import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import { BadSettings } from "./bad-settings.ts";

export type Algorithm = "RS256" | "ES256";

export function signJwt(alg: Algorithm, key: KeyObject, claims: object, header: object = {}): string {
  const head = `${part({ alg, typ: "JWT", ...header })}.${part(claims)}`;
  // JOSE wants the two numbers of an ECDSA signature side by side, not in DER. RSA takes no notice.
  const signature = sign("sha256", Buffer.from(head), { key, dsaEncoding: "ieee-p1363" });
  return `${head}.${signature.toString("base64url")}`;
}

const KINDS = { rsa: "an RSA key in PEM", ec: "a P-256 key in PEM" };

/** `path` is where it stands in the provider's settings. The error repeats neither the key nor what OpenSSL says about it. */
export function readPrivateKey(pem: string, kind: keyof typeof KINDS, provider: string, path: string): KeyObject {
  const key = privateKeyIn(pem);
  const curve = key?.asymmetricKeyDetails?.namedCurve;
  if (key?.asymmetricKeyType === kind && (kind !== "ec" || curve === "prime256v1")) return key;
  throw new BadSettings(provider, [{ path, message: `must be ${KINDS[kind]}` }]);
}

function privateKeyIn(pem: string): KeyObject | undefined {
  try {
    // In environment variables, line breaks of a PEM file often arrive as backslash and n.
    return createPrivateKey(pem.replaceAll("\\n", "\n"));
  } catch {
    return undefined;
  }
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
