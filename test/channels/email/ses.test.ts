// Amazon SES: the suite of all providers, its own errors as it gives them, and both forms of content.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "#channels/channel.ts";
import { type SesSettings, sesProvider } from "#channels/email/ses.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { signV4 } from "#wire/sigv4.ts";
import { providerSuite } from "../../conformance/provider.ts";
import { startStandIn } from "../../support/stand-in.ts";

const NOW = Date.UTC(2027, 0, 1, 9);
const SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const SESSION = "AQoDYXdzEPT-session-token";
const settings: SesSettings = {
  region: "eu-west-1",
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: SECRET,
  sessionToken: SESSION,
  from: "bells@carillon.example",
  fromName: "Carillon",
  unsubscribeUrl: "https://app.example/u/{{notificationId}}",
  configurationSet: "carillon",
  topicArns: ["arn:aws:sns:eu-west-1:123456789012:mail"],
};
const request: NotificationRequest = {
  channel: "email",
  recipient: { email: "ada@example.org" },
  content: { subject: "Grüße", textBody: "Good morning", htmlBody: "<p>Good morning</p>" },
};
const message: Message = { notificationId: "0198c3f0-1", tenant: 1, attempt: 1, request };
const MESSAGE_ID = "0102018fc1c2d3e4-5f6a7b8c-0000-4000-8000-123456789012-000000";

/** SES names the error in a header and explains it in the body. */
const error = (status: number, name: string, text: string) => ({
  status,
  headers: { "x-amzn-errortype": name, "content-type": "application/json" },
  body: { message: text },
});

