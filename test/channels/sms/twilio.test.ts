// Twilio: the suite for all providers, then segments, and status reports with Twilio's own library as the judge of
// signatures.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import twilio from "twilio";
import type { Message, ReportRequest } from "#channels/channel.ts";
import { segmentsOf } from "#channels/sms/segments.ts";
import { type TwilioSettings, twilioProvider } from "#channels/sms/twilio.ts";
import { providerSuite } from "../../conformance/provider.ts";
import type { Said } from "../../support/scripted.ts";
import { startStandIn } from "../../support/stand-in.ts";

const ACCOUNT = "AC0123456789abcdef0123456789abcdef";
const TOKEN = "8c5f0f1e2d3c4b5a69788796a5b4c3d2";
const SID = "SM1f0e8ae6ade43cb3c0ce4525424e404f";
const PHONE = "+15558675310";
const settings = (apiUrl: string): TwilioSettings => ({
  accountSid: ACCOUNT,
  authToken: TOKEN,
  from: "+15557122661",
  statusCallback: "https://carillon.example/v1/reports/twilio",
  apiUrl,
});
const message = (body = "Noon & the bells"): Message => ({
  notificationId: "ntf_1",
  tenant: 1,
  attempt: 1,
  request: { channel: "sms", recipient: { phone: PHONE }, content: { body } },
});
const options = () => ({ idempotencyKey: "key-1", timeoutMs: 20_000, signal: AbortSignal.timeout(20_000) });

const CREATED: Said = {
  status: 201,
  body: {
    account_sid: ACCOUNT,
    body: "Noon & the bells",
    date_created: "Thu, 24 Aug 2023 05:01:45 +0000",
    direction: "outbound-api",
    error_code: null,
    error_message: null,
    from: "+15557122661",
    num_segments: "1",
    price: null,
    sid: SID,
    status: "queued",
    to: PHONE,
  },
};
/** Twilio's errors, in the shape they have on the wire. */
const fault = (status: number, code: number, words: string, headers: { [name: string]: string } = {}): Said => ({
  status,
  headers,
  body: { code, message: words, more_info: `https://www.twilio.com/docs/errors/${code}`, status },
});

