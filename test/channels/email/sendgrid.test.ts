// SendGrid: the suite of all providers, its own errors as it gives them, and its event webhook.

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { test } from "node:test";
import type { Message, Report, ReportRequest } from "#channels/channel.ts";
import { type SendgridSettings, sendgridProvider } from "#channels/email/sendgrid.ts";
import { createSendgridReports } from "#channels/email/sendgrid-reports.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { providerSuite } from "../../conformance/provider.ts";

const API_KEY = "SG.aaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const NOW = Date.UTC(2027, 0, 1, 9);
const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const webhookPublicKey = publicKey.export({ format: "der", type: "spki" }).toString("base64");
const settings: SendgridSettings = {
  apiKey: API_KEY,
  from: "bells@carillon.example",
  fromName: "Carillon",
  unsubscribeUrl: "https://app.example/u/{{notificationId}}",
  webhookPublicKey,
};
const attachment = { filename: "a.txt", contentType: "text/plain", content: "YQ==" };
const request: NotificationRequest = {
  channel: "email",
  recipient: { email: "ada@example.org" },
  content: { subject: "Hello", textBody: "Good morning", htmlBody: "<p>Good morning</p>", attachments: [attachment] },
};
const message: Message = { notificationId: "0198c3f0-1", tenant: 1, attempt: 1, request };
const errors = (text: string, field: string | null = null) => ({ errors: [{ message: text, field, help: null }] });

providerSuite("sendgrid", {
  open: (url) => sendgridProvider({ ...settings, apiUrl: url }, { now: () => NOW }),
  message: () => message,
  success: { status: 202, headers: { "x-message-id": "filterdrecv-abc_123-X" } },
  receipt: "filterdrecv-abc_123-X",
  inspect({ method, path, headers, body }) {
    assert.deepEqual([method, path, headers.authorization], ["POST", "/v3/mail/send", `Bearer ${API_KEY}`]);
    assert.deepEqual(JSON.parse(body), {
      personalizations: [{ to: [{ email: "ada@example.org" }] }],
      from: { email: "bells@carillon.example", name: "Carillon" },
      subject: "Hello",
      content: [
        { type: "text/plain", value: "Good morning" },
        { type: "text/html", value: "<p>Good morning</p>" },
      ],
      attachments: [{ filename: "a.txt", type: "text/plain", content: "YQ==", disposition: "attachment" }],
      headers: {
        "List-Unsubscribe": "<https://app.example/u/0198c3f0-1>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        "Message-ID": "<0198c3f0-1@carillon.example>",
      },
    });
  },
  errors: [
    [
      "a wrong key",
      { status: 401, body: errors("The provided authorization grant is invalid, expired, or revoked") },
      { kind: "rejected", code: "401", category: "credentials" },
    ],
    [
      "a plan that is used up",
      { status: 401, body: errors("Maximum credits exceeded") },
      { kind: "limited", code: "401", category: "throttled" },
    ],
    [
      "a sender that is not verified",
      {
        status: 403,
        body: errors(
          "The from address does not match a verified Sender Identity. Mail cannot be sent until this error is resolved.",
          "from",
        ),
      },
      { kind: "rejected", category: "credentials" },
    ],
    [
      "a key without the permission to send",
      { status: 403, body: errors("access forbidden") },
      { kind: "rejected", category: "credentials" },
    ],
    [
      "an address that is none",
      { status: 400, body: errors("Does not contain a valid address.", "personalizations.0.to.0.email") },
      { kind: "dead-recipient", code: "400", category: "recipient" },
    ],
    [
      "a sender that is no address",
      { status: 400, body: errors("Does not contain a valid address.", "from.email") },
      { kind: "rejected", category: "content" },
    ],
    [
      "an attachment that is not base64",
      { status: 400, body: errors("The attachment content must be base64 encoded.", "attachments.0.content") },
      { kind: "rejected", category: "content" },
    ],
    [
      "a mail that is too large",
      { status: 413, body: errors("Payload Too Large") },
      { kind: "rejected", category: "content" },
    ],
    [
      "too many requests, with a time",
      { status: 429, headers: { "x-ratelimit-reset": String(NOW / 1000 + 42) }, body: errors("too many requests") },
      { kind: "limited", code: "429", category: "throttled", retryAfterMs: 42_000 },
    ],
    [
      "too many requests, with a time gone by",
      { status: 429, headers: { "x-ratelimit-reset": String(NOW / 1000 - 1) }, body: errors("too many requests") },
      { kind: "limited" },
    ],
    [
      "an outage",
      { status: 503, body: "Service Unavailable" },
      { kind: "unavailable", code: "503", category: "outage" },
    ],
  ],
  refuses: [
    [
      "a line break in the subject",
      { ...request, content: { ...request.content, subject: "a\r\nBcc: eve@example.net" } },
      "/content/subject",
    ],
  ],
  check: {
    healthy: { status: 200, body: { scopes: ["mail.send", "user.email.read"] } },
    unhealthy: { status: 200, body: { scopes: ["user.email.read"] } },
  },
  secrets: [API_KEY],
});

