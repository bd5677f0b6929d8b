// Web Push: the suite for all providers, then the encryption and the VAPID header, with the vectors of RFC 8291 and the
// package web-push to compare with.

import assert from "node:assert/strict";
import { createDecipheriv, createECDH, createPublicKey, hkdfSync, randomBytes, verify } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import webpush from "web-push";
import type { Device, Message, Provider } from "#channels/channel.ts";
import { type WebPushSettings, webPushProvider } from "#channels/push/web.ts";
import { encrypt, MAX_PLAIN_BYTES } from "#channels/push/web-encryption.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { createHttp } from "#wire/http.ts";
import { createPublicHttp } from "#wire/public-only.ts";
import { providerSuite } from "../../conformance/provider.ts";
import type { Said } from "../../support/scripted.ts";

const vapid = webpush.generateVAPIDKeys();
const SETTINGS: WebPushSettings = { ...vapid, subject: "mailto:ringer@bells.example" };

/** A browser: it subscribes, and it alone can read. */
function createBrowser(privateKey?: Buffer, auth = randomBytes(16)) {
  const ecdh = createECDH("prime256v1");
  if (privateKey) ecdh.setPrivateKey(privateKey);
  else ecdh.generateKeys();
  const keys = { p256dh: ecdh.getPublicKey("base64url"), auth: auth.toString("base64url") };
  const derive = (material: Buffer, salt: Buffer, info: Buffer, bytes: number) =>
    Buffer.from(hkdfSync("sha256", material, salt, info, bytes));

  /** RFC 8188 and RFC 8291, read from the other side. */
  function decrypt(body: Buffer): Buffer {
    const salt = body.subarray(0, 16);
    const recordSize = body.readUInt32BE(16);
    const keyEnd = 21 + body.readUInt8(20);
    const theirs = body.subarray(21, keyEnd);
    const record = body.subarray(keyEnd);
    assert.ok(record.length <= recordSize, "one record");
    const info = Buffer.concat([Buffer.from("WebPush: info\0"), ecdh.getPublicKey(), theirs]);
    const material = derive(ecdh.computeSecret(theirs), auth, info, 32);
    const key = derive(material, salt, Buffer.from("Content-Encoding: aes128gcm\0"), 16);
    const nonce = derive(material, salt, Buffer.from("Content-Encoding: nonce\0"), 12);
    const decipher = createDecipheriv("aes-128-gcm", key, nonce);
    decipher.setAuthTag(record.subarray(-16));
    const padded = Buffer.concat([decipher.update(record.subarray(0, -16)), decipher.final()]);
    const end = padded.findLastIndex((byte) => byte !== 0);
    assert.equal(padded[end], 2, "the last record ends with a 2");
    return padded.subarray(0, end);
  }
  return { keys, decrypt };
}

const browser = createBrowser();
const PATH = "/wpush/v2/gAAAAABsecretpath";
const deviceAt = (url: string, keys = browser.keys): Device => ({
  token: "subscription-1",
  platform: "web",
  subscription: { endpoint: `${url}${PATH}`, keys },
});
const message = (url: string, more: Partial<NotificationRequest> = {}): Message => ({
  notificationId: "ntf_1",
  tenant: 1,
  attempt: 1,
  request: { channel: "push", recipient: { userId: "u1" }, content: { title: "Noon", body: "The bells 🔔" }, ...more },
  device: deviceAt(url),
});
const options = () => ({ idempotencyKey: "key-1", timeoutMs: 20_000, signal: AbortSignal.timeout(20_000) });

const mozilla = (code: number, errno: number, error: string, words: string): Said => ({
  status: code,
  body: {
    code,
    errno,
    error,
    message: words,
    more_info: "http://autopush.readthedocs.io/en/latest/http.html#error-codes",
  },
});

