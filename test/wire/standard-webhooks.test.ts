// Signatures as the specification, and the libraries of others, know them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { newSecrets, publicKeyOf, signingKeyOf } from "#domain/endpoint.ts";
import { hmacKeyOf, signingKeysOf, signWebhook } from "#wire/standard-webhooks.ts";

/** The example that the specification's own libraries are tested with. */
const EXAMPLE = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", at: 1_614_265_330_000, body: '{"test": 2432232314}' };
const EXAMPLE_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const EXAMPLE_PRIVATE = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";

test("v1 and v1a are what the specification's example says", () => {
  assert.deepEqual(signWebhook(EXAMPLE, signingKeysOf([{ secret: EXAMPLE_SECRET, privateKey: EXAMPLE_PRIVATE }])), {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature":
      "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= " +
      "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==",
  });
});

test("the public key is the second half of the private one", () => {
  const { privateKey } = newSecrets();
  const pair = Buffer.from(privateKey.slice("whsk_".length), "base64");
  assert.equal(pair.length, 64);
  assert.equal(publicKeyOf({ secret: "", privateKey }), `whpk_${pair.subarray(32).toString("base64")}`);
  assert.equal(signingKeyOf(privateKey).asymmetricKeyType, "ed25519");
});

test("while secrets are replaced, whoever has either verifies with the libraries of standardwebhooks and svix", () => {
  const [newer, older, other] = [newSecrets(), newSecrets(), newSecrets()];
  const body = JSON.stringify({ type: "notification.sent", data: { title: "“7” ✓" } });
  const headers = signWebhook({ id: "msg_1", at: Date.now(), body }, signingKeysOf([newer, older]));
  assert.equal(headers["webhook-signature"]?.split(" ").length, 4);
  for (const library of [StandardWebhook, SvixWebhook]) {
    for (const { secret } of [newer, older]) new library(secret).verify(body, headers);
    assert.throws(() => new library(newer.secret).verify(`${body} `, headers), /No matching signature/);
    assert.throws(() => new library(other.secret).verify(body, headers), /No matching signature/);
  }
});

test("a secret has 24 to 64 bytes", () => {
  const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString("base64")}`;
  for (const bytes of [24, 32, 64]) assert.equal(hmacKeyOf(secretOf(bytes))?.symmetricKeySize, bytes);
  for (const wrong of [secretOf(23), secretOf(65), secretOf(32).slice(6), "whsec_", "whsec_$$$", ""])
    assert.equal(hmacKeyOf(wrong), undefined);
});