providerSuite("twilio", {
  open: (url) => twilioProvider(settings(url)),
  message: () => message(),
  success: CREATED,
  receipt: SID,
  inspect({ method, path, headers, body }) {
    assert.equal(`${method} ${path}`, `POST /2010-04-01/Accounts/${ACCOUNT}/Messages.json`);
    assert.equal(headers.authorization, `Basic ${Buffer.from(`${ACCOUNT}:${TOKEN}`).toString("base64")}`);
    assert.equal(headers["content-type"], "application/x-www-form-urlencoded");
    assert.deepEqual(Object.fromEntries(new URLSearchParams(body)), {
      To: PHONE,
      From: "+15557122661",
      Body: "Noon & the bells",
      StatusCallback: "https://carillon.example/v1/reports/twilio",
    });
  },
  errors: [
    [
      "a number that is none",
      fault(400, 21211, `The 'To' number ${PHONE} is not a valid phone number.`),
      { kind: "dead-recipient", code: "21211", category: "recipient" },
    ],
    [
      "a landline",
      fault(400, 21614, `'To' number is not a valid mobile number: ${PHONE.slice(1)}`),
      { kind: "dead-recipient", code: "21614", category: "recipient" },
    ],
    [
      "somebody who has opted out",
      fault(400, 21610, "Attempt to send to unsubscribed recipient"),
      { kind: "dead-recipient", code: "21610" },
    ],
    [
      "a region that the account may not send to",
      fault(
        400,
        21408,
        `Permission to send an SMS has not been enabled for the region indicated by the 'To' number: ${PHONE}`,
      ),
      { kind: "rejected", code: "21408", category: "credentials" },
    ],
    [
      "a number that this sender does not reach",
      fault(
        400,
        21612,
        `Message cannot be sent with the current combination of 'To' (${PHONE}) and/or 'From' (+15557122661) parameters`,
      ),
      { kind: "rejected", code: "21612", category: "recipient" },
    ],
    [
      "a sender that is not ours",
      fault(
        400,
        21606,
        "The 'From' phone number +15557122661 is not a valid, SMS-capable inbound phone number or short code for your account.",
      ),
      { kind: "rejected", code: "21606", category: "credentials" },
    ],
    [
      "a text that is too long",
      fault(400, 21617, "The concatenated message body exceeds the 1600 character limit"),
      { kind: "rejected", code: "21617", category: "content" },
    ],
    ["a wrong token", fault(401, 20003, "Authenticate"), { kind: "rejected", code: "20003", category: "credentials" }],
    [
      "too many requests",
      fault(429, 20429, "Too Many Requests", { "retry-after": "2" }),
      { kind: "limited", code: "20429", category: "throttled", retryAfterMs: 2_000 },
    ],
    ["a full queue", fault(429, 30001, "Queue overflow"), { kind: "limited", code: "30001", category: "throttled" }],
    [
      "the end of what the account may send in a day",
      fault(429, 63038, `Account ${ACCOUNT} exceeded the 500 daily messages limit`),
      { kind: "limited", code: "63038", category: "throttled", retryAfterMs: 3_600_000 },
    ],
    [
      "an internal error",
      fault(500, 20500, "An internal server error has occurred"),
      { kind: "ambiguous", code: "20500", category: "outage" },
    ],
    [
      "a service that is away",
      fault(503, 20503, "Service unavailable"),
      { kind: "unavailable", code: "20503", category: "outage" },
    ],
    [
      "a code that is not in the table",
      fault(400, 21999, "Something new"),
      { kind: "rejected", code: "21999", category: "content" },
    ],
  ],
  refuses: [["a text of more than 1600 characters", message("a".repeat(1601)).request, "/content/body"]],
  check: {
    healthy: { status: 200, body: { sid: ACCOUNT, status: "active", type: "Full" } },
    unhealthy: fault(401, 20003, "Authenticate"),
  },
  secrets: [TOKEN, Buffer.from(`${ACCOUNT}:${TOKEN}`).toString("base64"), PHONE, PHONE.slice(1)],
});

test("twilio: a suspended account is not healthy", async (t) => {
  const standIn = await startStandIn();
  t.after(() => standIn.close());
  const provider = twilioProvider(settings(standIn.url));
  t.after(() => provider.close());
  standIn.answer({ status: 200, body: { sid: ACCOUNT, status: "suspended" } });
  const health = await provider.check(AbortSignal.timeout(20_000));
  assert.deepEqual(health, { healthy: false, detail: "the account is suspended" });
});

test("twilio: a messaging service takes the place of a number, and each segment has its price", async (t) => {
  const standIn = await startStandIn();
  t.after(() => standIn.close());
  const provider = twilioProvider({
    accountSid: ACCOUNT,
    authToken: TOKEN,
    messagingServiceSid: "MG1",
    apiUrl: standIn.url,
    costPerSegment: 0.5,
  });
  t.after(() => provider.close());
  standIn.answer(CREATED);
  const reply = await provider.send(message("a".repeat(161)), options());
  assert.deepEqual(reply, { kind: "accepted", receipt: SID, cost: 1 });
  const form = new URLSearchParams(standIn.received[0]?.body);
  assert.deepEqual(
    [form.get("MessagingServiceSid"), form.get("From"), form.get("StatusCallback")],
    ["MG1", null, null],
  );
});

