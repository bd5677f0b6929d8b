// Webhooks as Standard Webhooks describes them.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { type TestContext, test } from "node:test";
import type { Message } from "#channels/channel.ts";
import { webhookProvider } from "#channels/webhook/webhook.ts";
import type { NotificationRequest } from "#domain/notification.ts";
import { providerSuite } from "../../conformance/provider.ts";
import type { Received } from "../../support/scripted.ts";
import { startStandIn } from "../../support/stand-in.ts";

const NOW = Date.parse("2027-01-01T09:00:00.999Z");
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const NEXT_SECRET = `whsec_${Buffer.alloc(24, 9).toString("base64")}`;
const PUBLIC = "https://hooks.example.com/carillon";

const messageTo = (webhookUrl: string): Message => ({
  notificationId: "ntf_1",
  tenant: 1,
  attempt: 1,
  request: {
    channel: "webhook",
    recipient: { webhookUrl },
    content: {
      title: "Ready",
      body: "Your order “7” is ready",
      data: { order: 7 },
      templateId: "t",
      variables: { n: 7 },
    },
    metadata: { source: "shop" },
  },
});
const open = (secret?: string | string[]) =>
  webhookProvider({ allow: ["127.0.0.1"], now: () => NOW, ...(secret && { secret }) });

function signatureOf({ headers, body }: Received, secret: string): string {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
}

providerSuite("webhook", {
  open: () => open(SECRET),
  message: (url) => messageTo(`${url}/hook?for=me`),
  success: { status: 204 },
  failed: "unavailable",
  secrets: [SECRET, SECRET.slice(6)],
  inspect(received) {
    assert.equal(received.method, "POST");
    assert.equal(received.path, "/hook?for=me");
    assert.equal(received.headers["content-type"], "application/json");
    assert.equal(received.headers["webhook-id"], "ntf_1");
    assert.equal(received.headers["webhook-timestamp"], String(Math.floor(NOW / 1000)));
    assert.equal(received.headers["webhook-signature"], signatureOf(received, SECRET));
    assert.deepEqual(JSON.parse(received.body), {
      type: "notification",
      timestamp: "2027-01-01T09:00:00.999Z",
      data: {
        id: "ntf_1",
        content: { title: "Ready", body: "Your order “7” is ready", data: { order: 7 } },
        metadata: { source: "shop" },
      },
    });
  },
  errors: [
    ["401", { status: 401 }, { kind: "rejected", code: "401", category: "credentials" }],
    ["403", { status: 403 }, { kind: "rejected", code: "403", category: "credentials" }],
    ["404", { status: 404 }, { kind: "rejected", code: "404", category: "recipient" }],
    ["408", { status: 408 }, { kind: "unavailable", code: "408", category: "timeout" }],
    ["409", { status: 409 }, { kind: "rejected", category: "recipient" }],
    ["410, the end of an endpoint,", { status: 410 }, { kind: "dead-recipient", code: "410", category: "recipient" }],
    ["413", { status: 413 }, { kind: "rejected", category: "content" }],
    [
      "a redirect",
      { status: 301, headers: { location: "/" } },
      { kind: "rejected", code: "301", category: "recipient" },
    ],
    [
      "429 with Retry-After in seconds",
      { status: 429, headers: { "retry-after": "120" } },
      { kind: "limited", code: "429", category: "throttled", retryAfterMs: 120_000 },
    ],
    [
      "429 with Retry-After as a date",
      { status: 429, headers: { "retry-after": "Fri, 01 Jan 2027 09:01:00 GMT" } },
      { kind: "limited", retryAfterMs: 59_001 },
    ],
    [
      "429 with a Retry-After nobody can read",
      { status: 429, headers: { "retry-after": "soon" } },
      { kind: "limited" },
    ],
    [
      "503 with Retry-After",
      { status: 503, headers: { "retry-after": "30" } },
      { kind: "unavailable", category: "outage", retryAfterMs: 30_000 },
    ],
    [
      "500 with Retry-After",
      { status: 500, headers: { "retry-after": "30" } },
      { kind: "unavailable", code: "500", category: "outage", retryAfterMs: 30_000 },
    ],
  ],
  refuses: [
    ["a message without a URL", { channel: "webhook", content: { body: "x" } }, "/recipient/webhookUrl"],
    ["the metadata address", messageTo("http://169.254.169.254/").request, "/recipient/webhookUrl"],
    ["a URL with a password", messageTo("https://a:b@example.com/").request, "/recipient/webhookUrl"],
  ],
});

