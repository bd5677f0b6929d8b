// APNs: the suite for all providers over HTTP/2, then its provider tokens and how content becomes a message.

import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { type TestContext, test } from "node:test";
import type { Device, Message } from "#channels/channel.ts";
import { type ApnsSettings, apnsProvider } from "#channels/push/apns.ts";
import { APNS_VERDICTS } from "#channels/push/apns-reasons.ts";
import type { Category } from "#domain/attempt.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { type Expected, providerSuite } from "../../conformance/provider.ts";
import type { Said } from "../../support/scripted.ts";
import { startHttp2StandIn } from "../../support/stand-in-http2.ts";

const { privateKey, publicKey } = generateKeyPairSync("ec", {
  namedCurve: "prime256v1",
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const DEVICE: Device = { token: "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0", platform: "ios" };
const APNS_ID = "eabeae54-14a8-11e5-b60b-1697f925ec7b";
const settings = (apiUrl: string): ApnsSettings => ({
  teamId: "DEF123GHIJ",
  keyId: "ABC123DEFG",
  privateKey,
  topic: "com.example.bells",
  apiUrl,
});
const message = (more: Partial<NotificationRequest> = {}): Message => ({
  notificationId: "ntf_1",
  tenant: 1,
  attempt: 1,
  request: {
    channel: "push",
    recipient: { deviceTokens: [DEVICE.token] },
    content: { title: "Noon", body: "The bells" },
    ...more,
  },
  device: DEVICE,
});
const options = () => ({ idempotencyKey: "key-1", timeoutMs: 20_000, signal: AbortSignal.timeout(20_000) });

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TAKEN: Said = { status: 200, headers: { "apns-id": APNS_ID } };
const fault = (status: number, reason: string, more: object = {}): Said => ({
  status,
  headers: { "apns-id": APNS_ID },
  body: { reason, ...more },
});

/** The reasons of Apple's page "Handling notification responses from APNs", and the one it spells otherwise on the wire. */
const DOCUMENTED: [status: number, reason: string, kind: Expected["kind"], category: Category][] = [
  [400, "BadCollapseId", "rejected", "content"],
  [400, "BadDeviceToken", "dead-recipient", "recipient"],
  [400, "BadExpirationDate", "rejected", "content"],
  [400, "BadMessageId", "rejected", "content"],
  [400, "BadPriority", "rejected", "content"],
  [400, "BadTopic", "rejected", "credentials"],
  [400, "DeviceTokenNotForTopic", "dead-recipient", "recipient"],
  [400, "DuplicateHeaders", "rejected", "content"],
  [400, "IdleTimeout", "unavailable", "outage"],
  [400, "InvalidPushType", "rejected", "content"],
  [400, "MissingDeviceToken", "rejected", "content"],
  [400, "MissingTopic", "rejected", "credentials"],
  [400, "PayloadEmpty", "rejected", "content"],
  [400, "TopicDisallowed", "rejected", "credentials"],
  [403, "BadCertificate", "rejected", "credentials"],
  [403, "BadCertificateEnvironment", "rejected", "credentials"],
  [403, "ExpiredProviderToken", "rejected", "credentials"],
  [403, "Forbidden", "rejected", "credentials"],
  [403, "InvalidProviderToken", "rejected", "credentials"],
  [403, "MissingProviderToken", "rejected", "credentials"],
  [403, "UnrelatedKeyIdInToken", "rejected", "credentials"],
  [403, "BadEnvironmentKeyIdInToken", "rejected", "credentials"],
  [403, "BadEnvironmentKeyInToken", "rejected", "credentials"],
  [404, "BadPath", "rejected", "content"],
  [405, "MethodNotAllowed", "rejected", "content"],
  [410, "ExpiredToken", "dead-recipient", "recipient"],
  [410, "Unregistered", "dead-recipient", "recipient"],
  [413, "PayloadTooLarge", "rejected", "content"],
  [429, "TooManyProviderTokenUpdates", "limited", "throttled"],
  [429, "TooManyRequests", "limited", "throttled"],
  [500, "InternalServerError", "ambiguous", "outage"],
  [503, "ServiceUnavailable", "unavailable", "outage"],
  [503, "Shutdown", "unavailable", "outage"],
];

providerSuite("apns", {
  open: (url) => apnsProvider(settings(url)),
  serve: startHttp2StandIn,
  message: () => message(),
  success: TAKEN,
  receipt: APNS_ID,
  inspect({ method, path, headers, body }) {
    assert.equal(`${method} ${path}`, `POST /3/device/${DEVICE.token}`);
    assert.match(headers.authorization ?? "", /^bearer [\w-]+\.[\w-]+\.[\w-]+$/);
    assert.equal(headers["apns-topic"], "com.example.bells");
    assert.equal(headers["apns-push-type"], "alert");
    assert.equal(headers["apns-priority"], "10");
    assert.equal(headers["apns-expiration"], undefined);
    assert.match(headers["apns-id"] ?? "", UUID);
    assert.deepEqual(JSON.parse(body), { aps: { alert: { title: "Noon", body: "The bells" } } });
  },
  errors: [
    ...DOCUMENTED.map(([status, code, kind, category]): [string, Said, Expected] => [
      `${status} ${code}`,
      fault(status, code),
      { kind, code, category },
    ]),
    [
      "a pause with a time to wait",
      { ...fault(429, "TooManyRequests"), headers: { "retry-after": "5" } },
      { kind: "limited", code: "TooManyRequests", retryAfterMs: 5_000 },
    ],
    ["a reason that is not in the table", fault(400, "BadMood"), { kind: "rejected", code: "BadMood" }],
  ],
  refuses: [
    ["content of more than 4 KB", message({ content: { body: "é".repeat(2040) } }).request, "/content"],
    [
      "data that would take the place of Apple's",
      message({ content: { data: { aps: {} } } }).request,
      "/content/data/aps",
    ],
  ],
  check: { healthy: fault(400, "BadDeviceToken"), unhealthy: fault(403, "InvalidProviderToken") },
  secrets: [DEVICE.token, "eyJ", privateKey.slice(40, 80)],
});

test("apns: every reason known is in the table, and no other", () => {
  assert.deepEqual(Object.keys(APNS_VERDICTS).sort(), DOCUMENTED.map(([, reason]) => reason).sort());
});

async function opened(t: TestContext, now: () => number = Date.now) {
  const standIn = await startHttp2StandIn();
  t.after(() => standIn.close());
  const provider = apnsProvider(settings(standIn.url), { now });
  t.after(() => provider.close());
  standIn.answer(TAKEN);
  return { standIn, provider, tokens: () => standIn.received.map(({ headers }) => headers.authorization) };
}

test("apns: the provider token names team and key, and is signed with it", async (t) => {
  const at = 1_800_000_000_000;
  const { provider, tokens } = await opened(t, () => at);
  await provider.send(message(), options());
  const [head = "", claims = "", signature = ""] = tokens()[0]?.replace("bearer ", "").split(".") ?? [];
  const read = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
  assert.deepEqual(read(head), { alg: "ES256", typ: "JWT", kid: "ABC123DEFG" });
  assert.deepEqual(read(claims), { iss: "DEF123GHIJ", iat: at / 1000 });
  const key = { key: createPublicKey(publicKey), dsaEncoding: "ieee-p1363" } as const;
  assert.ok(verify("sha256", Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, "base64url")));
});

test("apns: a provider token is used for fifty minutes", async (t) => {
  let at = 1_800_000_000_000;
  const { provider, tokens } = await opened(t, () => at);
  for (const minutes of [0, 25, 24, 2]) {
    at += minutes * 60_000;
    await provider.send(message(), options());
  }
  const [first, second, third, fourth] = tokens();
  assert.deepEqual([second, third], [first, first]);
  assert.notEqual(fourth, first);
});

test("apns: when a token has expired, all sends share the next one", async (t) => {
  let at = 1_800_000_000_000;
  const { standIn, provider, tokens } = await opened(t, () => at);
  await provider.send(message(), options());
  const [old] = tokens();
  at += 30 * 60_000;
  standIn.answer(({ headers }) => (headers.authorization === old ? fault(403, "ExpiredProviderToken") : TAKEN));
  const replies = await Promise.all([1, 2, 3].map(() => provider.send(message(), options())));
  assert.ok(replies.every(({ kind }) => kind === "accepted"));
  assert.equal(new Set(tokens()).size, 2);
  assert.equal(tokens().length, 7);
});

test("apns: a young token that has expired is not replaced: Apple would count it", async (t) => {
  let at = 1_800_000_000_000;
  const { standIn, provider, tokens } = await opened(t, () => at);
  standIn.answer(fault(403, "ExpiredProviderToken"));
  at += 19 * 60_000;
  const reply = await provider.send(message(), options());
  assert.deepEqual(reply, {
    kind: "rejected",
    reason: "APNs answered 403 ExpiredProviderToken",
    category: "credentials",
    code: "ExpiredProviderToken",
  });
  assert.equal(tokens().length, 1);
});

test("apns: a token that is refused twice is not made a third time", async (t) => {
  let at = 1_800_000_000_000;
  const { standIn, provider, tokens } = await opened(t, () => at);
  standIn.answer(fault(403, "ExpiredProviderToken"));
  at += 30 * 60_000;
  assert.equal((await provider.send(message(), options())).kind, "rejected");
  assert.equal(tokens().length, 2);
});

test("apns: a device that is gone is told with the time since when", async (t) => {
  const { standIn, provider } = await opened(t);
  standIn.answer(fault(410, "Unregistered", { timestamp: 1_454_948_015_990 }));
  assert.deepEqual(await provider.send(message(), options()), {
    kind: "dead-recipient",
    reason: "APNs answered 410 Unregistered, since 2016-02-08T16:13:35.990Z",
    category: "recipient",
    code: "Unregistered",
  });
});

test("apns: the id is the same for every attempt, and another for another device", async (t) => {
  const { standIn, provider } = await opened(t);
  standIn.answer({ status: 200 });
  const first = await provider.send(message(), options());
  await provider.send({ ...message(), attempt: 2 }, options());
  await provider.send({ ...message(), device: { ...DEVICE, token: "0a" } }, options());
  await provider.send({ ...message(), notificationId: "ntf_2" }, options());
  const ids = standIn.received.map(({ headers }) => headers["apns-id"]);
  assert.equal(ids[0], ids[1]);
  assert.equal(new Set(ids).size, 3);
  assert.deepEqual(first, { kind: "accepted", receipt: ids[0], cost: 0 });
});

test("apns: content, priority and expiry arrive", async (t) => {
  const { standIn, provider } = await opened(t);
  const content = {
    title: "Noon",
    body: "The bells",
    badge: 0,
    sound: "ding",
    imageUrl: "https://bells.example/noon.png",
    clickAction: "https://bells.example/noon",
    data: { order: { id: 7 } },
  };
  await provider.send(message({ content, priority: "low", expiresAt: "2027-01-15T08:00:00.500Z" }), options());
  const [sent] = standIn.received;
  assert.deepEqual(JSON.parse(sent?.body ?? ""), {
    order: { id: 7 },
    imageUrl: content.imageUrl,
    clickAction: content.clickAction,
    aps: { alert: { title: "Noon", body: "The bells" }, badge: 0, sound: "ding", "mutable-content": 1 },
  });
  assert.equal(sent?.headers["apns-priority"], "5");
  assert.equal(sent?.headers["apns-expiration"], "1800000000");
});

test("apns: data alone goes in the background, which Apple takes at priority 5 only", async (t) => {
  const { standIn, provider } = await opened(t);
  await provider.send(message({ content: { data: { a: 1 } }, priority: "urgent" }), options());
  const [sent] = standIn.received;
  assert.deepEqual(JSON.parse(sent?.body ?? ""), { a: 1, aps: { "content-available": 1 } });
  assert.equal(sent?.headers["apns-push-type"], "background");
  assert.equal(sent?.headers["apns-priority"], "5");
});

test("apns: a key that is none is told without repeating it", () => {
  assert.throws(
    () => apnsProvider({ ...settings("http://127.0.0.1"), privateKey: "sesame" }),
    /^Error: provider apns: privateKey must be a P-256 key in PEM$/,
  );
});
