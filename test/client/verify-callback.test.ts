// The verifier that receivers have: what it believes, and what it does not.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Webhook } from "standardwebhooks";
import { CallbackError, verifyCallback } from "#client/client.ts";
import { newSecrets, publicKeyOf } from "#domain/endpoint.ts";
import { signingKeysOf, signWebhook } from "#wire/standard-webhooks.ts";

const body = JSON.stringify({
  type: "notification.sent",
  timestamp: "2027-01-01T09:00:00.000Z",
  data: { title: "“7” ✓" },
});
const at = Date.parse("2027-01-01T09:00:00.000Z");
const now = () => at;
const [ours, before, others] = [newSecrets(), newSecrets(), newSecrets()];
const headers = signWebhook({ id: "msg_1", at, body }, signingKeysOf([ours, before]));
const refuses = (why: RegExp, ...given: Parameters<typeof verifyCallback>) =>
  assert.rejects(verifyCallback(...given), (error) => error instanceof CallbackError && why.test(error.message));

test("with the secret or the public key, the new or the one before, a callback is believed", async () => {
  for (const key of [ours.secret, before.secret, publicKeyOf(ours), publicKeyOf(before)]) {
    for (const [form, sent] of [
      [headers, body],
      [new Headers(headers), Buffer.from(body)],
      [{ ...headers, "Webhook-Id": "msg_1", "webhook-id": undefined }, new TextEncoder().encode(body)],
    ] as const)
      assert.deepEqual(await verifyCallback(key, form as Headers, sent, { now }), JSON.parse(body));
  }
  assert.deepEqual(
    await verifyCallback("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", EXAMPLE, '{"test": 2432232314}', {
      now: () => 1_614_265_330_000,
    }),
    { test: 2432232314 },
  );
});

/** The specification's own. */
const EXAMPLE = {
  "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "webhook-timestamp": "1614265330",
  "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};

test("what others signed, or somebody changed, is not", async () => {
  for (const key of [others.secret, publicKeyOf(others)]) await refuses(/no signature/, key, headers, body, { now });
  for (const key of [ours.secret, publicKeyOf(ours)]) {
    await refuses(/no signature/, key, headers, `${body} `, { now });
    await refuses(/no signature/, key, { ...headers, "webhook-id": "msg_2" }, body, { now });
    const later = { ...headers, "webhook-timestamp": String(at / 1000 + 1) };
    await refuses(/no signature/, key, later, body, { now });
    for (const signature of ["", "v1", "v1,", "v1,%%%", "v2,AAAA", "v1a,AAAA v1,AAAA"])
      await refuses(/signature/, key, { ...headers, "webhook-signature": signature }, body, { now });
  }
  // A secret in the wrong scheme, or a key that is none.
  const [v1 = "", v1a = ""] = (headers["webhook-signature"] ?? "").split(" ").filter((_, n) => n % 2 === 0);
  await refuses(/no signature/, ours.secret, { ...headers, "webhook-signature": v1a }, body, { now });
  await refuses(/no signature/, publicKeyOf(ours), { ...headers, "webhook-signature": v1 }, body, { now });
  for (const key of ["", "sesame", "whsec_", "whpk_$$$", ours.privateKey, ours.secret.slice(6)])
    await refuses(/the key must be/, key, headers, body, { now });
});

test("what is too old, or from the future, is not; how much that is, the receiver says", async () => {
  for (const ms of [-301_000, 301_000]) await refuses(/from now/, ours.secret, headers, body, { now: () => at + ms });
  for (const ms of [-299_000, 299_000]) await verifyCallback(ours.secret, headers, body, { now: () => at + ms });
  await refuses(/from now/, ours.secret, headers, body, { now: () => at + 11_000, toleranceS: 10 });
  await verifyCallback(ours.secret, headers, body, { now: () => at + 86_000_000, toleranceS: 86_400 });
  for (const timestamp of ["", "now", "1.5", "-1", `${at / 1000} `])
    await refuses(/webhook-timestamp/, ours.secret, { ...headers, "webhook-timestamp": timestamp }, body, { now });
  for (const missing of ["webhook-id", "webhook-timestamp", "webhook-signature"])
    await refuses(new RegExp(missing), ours.secret, { ...headers, [missing]: undefined }, body, { now });
});

test("it believes what the library of standardwebhooks signed", async () => {
  const signature = new Webhook(ours.secret).sign("msg_9", new Date(at), body);
  const theirs = { ...headers, "webhook-id": "msg_9", "webhook-signature": signature };
  assert.deepEqual(await verifyCallback(ours.secret, theirs, body, { now }), JSON.parse(body));
});