for (const [title, text, encoding, segments] of [
  ["an empty text", "", "GSM-7", 1],
  ["160 letters", "a".repeat(160), "GSM-7", 1],
  ["161 letters", "a".repeat(161), "GSM-7", 2],
  ["306 letters", "a".repeat(306), "GSM-7", 2],
  ["307 letters", "a".repeat(307), "GSM-7", 3],
  ["letters with accents that GSM knows", "é".repeat(160), "GSM-7", 1],
  ["80 signs of the extension", "€".repeat(80), "GSM-7", 1],
  ["81 signs of the extension", "€".repeat(81), "GSM-7", 2],
  ["a sign of the extension that would be cut in two", `${"a".repeat(152)}€${"a".repeat(152)}`, "GSM-7", 3],
  ["the same a place earlier", `${"a".repeat(151)}€${"a".repeat(153)}`, "GSM-7", 2],
  ["70 letters that GSM does not know", "ê".repeat(70), "UCS-2", 1],
  ["71 of them", "ê".repeat(71), "UCS-2", 2],
  ["135 of them", "ê".repeat(135), "UCS-2", 3],
  ["one among letters that it knows", `${"a".repeat(70)}ê`, "UCS-2", 2],
  ["35 emoji", "🔔".repeat(35), "UCS-2", 1],
  ["an emoji that would be cut in two", `${"ê".repeat(66)}🔔${"ê".repeat(66)}`, "UCS-2", 3],
  ["the backtick, which is in neither table", "`".repeat(70), "UCS-2", 1],
] as const) {
  test(`twilio: ${title}: ${segments} in ${encoding}`, () => {
    assert.deepEqual(segmentsOf(text), { encoding, segments });
  });
}

// Reports

const REPORT_URL = "https://carillon.example/v1/reports/twilio?tenant=1";
const NOW = 1_800_000_000_000;
const CALLBACK = {
  ApiVersion: "2010-04-01",
  AccountSid: ACCOUNT,
  MessageSid: SID,
  MessageStatus: "delivered",
  SmsSid: SID,
  SmsStatus: "delivered",
  From: "+15557122661",
  To: PHONE,
};
const signed = (fields: { [name: string]: string }, url = REPORT_URL): ReportRequest => ({
  url,
  header: headersOf({ "x-twilio-signature": twilio.getExpectedTwilioSignature(TOKEN, url, fields) }),
  body: Buffer.from(new URLSearchParams(fields).toString()),
});
const headersOf =
  (headers: { [name: string]: string }) =>
  (name: string): string | undefined =>
    headers[name.toLowerCase()];
function reader(t: TestContext) {
  const provider = twilioProvider(settings("http://127.0.0.1:9"), { now: () => NOW });
  t.after(() => provider.close());
  return provider;
}

test("twilio: a delivered message is reported", async (t) => {
  assert.deepEqual(await reader(t).report(signed(CALLBACK)), [
    { receipt: SID, reportId: `${SID}:delivered`, kind: "delivered", at: new Date(NOW) },
  ]);
});

test("twilio: the way to the end is not", async (t) => {
  for (const MessageStatus of ["queued", "accepted", "sending", "sent", "read"]) {
    assert.deepEqual(await reader(t).report(signed({ ...CALLBACK, MessageStatus })), []);
  }
});

test("twilio: a message that failed is reported, and only numbers that are gone for good are suppressed", async (t) => {
  const suppressed = [];
  for (const ErrorCode of ["30003", "30004", "30005", "30006", "30007", "30008", "21610", "39999"]) {
    const MessageStatus = ErrorCode === "21610" ? "failed" : "undelivered";
    const reports = await reader(t).report(signed({ ...CALLBACK, MessageStatus, ErrorCode }));
    const [report] = reports ?? [];
    assert.equal(report?.kind, "failed");
    assert.equal(report.code, ErrorCode);
    assert.equal(report.reportId, `${SID}:${MessageStatus}`);
    assert.ok(report.reason);
    if (report.suppress) suppressed.push([ErrorCode, report.suppress.why, report.suppress.address]);
  }
  assert.deepEqual(suppressed, [
    ["30005", "bounce", PHONE],
    ["30006", "bounce", PHONE],
    ["21610", "complaint", PHONE],
  ]);
});