test("webhook: a receiver that answers that it failed may have come far: for who said not to send twice it is in doubt", async (t) => {
  const standIn = await startStandIn();
  t.after(() => standIn.close());
  const provider = open();
  t.after(() => provider.close());
  const kinds = async (onAmbiguous: NotificationRequest["onAmbiguous"]) => {
    const { request, ...rest } = messageTo(standIn.url);
    const message = { ...rest, request: { ...request, ...(onAmbiguous && { onAmbiguous }) } };
    const signal = AbortSignal.timeout(10_000);
    return (await provider.send(message, { idempotencyKey: "n", timeoutMs: 5_000, signal })).kind;
  };
  standIn.answer({ status: 502 });
  assert.deepEqual(
    [await kinds(undefined), await kinds("resend"), await kinds("hold"), await kinds("reconcile")],
    ["unavailable", "unavailable", "ambiguous", "ambiguous"],
  );
  standIn.answer("reset");
  assert.equal(await kinds(undefined), "ambiguous", "no answer is no word of anybody's");
});

const sentBy = async (t: TestContext, secret: string | string[] | undefined, attempts = [1]): Promise<Received[]> => {
  const standIn = await startStandIn();
  const provider = open(secret);
  t.after(async () => {
    await provider.close();
    await standIn.close();
  });
  standIn.answer({ status: 500 });
  for (const attempt of attempts) {
    const options = { idempotencyKey: "k", timeoutMs: 10_000, signal: AbortSignal.timeout(10_000) };
    await provider.send({ ...messageTo(standIn.url), attempt }, options);
  }
  return standIn.received;
};

test("while a secret is replaced both sign, in their order", async (t) => {
  const [received] = await sentBy(t, [NEXT_SECRET, SECRET]);
  assert.ok(received);
  const expected = [NEXT_SECRET, SECRET].map((secret) => signatureOf(received, secret)).join(" ");
  assert.equal(received.headers["webhook-signature"], expected);
});

test("the id stays the same over retries", async (t) => {
  const received = await sentBy(t, SECRET, [1, 2, 3]);
  assert.deepEqual(
    received.map(({ headers }) => headers["webhook-id"]),
    ["ntf_1", "ntf_1", "ntf_1"],
  );
});

test("without a secret nothing is signed, and the id is still there", async (t) => {
  const [received] = await sentBy(t, undefined);
  assert.equal(received?.headers["webhook-signature"], undefined);
  assert.equal(received?.headers["webhook-id"], "ntf_1");
});

test("a secret that is not as it must be is an error that does not repeat it", () => {
  const tooShort = `whsec_${Buffer.alloc(23, 7).toString("base64")}`;
  const tooLong = `whsec_${Buffer.alloc(65, 7).toString("base64")}`;
  for (const secret of ["", "sesame", "whsec_", "whsec_$$$", tooShort, tooLong, SECRET.slice(6)])
    assert.throws(
      () => open([secret]),
      (error: Error) => /must be whsec_/.test(error.message) && !(secret.length > 6 && error.message.includes(secret)),
    );
});

test("nothing is sent to our own network", async (t) => {
  const standIn = await startStandIn();
  const provider = webhookProvider({ allow: [], now: () => NOW });
  t.after(async () => {
    await provider.close();
    await standIn.close();
  });
  const options = { idempotencyKey: "k", timeoutMs: 10_000, signal: AbortSignal.timeout(10_000) };
  for (const url of [standIn.url, standIn.url.replace("127.0.0.1", "localhost")]) {
    const reply = await provider.send(messageTo(url), options);
    assert.ok(reply.kind === "rejected" && reply.category === "recipient", JSON.stringify(reply));
  }
  assert.equal(standIn.connections().ever, 0);
  assert.deepEqual(provider.validate(messageTo(PUBLIC).request), []);
});
