// Signs requests to Amazon's services: Signature Version 4.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html

import { createHash, createHmac } from "node:crypto";

export type AwsCredentials = { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
export type Signable = {
  method: string;
  url: string;
  headers?: { readonly [name: string]: string };
  body?: string | Buffer;
  /** Of the body, in hex, where it is known already. */
  sha256?: string;
};
export type SigningScope = { service: string; region: string; credentials: AwsCredentials; now: number };

/**
 * The headers of the request with those that the signature adds. All of them are signed. S3 wants two things of its own: the path as it is
 * sent, and the checksum of the body in a header.
 */
export function signV4(request: Signable, scope: SigningScope): { [name: string]: string } {
  const { service, region, credentials, now } = scope;
  const { method, url, headers = {}, body = "", sha256: bodyHash = sha256(body) } = request;
  const isS3 = service === "s3";
  const { host, pathname, searchParams } = new URL(url);
  const time = `${new Date(now).toISOString().slice(0, 19).replaceAll(/[-:]/g, "")}Z`;
  const day = time.slice(0, 8);

  const all: { [name: string]: string } = { host, "x-amz-date": time };
  for (const [name, value] of Object.entries(headers)) all[name.toLowerCase()] = value.trim().replaceAll(/ +/g, " ");
  if (isS3) all["x-amz-content-sha256"] = bodyHash;
  if (credentials.sessionToken !== undefined) all["x-amz-security-token"] = credentials.sessionToken;
  const names = Object.keys(all).sort();
  const signedHeaders = names.join(";");

  const canonical = [
    method,
    // Encoded once more than it is sent, but for S3.
    isS3 ? pathname : pathname.split("/").map(encodeSegment).join("/"),
    queryOf(searchParams),
    ...names.map((name) => `${name}:${all[name]}`),
    "",
    signedHeaders,
    bodyHash,
  ].join("\n");
  const range = `${day}/${region}/${service}/aws4_request`;
  const toSign = ["AWS4-HMAC-SHA256", time, range, sha256(canonical)].join("\n");

  const key = [day, region, service, "aws4_request"].reduce<string | Buffer>(
    (secret, part) => hmac(secret, part),
    `AWS4${credentials.secretAccessKey}`,
  );
  const signature = hmac(key, toSign).toString("hex");
  return {
    ...all,
    authorization: `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${range}, SignedHeaders=${signedHeaders}, Signature=${signature}`,
  };
}

const sha256 = (data: string | Buffer) => createHash("sha256").update(data).digest("hex");
const hmac = (key: string | Buffer, data: string) => createHmac("sha256", key).update(data).digest();

/** By code point of the encoded names, then of the values. */
function queryOf(parameters: URLSearchParams): string {
  const encoded = [...parameters].map(([name, value]) => [encodeSegment(name), encodeSegment(value)] as const);
  encoded.sort(([a, x], [b, y]) => compare(a, b) || compare(x, y));
  return encoded.map((pair) => pair.join("=")).join("&");
}

const compare = (a: string, b: string) => (a < b ? -1 : Number(a > b));

/** RFC 3986: all but letters, digits and `-._~`. */
export const encodeSegment = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