test("twilio: a report is believed only as it was signed", async (t) => {
  const provider = reader(t);
  const good = signed(CALLBACK);
  const forged: [string, ReportRequest][] = [
    ["another body", { ...good, body: Buffer.from(good.body.toString().replace("delivered", "failed")) }],
    ["another URL", { ...good, url: `${REPORT_URL}0` }],
    ["no signature", { ...good, header: () => undefined }],
    ["an empty signature", { ...good, header: headersOf({ "x-twilio-signature": "" }) }],
    ["another signature", { ...good, header: headersOf({ "x-twilio-signature": "AAAAAAAAAAAAAAAAAAAAAAAAAAA=" }) }],
    ["a URL that is none", { ...good, url: "carillon" }],
    [
      "JSON that no hash covers",
      {
        url: REPORT_URL,
        header: headersOf({
          "content-type": "application/json",
          "x-twilio-signature": twilio.getExpectedTwilioSignature(TOKEN, REPORT_URL, {}),
        }),
        body: Buffer.from(JSON.stringify(CALLBACK)),
      },
    ],
  ];
  for (const [title, request] of forged) assert.equal(await provider.report(request), undefined, title);
});

test("twilio: a body of JSON is believed by its hash in the URL", async (t) => {
  const body = Buffer.from(JSON.stringify({ ...CALLBACK, MessageStatus: "undelivered", ErrorCode: 30005 }));
  const url = `${REPORT_URL}&bodySHA256=${createHash("sha256").update(body).digest("hex")}`;
  const signature = twilio.getExpectedTwilioSignature(TOKEN, url, {});
  const request: ReportRequest = {
    url,
    header: headersOf({ "content-type": "application/json", "x-twilio-signature": signature }),
    body,
  };
  assert.ok(twilio.validateRequestWithBody(TOKEN, signature, url, body.toString()), "Twilio's library agrees");
  assert.equal((await reader(t).report(request))?.[0]?.code, "30005");
  assert.equal(await reader(t).report({ ...request, body: Buffer.from("{}") }), undefined);
  // Anybody can name the hash of a body of his own; only Twilio can sign the URL that names it.
  const forged = headersOf({
    "content-type": "application/json",
    "x-twilio-signature": "AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
  });
  assert.equal(await reader(t).report({ ...request, header: forged }), undefined);
});

test("twilio: a port in the URL does not matter, as with Twilio's library", async (t) => {
  const bare = "https://carillon.example/reports";
  const withPort = "https://carillon.example:443/reports";
  for (const [signedFor, called] of [
    [bare, withPort],
    [withPort, bare],
  ] as const) {
    const request = { ...signed(CALLBACK, signedFor), url: called };
    assert.ok(twilio.validateRequest(TOKEN, request.header("x-twilio-signature") ?? "", called, CALLBACK));
    assert.equal((await reader(t).report(request))?.length, 1);
  }
});

test("twilio: its library and this one believe the same forms", async (t) => {
  const provider = reader(t);
  const word = fc.string({ unit: "grapheme", maxLength: 12 }).map((text) => text.toWellFormed());
  const form = fc.dictionary(word, word, { maxKeys: 8, noNullPrototype: true });
  await fc.assert(
    fc.asyncProperty(form, word, fc.boolean(), async (extra, query, isTampered) => {
      const fields: { [name: string]: string } = { ...extra, ...CALLBACK };
      const url = `https://carillon.example/r?q=${encodeURIComponent(query)}`;
      const request = signed(fields, url);
      if (isTampered) fields.To = "+15550000000";
      const body = Buffer.from(new URLSearchParams(fields).toString());
      const theirs = twilio.validateRequest(TOKEN, request.header("x-twilio-signature") ?? "", url, fields);
      const ours = (await provider.report({ ...request, body })) !== undefined;
      assert.equal(ours, theirs);
      assert.equal(ours, !isTampered);
    }),
    { numRuns: 200, seed: 7 },
  );
});
