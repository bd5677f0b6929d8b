// FCM: the suite for all providers, then what is its own: access tokens, and how content becomes a message.

import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { after, type TestContext, test } from "node:test";
import type { Device, Message, Provider } from "#channels/channel.ts";
import { type FcmSettings, fcmProvider } from "#channels/push/fcm.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { providerSuite } from "../../conformance/provider.ts";
import type { Received, Said } from "../../support/scripted.ts";
import { startStandIn } from "../../support/stand-in.ts";

const { privateKey, publicKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const DEVICE: Device = { token: "cJug2GoHzEfcshCE_OLL24:APA91bHa8-Viell9", platform: "android" };
const settings = (url: string): FcmSettings => ({
  serviceAccount: {
    project_id: "bells-1",
    client_email: "carillon@bells-1.iam.gserviceaccount.com",
    private_key: privateKey,
    private_key_id: "kid-1",
  },
  apiUrl: url,
  tokenUrl: `${url}/token`,
});
const message = (more: Partial<NotificationRequest> = {}, device: Device = DEVICE): Message => ({
  notificationId: "ntf_1",
  tenant: 1,
  attempt: 1,
  request: {
    channel: "push",
    recipient: { deviceTokens: [device.token] },
    content: { title: "Noon", body: "The bells" },
    ...more,
  },
  device,
});
const options = (signal = AbortSignal.timeout(20_000)) => ({ idempotencyKey: "key-1", timeoutMs: 20_000, signal });

const isForToken = ({ path }: Received) => path === "/token";
const GRANTED: Said = {
  status: 200,
  body: { access_token: "ya29.secret-1", expires_in: 3599, token_type: "Bearer" },
};
const NAME = "projects/bells-1/messages/0:1500415314455276%31bd1c9631bd1c96";

/** Google's errors, in the shape they have on the wire. */
function fault(code: number, status: string, words: string, ...details: object[]): Said {
  return { status: code, body: { error: { code, message: words, status, details } } };
}
const fcmError = (errorCode: string) => ({
  "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
  errorCode,
});
const INVALID_TOKEN = "The registration token is not a valid FCM registration token";
const NO_FIELD = `Invalid JSON payload received. Unknown name "key" at 'message': Cannot find field.`;
const violation = (field: string, description: string) => ({
  "@type": "type.googleapis.com/google.rpc.BadRequest",
  fieldViolations: [{ field, description }],
});
const quota = fault(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", fcmError("QUOTA_EXCEEDED"));

// A server of its own, as with Google: the suite counts the connections to the other.
const tokenServer = await startStandIn();
tokenServer.answer(GRANTED);
after(() => tokenServer.close());

providerSuite("fcm", {
  open: (url) => fcmProvider({ ...settings(url), tokenUrl: `${tokenServer.url}/token` }),
  message: () => message(),
  success: { status: 200, body: { name: NAME } },
  receipt: NAME,
  inspect({ method, path, headers, body }) {
    assert.equal(`${method} ${path}`, "POST /v1/projects/bells-1/messages:send");
    assert.equal(headers.authorization, "Bearer ya29.secret-1");
    assert.deepEqual(JSON.parse(body), {
      message: {
        token: DEVICE.token,
        notification: { title: "Noon", body: "The bells" },
        android: { priority: "NORMAL", notification: {} },
      },
    });
  },
  errors: [
    [
      "a token that was given up",
      fault(404, "NOT_FOUND", "Requested entity was not found.", fcmError("UNREGISTERED")),
      { kind: "dead-recipient", code: "UNREGISTERED", category: "recipient" },
    ],
    [
      "a token that never was one",
      fault(400, "INVALID_ARGUMENT", INVALID_TOKEN, fcmError("INVALID_ARGUMENT")),
      { kind: "dead-recipient", code: "INVALID_ARGUMENT", category: "recipient" },
    ],
    [
      "a token named as the faulty field",
      fault(
        400,
        "INVALID_ARGUMENT",
        "Request contains an invalid argument.",
        fcmError("INVALID_ARGUMENT"),
        violation("message.token", "Invalid registration token"),
      ),
      { kind: "dead-recipient", code: "INVALID_ARGUMENT" },
    ],
    [
      "a message that FCM cannot read",
      fault(400, "INVALID_ARGUMENT", NO_FIELD, violation("message", NO_FIELD)),
      { kind: "rejected", code: "INVALID_ARGUMENT", category: "content" },
    ],
    [
      "a message that is too big",
      fault(400, "INVALID_ARGUMENT", "Android message is too big", fcmError("INVALID_ARGUMENT")),
      { kind: "rejected", code: "INVALID_ARGUMENT", category: "content" },
    ],
    [
      "a token of another sender",
      fault(403, "PERMISSION_DENIED", "SenderId mismatch", fcmError("SENDER_ID_MISMATCH")),
      { kind: "dead-recipient", code: "SENDER_ID_MISMATCH" },
    ],
    [
      "a quota with a time to wait",
      { ...quota, headers: { "retry-after": "30" } },
      { kind: "limited", code: "QUOTA_EXCEEDED", category: "throttled", retryAfterMs: 30_000 },
    ],
    ["a quota without one", quota, { kind: "limited", code: "QUOTA_EXCEEDED", retryAfterMs: 60_000 }],
    [
      "FCM being overloaded",
      {
        ...fault(503, "UNAVAILABLE", "The service is currently unavailable.", fcmError("UNAVAILABLE")),
        headers: { "retry-after": "7" },
      },
      { kind: "unavailable", code: "UNAVAILABLE", category: "outage", retryAfterMs: 7_000 },
    ],
    [
      "an internal error",
      fault(500, "INTERNAL", "Internal error encountered.", fcmError("INTERNAL")),
      { kind: "ambiguous", code: "INTERNAL", category: "outage" },
    ],
    [
      "a wrong APNs key in the project",
      fault(401, "UNAUTHENTICATED", "Auth error from APNS or Web Push Service", fcmError("THIRD_PARTY_AUTH_ERROR")),
      { kind: "rejected", code: "THIRD_PARTY_AUTH_ERROR", category: "credentials" },
    ],
    [
      "a service account without the right",
      fault(403, "PERMISSION_DENIED", "Permission 'cloudmessaging.messages.create' denied on resource."),
      { kind: "rejected", code: "PERMISSION_DENIED", category: "credentials" },
    ],
  ],
  refuses: [
    ["content of more than 4 KB", message({ content: { body: "é".repeat(2049) } }).request, "/content"],
    [
      "names that FCM uses itself",
      message({ content: { data: { "google.x": "1" } } }).request,
      "/content/data/google.x",
    ],
  ],
  secrets: ["ya29.secret-1", DEVICE.token, privateKey.slice(100, 150)],
});

/** A stand-in that grants tokens ya29.1, ya29.2, … and a provider that sends to it. */
async function opened(t: TestContext, now: () => number = Date.now) {
  const standIn = await startStandIn();
  t.after(() => standIn.close());
  const provider: Provider = fcmProvider(settings(standIn.url), { now });
  t.after(() => provider.close?.());
  let granted = 0;
  const grant = (): Said => ({ status: 200, body: { access_token: `ya29.${++granted}`, expires_in: 3600 } });
  standIn.answer((received) => (isForToken(received) ? grant() : { status: 200, body: { name: NAME } }));
  const sends = () => standIn.received.filter((one) => !isForToken(one));
  const lastMessage = () => JSON.parse(sends().at(-1)?.body ?? "").message;
  return { standIn, provider, grant, sends, lastMessage, asked: () => standIn.received.filter(isForToken) };
}

test("fcm: asks for a token with an assertion that the service account has signed", async (t) => {
  const at = 1_800_000_000_000;
  const { standIn, provider, asked } = await opened(t, () => at);
  await provider.send(message(), options());
  const form = new URLSearchParams(asked()[0]?.body);
  assert.equal(form.get("grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer");
  const [head = "", claims = "", signature = ""] = form.get("assertion")?.split(".") ?? [];
  const read = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
  assert.deepEqual(read(head), { alg: "RS256", typ: "JWT", kid: "kid-1" });
  assert.deepEqual(read(claims), {
    iss: "carillon@bells-1.iam.gserviceaccount.com",
    scope: "https://www.googleapis.com/auth/firebase.messaging",
    aud: `${standIn.url}/token`,
    iat: at / 1000,
    exp: at / 1000 + 3600,
  });
  const isSigned = verify(
    "sha256",
    Buffer.from(`${head}.${claims}`),
    createPublicKey(publicKey),
    Buffer.from(signature, "base64url"),
  );
  assert.ok(isSigned);
});

test("fcm: sends at the same time share one request for a token", async (t) => {
  const { provider, asked, sends } = await opened(t);
  const replies = await Promise.all(Array.from({ length: 20 }, () => provider.send(message(), options())));
  assert.ok(replies.every(({ kind }) => kind === "accepted"));
  assert.equal(asked().length, 1);
  assert.equal(sends().length, 20);
});

test("fcm: a token is used until shortly before it ends", async (t) => {
  let at = 1_800_000_000_000;
  const { provider, asked, sends } = await opened(t, () => at);
  await provider.send(message(), options());
  at += 54 * 60_000;
  await provider.send(message(), options());
  assert.equal(asked().length, 1);
  at += 2 * 60_000;
  await provider.send(message(), options());
  assert.deepEqual(
    sends().map(({ headers }) => headers.authorization),
    ["Bearer ya29.1", "Bearer ya29.1", "Bearer ya29.2"],
  );
});

test("fcm: a token that is refused is replaced once, and the message sent once more", async (t) => {
  const { standIn, provider, grant, asked, sends } = await opened(t);
  const unauthenticated = fault(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.");
  standIn.answer((received) => {
    if (isForToken(received)) return grant();
    return received.headers.authorization === "Bearer ya29.1" ? unauthenticated : { status: 200, body: { name: NAME } };
  });
  const replies = await Promise.all([1, 2, 3].map(() => provider.send(message(), options())));
  assert.ok(replies.every(({ kind }) => kind === "accepted"));
  assert.equal(asked().length, 2, "all three share the second token");
  assert.equal(sends().length, 6);
});

test("fcm: when the second token is refused too, the credentials are to blame", async (t) => {
  const { standIn, provider, grant, asked, sends } = await opened(t);
  const unauthenticated = fault(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.");
  standIn.answer((received) => (isForToken(received) ? grant() : unauthenticated));
  const reply = await provider.send(message(), options());
  assert.deepEqual(reply, {
    kind: "rejected",
    reason: "Request had invalid authentication credentials.",
    category: "credentials",
    code: "UNAUTHENTICATED",
  });
  assert.deepEqual([asked().length, sends().length], [2, 2]);
});

test("fcm: without a token nothing was sent, whatever happened at the token endpoint", async (t) => {
  const { standIn, provider, sends } = await opened(t);
  for (const [answer, kind, category] of [
    [{ status: 500 }, "unavailable", "outage"],
    [{ status: 503 }, "unavailable", "outage"],
    ["reset", "unavailable", "network"],
    [
      { status: 400, body: { error: "invalid_grant", error_description: "Invalid JWT Signature." } },
      "rejected",
      "credentials",
    ],
    [{ status: 401, body: { error: "invalid_client" } }, "rejected", "credentials"],
  ] as const) {
    standIn.answer(answer);
    const reply = await provider.send(message(), options());
    assert.equal(reply.kind, kind, JSON.stringify(reply));
    assert.equal("category" in reply && reply.category, category);
  }
  assert.equal(sends().length, 0);
});

test("fcm: whoever is out of time leaves, and the others still get the token", async (t) => {
  const { standIn, provider } = await opened(t);
  standIn.answer((received) =>
    isForToken(received) ? { ...GRANTED, delayMs: 150 } : { status: 200, body: { name: NAME } },
  );
  const stop = new AbortController();
  const first = provider.send(message(), options(stop.signal));
  const second = provider.send(message(), options());
  await standIn.arrived(1);
  stop.abort();
  assert.deepEqual(await first, { kind: "unavailable", reason: "no access token in time", category: "timeout" });
  assert.equal((await second).kind, "accepted");
});

test("fcm: a check asks for a token and sends nothing", async (t) => {
  const { standIn, provider, sends } = await opened(t);
  assert.equal((await provider.check?.(AbortSignal.timeout(20_000)))?.healthy, true);
  assert.equal(sends().length, 0);
  const other: Provider = fcmProvider(settings(standIn.url));
  t.after(() => other.close?.());
  standIn.answer({ status: 400, body: { error: "invalid_grant", error_description: "Invalid JWT Signature." } });
  assert.deepEqual(await other.check?.(AbortSignal.timeout(20_000)), {
    healthy: false,
    detail: "no access token: Invalid JWT Signature.",
  });
});

const rich: NotificationRequest["content"] = {
  title: "Noon",
  body: "The bells",
  imageUrl: "https://bells.example/noon.png",
  clickAction: "https://bells.example/noon",
  icon: "bell",
  sound: "ding",
  badge: 3,
  data: { order: 7, list: [1, 2], note: "plain", nothing: null },
};

test("fcm: Android gets its part, and data as strings", async (t) => {
  const at = 1_800_000_000_000;
  const { provider, lastMessage } = await opened(t, () => at);
  const expiresAt = new Date(at + 90_000).toISOString();
  await provider.send(message({ content: rich, priority: "urgent", expiresAt }), options());
  assert.deepEqual(lastMessage(), {
    token: DEVICE.token,
    notification: { title: "Noon", body: "The bells", image: rich.imageUrl },
    data: { order: "7", list: "[1,2]", note: "plain", nothing: "null" },
    android: {
      priority: "HIGH",
      ttl: "90s",
      notification: { icon: "bell", sound: "ding", click_action: rich.clickAction, notification_count: 3 },
    },
  });
});

test("fcm: the priorities urgent and high are Android's high", async (t) => {
  const { provider, lastMessage } = await opened(t);
  const seen = [];
  for (const priority of ["urgent", "high", "normal", "low"] as const) {
    await provider.send(message({ priority }), options());
    seen.push(lastMessage().android.priority);
  }
  assert.deepEqual(seen, ["HIGH", "HIGH", "NORMAL", "NORMAL"]);
});

test("fcm: Apple's devices and browsers get theirs", async (t) => {
  const { provider, lastMessage } = await opened(t);
  await provider.send(message({ content: rich }, { ...DEVICE, platform: "ios" }), options());
  assert.deepEqual(lastMessage().apns, {
    headers: { "apns-priority": "10" },
    payload: { aps: { sound: "ding", badge: 3, category: rich.clickAction, "mutable-content": 1 } },
    fcm_options: { image: rich.imageUrl },
  });
  assert.equal(lastMessage().android, undefined);
  await provider.send(message({ content: rich, priority: "high" }, { ...DEVICE, platform: "web" }), options());
  assert.deepEqual(lastMessage().webpush, {
    headers: { Urgency: "high" },
    notification: { icon: "bell" },
    fcm_options: { link: rich.clickAction },
  });
});

test("fcm: data alone wakes the app without showing anything", async (t) => {
  const { provider, lastMessage } = await opened(t);
  await provider.send(message({ content: { data: { a: "1" } } }, { ...DEVICE, platform: "ios" }), options());
  assert.equal(lastMessage().notification, undefined);
  assert.deepEqual(lastMessage().apns.payload, { aps: { "content-available": 1 } });
  assert.equal(lastMessage().apns.headers["apns-priority"], "5");
});

test("fcm: a key that is none is told without repeating it", () => {
  const bad = {
    ...settings("http://127.0.0.1"),
    serviceAccount: { ...settings("").serviceAccount, private_key: "sesame" },
  };
  assert.throws(() => fcmProvider(bad), /^Error: provider fcm: serviceAccount.private_key must be an RSA key in PEM$/);
});

test("fcm: a message without a device is rejected and nothing is asked", async (t) => {
  const { standIn, provider } = await opened(t);
  const { device, ...without } = message();
  assert.equal((await provider.send(without, options())).kind, "rejected");
  assert.equal(standIn.received.length, 0);
});