providerSuite("ses", {
  open: (url) => sesProvider({ ...settings, apiUrl: url }, { now: () => NOW }),
  message: () => message,
  success: { status: 200, body: { MessageId: MESSAGE_ID } },
  receipt: MESSAGE_ID,
  inspect({ method, path, headers, body }) {
    assert.deepEqual([method, path], ["POST", "/v2/email/outbound-emails"]);
    const signed = signV4(
      {
        method,
        url: `http://${headers.host}${path}`,
        headers: { "content-type": headers["content-type"] ?? "" },
        body,
      },
      { service: "ses", region: "eu-west-1", credentials: settings, now: NOW },
    );
    for (const [name, value] of Object.entries(signed)) assert.equal(headers[name], value, name);
    assert.deepEqual(JSON.parse(body), {
      FromEmailAddress: '"Carillon" <bells@carillon.example>',
      Destination: { ToAddresses: ["ada@example.org"] },
      Content: {
        Simple: {
          Subject: { Data: "Grüße", Charset: "UTF-8" },
          Body: {
            Text: { Data: "Good morning", Charset: "UTF-8" },
            Html: { Data: "<p>Good morning</p>", Charset: "UTF-8" },
          },
          Headers: [
            { Name: "List-Unsubscribe", Value: "<https://app.example/u/0198c3f0-1>" },
            { Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click" },
          ],
        },
      },
      ConfigurationSetName: "carillon",
    });
  },
  errors: [
    [
      "a rate that is exceeded",
      error(429, "TooManyRequestsException", "Maximum sending rate exceeded."),
      { kind: "limited", code: "TooManyRequestsException", category: "throttled" },
    ],
    [
      "a throttled caller",
      error(400, "ThrottlingException", "Rate exceeded"),
      { kind: "limited", code: "ThrottlingException", category: "throttled" },
    ],
    [
      "a day's quota that is used up",
      error(400, "LimitExceededException", "Daily message quota exceeded."),
      { kind: "limited", category: "throttled" },
    ],
    [
      "an address that is not verified",
      error(
        400,
        "MessageRejected",
        "Email address is not verified. The following identities failed the check in region EU-WEST-1: bells@carillon.example",
      ),
      { kind: "rejected", code: "MessageRejected", category: "credentials" },
    ],
    [
      "content it does not take",
      error(400, "MessageRejected", "The message contains invalid content."),
      { kind: "rejected", code: "MessageRejected", category: "content" },
    ],
    [
      "a sender domain that is not verified",
      error(400, "MailFromDomainNotVerifiedException", "The sending domain isn't verified."),
      { kind: "rejected", category: "credentials" },
    ],
    [
      "a suspended account",
      error(400, "AccountSuspendedException", "The account's ability to send email has been permanently restricted."),
      { kind: "rejected", category: "credentials" },
    ],
    [
      "paused sending",
      error(400, "SendingPausedException", "The account's ability to send email is currently paused."),
      { kind: "unavailable", category: "credentials" },
    ],
    [
      "an unknown configuration set",
      error(404, "NotFoundException", "Configuration set <carillon> does not exist."),
      { kind: "rejected", category: "content" },
    ],
    [
      "a wrong key",
      error(403, "UnrecognizedClientException", "The security token included in the request is invalid."),
      { kind: "rejected", code: "UnrecognizedClientException", category: "credentials" },
    ],
    [
      // It shows what should have been signed, with the session token in it.
      "a wrong signature",
      error(
        403,
        "InvalidSignatureException",
        `The request signature we calculated does not match the signature you provided. The Canonical String for this request should have been\n'POST\n/v2/email/outbound-emails\n\nx-amz-security-token:${SESSION}\n'`,
      ),
      { kind: "rejected", category: "credentials" },
    ],
    [
      "an error named in the body, with its namespace",
      { status: 400, body: { __type: "com.amazonaws.sesv2#BadRequestException", message: "Missing final '@domain'" } },
      { kind: "rejected", code: "BadRequestException", category: "content" },
    ],
    [
      "an error named with an address behind it",
      error(429, "TooManyRequestsException:http://internal.amazon.com/coral/", "slow down"),
      { kind: "limited", code: "TooManyRequestsException" },
    ],
    [
      "an error that nobody has heard of",
      error(500, "InternalServiceErrorException", "oops"),
      { kind: "ambiguous", code: "InternalServiceErrorException", category: "outage" },
    ],
  ],
  refuses: [
    [
      "a line break in the subject",
      { ...request, content: { ...request.content, subject: "a\nBcc: eve@example.net" } },
      "/content/subject",
    ],
  ],
  check: {
    healthy: { status: 200, body: { SendingEnabled: true, ProductionAccessEnabled: true } },
    unhealthy: { status: 200, body: { SendingEnabled: false, ProductionAccessEnabled: true } },
  },
  secrets: [SECRET, SESSION],
});

async function sentBy(t: { after(done: () => unknown): void }, more: Partial<SesSettings>, from = message) {
  const standIn = await startStandIn();
  t.after(() => standIn.close());
  standIn.answer({ status: 200, body: { MessageId: MESSAGE_ID } });
  const provider = sesProvider({ ...settings, ...more, apiUrl: standIn.url }, { now: () => NOW });
  t.after(() => provider.close?.());
  const options = { idempotencyKey: "k", timeoutMs: 20_000, signal: AbortSignal.timeout(20_000) };
  assert.equal((await provider.send(from, options)).kind, "accepted");
  return JSON.parse(standIn.received[0]?.body ?? "");
}
const rawOf = (body: { Content: { Raw?: { Data: string } } }) =>
  Buffer.from(body.Content.Raw?.Data ?? "", "base64").toString("utf8");

test("ses: a mail with attachments goes as MIME", async (t) => {
  const attachments = [{ filename: "a.txt", contentType: "text/plain", content: "aGVsbG8=" }];
  const content = { ...request.content, attachments };
  const body = await sentBy(t, {}, { ...message, request: { ...request, content } });
  assert.deepEqual(Object.keys(body.Content), ["Raw"]);
  const mime = rawOf(body);
  assert.match(mime, /^To: ada@example\.org\r$/m);
  assert.match(mime, /^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m);
  assert.match(mime, /Content-Disposition: attachment; filename=a\.txt/);
  assert.ok(mime.includes("aGVsbG8="));
});

test("ses: a mail of one picture has no empty text", async (t) => {
  const content = { subject: "Look", htmlBody: '<img src="https://x.example/i.png">' };
  const body = await sentBy(t, {}, { ...message, request: { ...request, content } });
  assert.deepEqual(Object.keys(body.Content.Simple.Body), ["Html"]);
});

test("ses: headers that SES would refuse go as MIME", async (t) => {
  assert.match(rawOf(await sentBy(t, { headers: { "X-Team": "Zoë" } })), /^X-Team: =\?UTF-8\?/m);
  assert.match(rawOf(await sentBy(t, { headers: { "X-Long": "x".repeat(871) } })), /^X-Long:/m);
  assert.equal(rawOf(await sentBy(t, { headers: { "X-Long": "x".repeat(870) } })), "");
});

test("ses: copies stand in the destination, whichever way the mail goes, and hidden ones only there", async (t) => {
  const copied = { ...request.content, cc: ["bob@example.org"], bcc: ["audit@example.org"] };
  const destination = {
    ToAddresses: ["ada@example.org"],
    CcAddresses: ["bob@example.org"],
    BccAddresses: ["audit@example.org"],
  };
  const attachments = [{ filename: "a.txt", contentType: "text/plain", content: "aGVsbG8=" }];
  for (const content of [copied, { ...copied, attachments }]) {
    const body = await sentBy(t, {}, { ...message, request: { ...request, content } });
    assert.deepEqual(body.Destination, destination);
    assert.doesNotMatch(rawOf(body), /audit/);
  }
});

test("ses: names are written as mail headers carry them", async (t) => {
  const nameAs = async (fromName: string) => (await sentBy(t, { fromName })).FromEmailAddress;
  assert.equal(await nameAs('The "Bells", Inc'), '"The \\"Bells\\", Inc" <bells@carillon.example>');
  const encoded = await nameAs("Glöckner 🔔 und Söhne, ein sehr langer Name für eine kleine Firma");
  assert.match(encoded, /^(=\?UTF-8\?B\?[A-Za-z0-9+/=]+\?= )+<bells@carillon\.example>$/);
  const words = [...encoded.matchAll(/\?B\?([^?]+)\?=/g)].map(([, word]) => Buffer.from(word ?? "", "base64"));
  assert.equal(
    Buffer.concat(words).toString("utf8"),
    "Glöckner 🔔 und Söhne, ein sehr langer Name für eine kleine Firma",
  );
});

test("ses: without topics it tracks nothing", () => {
  const provider = sesProvider({ ...settings, topicArns: [] });
  assert.equal(provider.report, undefined);
  assert.equal(provider.capabilities.tracking, false);
});