providerSuite("web-push", {
  open(): Provider {
    const http = createPublicHttp({ allow: ["127.0.0.1"] });
    return { ...webPushProvider(SETTINGS, { http }), close: () => http.close() };
  },
  message: (url) => message(url),
  isEncrypted: true,
  success: { status: 201, headers: { location: "https://push.example/m/1" } },
  receipt: "https://push.example/m/1",
  inspect({ method, path, headers }) {
    assert.equal(`${method} ${path}`, `POST ${PATH}`);
    assert.equal(headers["content-encoding"], "aes128gcm");
    assert.equal(headers.ttl, "2419200");
    assert.equal(headers.urgency, "normal");
    assert.match(headers.topic ?? "", /^[\w-]{32}$/);
  },
  errors: [
    [
      "a subscription that Mozilla does not know",
      mozilla(404, 102, "Not Found", "Invalid URL endpoint"),
      { kind: "dead-recipient", code: "404", category: "recipient" },
    ],
    [
      "a subscription that has ended, at Mozilla",
      mozilla(410, 106, "Gone", "Request did not validate No such subscription"),
      { kind: "dead-recipient", code: "410", category: "recipient" },
    ],
    [
      "a subscription that has ended, at Google",
      { status: 410, body: "push subscription has unsubscribed or expired.\n" },
      { kind: "dead-recipient", code: "410" },
    ],
    [
      "a subscription that has ended, at Apple",
      { status: 410, body: { reason: "Unregistered" } },
      { kind: "dead-recipient", code: "Unregistered" },
    ],
    [
      "a message that is too large",
      mozilla(413, 104, "Payload Too Large", "Request payload too large"),
      { kind: "rejected", code: "413", category: "content" },
    ],
    [
      "too many messages",
      { status: 429, headers: { "retry-after": "60" }, body: "" },
      { kind: "limited", code: "429", category: "throttled", retryAfterMs: 60_000 },
    ],
    [
      "too many messages, at Microsoft",
      { status: 406, headers: { "x-wns-status": "channelthrottled" } },
      { kind: "limited", code: "406", category: "throttled" },
    ],
    [
      "a subscription for another key, at Google",
      {
        status: 403,
        body: "the VAPID credentials in the authorization header do not correspond to the credentials used to create the subscriptions.\n",
      },
      { kind: "rejected", code: "403", category: "credentials" },
    ],
    [
      "a key that Apple does not take",
      { status: 403, body: { reason: "BadJwtToken" } },
      { kind: "rejected", code: "BadJwtToken", category: "credentials" },
    ],
    [
      "a key that Mozilla does not take",
      mozilla(401, 109, "Unauthorized", "Request did not validate Invalid Authorization"),
      { kind: "rejected", code: "401", category: "credentials" },
    ],
    [
      "a service that is away",
      {
        ...mozilla(503, 201, "Service Unavailable", "Use exponential back-off for retries"),
        headers: { "retry-after": "9" },
      },
      { kind: "unavailable", code: "503", category: "outage", retryAfterMs: 9_000 },
    ],
  ],
  refuses: [
    ["content that does not fit", message("", { content: { body: "x".repeat(MAX_PLAIN_BYTES) } }).request, "/content"],
  ],
  secrets: [vapid.privateKey, PATH, browser.keys.auth, "eyJ"],
});

test("web-push: encrypts the example of RFC 8291 to the last byte", () => {
  const bytes = (text: string) => Buffer.from(text, "base64url");
  const reader = createBrowser(bytes("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"), bytes("BTBZMqHH6r4Tts7J_aSIgg"));
  const plain = Buffer.from("When I grow up, I want to be a watermelon");
  const sealed = encrypt(plain, reader.keys, {
    salt: bytes("DGv6ra1nlYgDCS1FRnbzlw"),
    privateKey: bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"),
  });
  assert.equal(
    sealed?.toString("base64url"),
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
  );
  assert.deepEqual(reader.decrypt(sealed), plain);
});

test("web-push: a browser reads what we encrypt as it reads what the package web-push encrypts", () => {
  for (const plain of [Buffer.alloc(0), Buffer.from("é🔔"), randomBytes(MAX_PLAIN_BYTES)]) {
    const { keys, decrypt } = createBrowser();
    const theirs = webpush.encrypt(keys.p256dh, keys.auth, plain, "aes128gcm").cipherText;
    assert.deepEqual(decrypt(theirs), plain);
    const ours = encrypt(plain, keys);
    assert.ok(ours && ours.length <= 4096);
    assert.equal(ours.length, theirs.length);
    assert.deepEqual(decrypt(ours), plain);
  }
});

test("web-push: two messages share neither salt nor key", () => {
  const [one, two] = [1, 2].map(() => encrypt(Buffer.from("same"), browser.keys));
  assert.notDeepEqual(one?.subarray(0, 16), two?.subarray(0, 16));
  assert.notDeepEqual(one?.subarray(21, 86), two?.subarray(21, 86));
});

type Caught = { headers: IncomingHttpHeaders; body: Buffer };