const timestamp = String(NOW / 1000);
function signed(body: string, more: { timestamp?: string; signature?: string } = {}): ReportRequest {
  const at = more.timestamp ?? timestamp;
  const headers: { [name: string]: string } = {
    "x-twilio-email-event-webhook-timestamp": at,
    "x-twilio-email-event-webhook-signature":
      more.signature ?? sign("sha256", Buffer.from(at + body), privateKey).toString("base64"),
  };
  return { url: "https://x.example", header: (name) => headers[name.toLowerCase()], body: Buffer.from(body) };
}
const report = createSendgridReports({ publicKey: webhookPublicKey, now: () => NOW });

/** As in SendGrid's reference. */
const event = (name: string, more: object = {}) => ({
  email: "ada@example.org",
  timestamp: 1513299569,
  "smtp-id": "<14c5d75ce93.dfd.64b469@ismtpd-555>",
  event: name,
  sg_event_id: `id-${name}`,
  sg_message_id: "filterdrecv-abc_123-X.recvd-canary-7f9-1-63-2.0",
  ...more,
});
const known = { address: "ada@example.org", receipt: "filterdrecv-abc_123-X", at: new Date(1513299569_000) };
const suppress = (why: "bounce" | "complaint") => ({ address: "ada@example.org", why });

test("sendgrid: events become reports, and those that say nothing about delivery are left out", async () => {
  const events = [
    event("processed"),
    event("deferred", { response: "400 try again later", attempt: "5" }),
    event("delivered", { response: "250 OK" }),
    event("open"),
    event("click"),
    event("bounce", { type: "bounce", reason: "500 unknown\r\nrecipient", status: "5.0.0" }),
    event("bounce", { type: "blocked", reason: "550 IP blocked", status: "5.7.1", sg_event_id: "id-block" }),
    event("dropped", { reason: "Bounced Address", status: "5.0.0" }),
    event("spamreport"),
    event("constructor"),
  ];
  const expected: Report[] = [
    { ...known, reportId: "id-delivered", kind: "delivered" },
    {
      ...{ ...known, reportId: "id-bounce", kind: "failed", suppress: suppress("bounce") },
      ...{ reason: "500 unknown recipient", code: "5.0.0" },
    },
    { ...known, reportId: "id-block", kind: "failed", reason: "550 IP blocked", code: "5.7.1" },
    { ...known, reportId: "id-dropped", kind: "failed", reason: "Bounced Address", code: "5.0.0" },
    { ...known, reportId: "id-spamreport", kind: "delivered", suppress: suppress("complaint") },
  ];
  assert.deepEqual(await report(signed(JSON.stringify(events))), expected);
});

test("sendgrid: a report whose signature does not hold is not believed", async () => {
  const body = JSON.stringify([event("delivered")]);
  const genuine = signed(body);
  const signature = genuine.header("x-twilio-email-event-webhook-signature") ?? "";
  assert.equal((await report(genuine))?.length, 1);
  for (const forged of [
    signed(body, { signature: "" }),
    signed(body, { signature: "not base64!" }),
    signed(body, { signature: sign("sha256", Buffer.from(body), privateKey).toString("base64") }),
    signed(body.replace("delivered", "dropped"), { signature }),
    { ...genuine, header: () => undefined },
    signed(body, { timestamp: "tomorrow" }),
  ]) {
    assert.equal(await report(forged), undefined);
  }
  const other = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).publicKey.export({
    format: "pem",
    type: "spki",
  });
  assert.equal(await createSendgridReports({ publicKey: other.toString(), now: () => NOW })(genuine), undefined);
});

test("sendgrid: a report older than the tolerance is not believed", async () => {
  const strict = createSendgridReports({ publicKey: webhookPublicKey, now: () => NOW, toleranceMs: 300_000 });
  const aged = (seconds: number) => strict(signed("[]", { timestamp: String(NOW / 1000 - seconds) }));
  assert.deepEqual([await aged(300), await aged(301), await aged(-301)], [[], undefined, undefined]);
});

test("sendgrid: the signature of its own library's test holds", async () => {
  // From sendgrid-nodejs, packages/eventwebhook.
  const body = '{"category":"example_payload","event":"test_event","message_id":"message_id"}';
  const verify = createSendgridReports({
    publicKey:
      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEDr2LjtURuePQzplybdC+u4CwrqDqBaWjcMMsTbhdbcwHBcepxo7yAQGhHPTnlvFYPAZFceEu/1FwCM/QmGUhA==",
    now: () => 1588788367_000,
  });
  const signature = "MEUCIQCtIHJeH93Y+qpYeWrySphQgpNGNr/U+UyUlBkU6n7RAwIgJTz2C+8a8xonZGi6BpSzoQsbVRamr2nlxFDWYNH2j/0=";
  assert.deepEqual(await verify(signed(body, { timestamp: "1588788367", signature })), []);
  assert.equal(await verify(signed(`${body} `, { timestamp: "1588788367", signature })), undefined);
});

test("sendgrid: signed nonsense is no report", async () => {
  for (const body of ["", "null", "{}", "[null, 7, {}]", '[{"event":"delivered"}]', "[{"]) {
    assert.deepEqual(await report(signed(body)), []);
  }
});

test("sendgrid: without a verification key it tracks nothing", () => {
  const { webhookPublicKey: _, ...without } = settings;
  const provider = sendgridProvider(without);
  assert.equal(provider.report, undefined);
  assert.equal(provider.capabilities.tracking, false);
});
