// Signature Version 4 against the test suite that Amazon publishes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Signable, signV4 } from "#wire/sigv4.ts";

const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const scope = { service: "service", region: "us-east-1", credentials, now: Date.UTC(2015, 7, 30, 12, 36) };
const url = "https://example.amazonaws.com/";
const form = "application/x-www-form-urlencoded";
const unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const VECTORS: [name: string, request: Signable, signedHeaders: string, signature: string][] = [
  [
    "get-vanilla",
    { method: "GET", url },
    "host;x-amz-date",
    "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
  ],
  [
    "get-vanilla-query-order-key-case",
    { method: "GET", url: `${url}?Param2=value2&Param1=value1` },
    "host;x-amz-date",
    "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
  ],
  [
    "get-vanilla-utf8-query",
    { method: "GET", url: `${url}?ሴ=bar` },
    "host;x-amz-date",
    "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
  ],
  [
    "get-unreserved",
    { method: "GET", url: url + unreserved },
    "host;x-amz-date",
    "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
  ],
  [
    "get-header-value-trim",
    { method: "GET", url, headers: { "My-Header1": " value1", "My-Header2": ' "a   b   c"' } },
    "host;my-header1;my-header2;x-amz-date",
    "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
  ],
  [
    "post-vanilla",
    { method: "POST", url },
    "host;x-amz-date",
    "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
  ],
  [
    "post-vanilla-query",
    { method: "POST", url: `${url}?Param1=value1` },
    "host;x-amz-date",
    "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
  ],
  [
    "post-header-value-case",
    { method: "POST", url, headers: { "My-Header1": "VALUE1" } },
    "host;my-header1;x-amz-date",
    "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
  ],
  [
    "post-x-www-form-urlencoded",
    { method: "POST", url, headers: { "Content-Type": form }, body: "Param1=value1" },
    "content-type;host;x-amz-date",
    "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
  ],
  [
    "post-x-www-form-urlencoded-parameters",
    { method: "POST", url, headers: { "Content-Type": `${form}; charset=utf8` }, body: "Param1=value1" },
    "content-type;host;x-amz-date",
    "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe",
  ],
];
for (const [name, request, signedHeaders, signature] of VECTORS) {
  test(`sigv4: ${name}`, () => {
    const headers = signV4(request, scope);
    assert.equal(headers["x-amz-date"], "20150830T123600Z");
    assert.equal(
      headers.authorization,
      `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${signedHeaders}, Signature=${signature}`,
    );
  });
}

test("sigv4: post-sts-header-before", () => {
  // The token of the suite.
  const sessionToken =
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
  const headers = signV4({ method: "POST", url }, { ...scope, credentials: { ...credentials, sessionToken } });
  assert.equal(headers["x-amz-security-token"], sessionToken);
  assert.match(
    headers.authorization ?? "",
    /SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead$/,
  );
});

test("sigv4: the example of the IAM guide", () => {
  const request = {
    method: "GET",
    url: "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
    headers: { "Content-Type": `${form}; charset=utf-8` },
  };
  assert.match(
    signV4(request, { ...scope, service: "iam" }).authorization ?? "",
    /Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7$/,
  );
});