/** A push service that keeps bodies as bytes. */
async function opened(t: TestContext, now: () => number = Date.now) {
  const caught: Caught[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    caught.push({ headers: request.headers, body: Buffer.concat(parts) });
    response.writeHead(201).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const http = createHttp();
  t.after(async () => {
    await http.close();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, caught, provider: webPushProvider(SETTINGS, { http, now }) };
}

test("web-push: the browser reads the content", async (t) => {
  const { url, caught, provider } = await opened(t);
  const content = {
    title: "Noon",
    body: "The bells 🔔",
    icon: "/bell.png",
    imageUrl: "https://bells.example/noon.png",
    badge: 3,
    clickAction: "https://bells.example/noon",
    data: { order: 7 },
  };
  assert.deepEqual(await provider.send(message(url, { content }), options()), { kind: "accepted", cost: 0 });
  assert.deepEqual(JSON.parse(browser.decrypt(caught[0]?.body ?? Buffer.alloc(0)).toString()), content);
});

test("web-push: priority is urgency, and what expires does not wait longer", async (t) => {
  const at = 1_800_000_000_000;
  const { url, caught, provider } = await opened(t, () => at);
  for (const priority of ["urgent", "high", "normal", "low"] as const) {
    await provider.send(message(url, { priority, expiresAt: new Date(at + 90_000).toISOString() }), options());
  }
  assert.deepEqual(
    caught.map(({ headers }) => [headers.urgency, headers.ttl]),
    [
      ["high", "90"],
      ["high", "90"],
      ["normal", "90"],
      ["low", "90"],
    ],
  );
});

test("web-push: attempts at one notification share a topic, other notifications have others", async (t) => {
  const { url, caught, provider } = await opened(t);
  await provider.send(message(url), options());
  await provider.send({ ...message(url), attempt: 2 }, options());
  await provider.send({ ...message(url), notificationId: "ntf_2" }, options());
  const [first, second, other] = caught.map(({ headers }) => headers.topic);
  assert.equal(first, second);
  assert.notEqual(first, other);
});

function readVapid(authorization: string | undefined) {
  const [, token = "", key = ""] = /^vapid t=([^,]+), ?k=(.+)$/.exec(authorization ?? "") ?? [];
  const [head = "", claims = "", signature = ""] = token.split(".");
  const point = Buffer.from(key, "base64url");
  const [x, y] = [point.toString("base64url", 1, 33), point.toString("base64url", 33, 65)];
  const isSigned = verify(
    "sha256",
    Buffer.from(`${head}.${claims}`),
    { key: createPublicKey({ format: "jwk", key: { kty: "EC", crv: "P-256", x, y } }), dsaEncoding: "ieee-p1363" },
    Buffer.from(signature, "base64url"),
  );
  const read = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
  return { key, isSigned, head: read(head), claims: read(claims) };
}

test("web-push: the VAPID header says the same as that of the package web-push", async (t) => {
  const { url, caught, provider } = await opened(t);
  await provider.send(message(url), options());
  const ours = readVapid(caught[0]?.headers.authorization);
  const { publicKey, privateKey } = vapid;
  const theirs = readVapid(
    webpush.getVapidHeaders(url, SETTINGS.subject, publicKey, privateKey, "aes128gcm", ours.claims.exp).Authorization,
  );
  assert.ok(theirs.isSigned && ours.isSigned);
  assert.deepEqual({ ...ours, head: { ...ours.head } }, theirs);
  const livesSeconds = ours.claims.exp - Date.now() / 1000;
  assert.ok(livesSeconds > 3600 && livesSeconds <= 24 * 3600);
});

test("web-push: a VAPID token is signed once per origin, and anew before it ends", async (t) => {
  let at = 1_800_000_000_000;
  const { url, caught, provider } = await opened(t, () => at);
  const other = await opened(t);
  await provider.send(message(url), options());
  at += 10 * 3_600_000;
  await provider.send(message(url), options());
  await provider.send(message(other.url), options());
  at += 2 * 3_600_000;
  await provider.send(message(url), options());
  const [first, second, later] = caught.map(({ headers }) => headers.authorization);
  assert.equal(first, second);
  assert.equal(readVapid(other.caught[0]?.headers.authorization).claims.aud, other.url);
  assert.equal(readVapid(later).claims.aud, url);
  assert.ok(readVapid(later).claims.exp > readVapid(first).claims.exp);
});

test("web-push: a subscription that cannot be one is dead, and nothing is sent", async (t) => {
  const { url, caught, provider } = await opened(t);
  const { p256dh, auth } = browser.keys;
  const offCurve = Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)]).toString("base64url");
  for (const device of [
    deviceAt(url, { p256dh: "AAAA", auth }),
    deviceAt(url, { p256dh: offCurve, auth }),
    deviceAt(url, { p256dh, auth: "AAAA" }),
    { ...deviceAt(url), subscription: { endpoint: "nowhere", keys: browser.keys } },
    { ...deviceAt(url), subscription: { endpoint: "file:///etc/passwd", keys: browser.keys } },
  ]) {
    assert.equal((await provider.send({ ...message(url), device }, options())).kind, "dead-recipient");
  }
  const bare: Device = { token: "t", platform: "web" };
  assert.equal((await provider.send({ ...message(url), device: bare }, options())).kind, "rejected");
  assert.equal(caught.length, 0);
});

test("web-push: with the client for public addresses only an endpoint in our own network gets nothing", async (t) => {
  const { url, caught } = await opened(t);
  const http = createPublicHttp({ allow: [] });
  t.after(() => http.close());
  const reply = await webPushProvider(SETTINGS, { http }).send(message(url), options());
  assert.notEqual(reply.kind, "accepted");
  assert.notEqual(reply.kind, "ambiguous");
  assert.equal(caught.length, 0);
});

test("web-push: keys that are not a pair are told at once, without the key", () => {
  const http = createHttp();
  const other = webpush.generateVAPIDKeys();
  for (const privateKey of [other.privateKey, "", "no key"]) {
    assert.throws(
      () => webPushProvider({ ...SETTINGS, privateKey }, { http }),
      /^Error: provider webpush: privateKey must be the other half of publicKey$/,
    );
  }
  assert.throws(() => webPushProvider({ ...SETTINGS, subject: "ringer" }, { http }), /subject/);
});
