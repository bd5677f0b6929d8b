// Tenants' own accounts with providers: what is malformed is refused, and one that cannot be opened harms nobody else.

import assert from "node:assert/strict";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import type { Config } from "#config/read.ts";
import { seal } from "#domain/sealed.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type Answered, email, type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const SECRET_KEYS = [randomBytes(32)];
const pem = (type: "ec" | "rsa" | "ed25519") => {
  const pair =
    type === "ec"
      ? generateKeyPairSync("ec", { namedCurve: "P-256" })
      : type === "rsa"
        ? generateKeyPairSync("rsa", { modulusLength: 2048 })
        : generateKeyPairSync("ed25519");
  return pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
};
const RSA = pem("rsa");
const EC = pem("ec");
const ED25519 = pem("ed25519");
const GOOD_SECRET = `whsec_${randomBytes(32).toString("base64")}`;

const options: Partial<Config> = {
  roles: ["api", "worker", "scheduler"],
  secretKeys: SECRET_KEYS,
  providers: {
    webhook: { type: "webhook" },
    mail: { type: "test" },
    phones: { type: "test" },
    sms: { type: "test" },
    chat: { type: "test" },
  },
  routes: {
    webhook: "webhook",
    email: "mail",
    push: "phones",
    sms: "sms",
    slack: "chat",
    inbox: "mail",
    console: "mail",
    file: "mail",
  },
};

let service: Service;
before(async () => {
  service = await startService(options);
});
after(() => service.stop());

const put = (name: string, account: object, key: string) =>
  service.ask("PUT", `/v1/providers/${name}`, account, { key });

test("a malformed credential is refused with its field named and its value kept to itself, and nothing is stored", async () => {
  const key = await service.makeKey({ tenant: "clumsy", scopes: ["admin"] });
  const fcm = { project_id: "p", client_email: "a@b.iam", private_key: EC };
  const dkim = { domain: "example.com", selector: "s", privateKey: RSA.slice(0, 300) };
  const smtp = { type: "smtp", host: "mail.example.com", from: "bell@example.com" };
  const apns = { type: "apns", teamId: "T", keyId: "K", topic: "com.example" };
  const mail = { type: "sendgrid", apiKey: "SG.sesame", from: "bell@example.com" };
  const ses = {
    type: "ses",
    region: "eu-west-1",
    accessKeyId: "AKsesame",
    secretAccessKey: "sesame",
    from: "bell@example.com",
  };
  const wrong: [name: string, account: object, path: string, secret: string][] = [
    ["webhook", { type: "webhook", secret: "whsec_c2hvcnQ=" }, "/secret", "c2hvcnQ"],
    ["webhook", { type: "webhook", secret: [GOOD_SECRET, "sesame"] }, "/secret/1", "sesame"],
    ["mail", { ...smtp, dkim }, "/dkim/privateKey", RSA.slice(40, 80)],
    ["mail", { ...smtp, dkim: { ...dkim, privateKey: EC } }, "/dkim/privateKey", EC.slice(40, 80)],
    ["mail", { ...smtp, from: "nobody" }, "/from", "nobody"],
    ["mail", { ...smtp, host: "127.1" }, "/host", "127.1"],
    ["mail", { ...smtp, host: "0x7f.1" }, "/host", "0x7f"],
    ["mail", { ...smtp, host: "0177.0.0.1" }, "/host", "0177"],
    ["mail", { ...mail, webhookPublicKey: "sesame" }, "/webhookPublicKey", "sesame"],
    ["mail", { ...mail, apiKey: "SG.se\nsame" }, "/apiKey", "same"],
    ["mail", { ...ses, region: "a.evil.example/?" }, "/region", "evil"],
    ["phones", { ...apns, privateKey: EC.slice(0, 90) }, "/privateKey", EC.slice(40, 80)],
    ["phones", { ...apns, privateKey: ED25519 }, "/privateKey", ED25519.slice(40, 80)],
    ["phones", { ...apns, privateKey: RSA }, "/privateKey", RSA.slice(40, 80)],
    ["phones", { type: "fcm", serviceAccount: fcm }, "/serviceAccount/private_key", EC.slice(40, 80)],
    [
      "phones",
      { type: "webpush", publicKey: "sesame", privateKey: "open", subject: "mailto:a@b.c" },
      "/privateKey",
      "sesame",
    ],
    ["sms", { type: "twilio", accountSid: "AC1", authToken: "sesame" }, "/from", "sesame"],
    ["chat", { type: "slack", token: "xoxb-ses ame" }, "/token", "xoxb"],
  ];
  for (const [name, account, path, secret] of wrong) {
    const { status, body } = await put(name, account, key);
    assert.equal(status, 422, `${path}: ${JSON.stringify(body)}`);
    assert.deepEqual(
      body.errors.map((fault: { path: string }) => fault.path),
      [path],
    );
    assert.ok(!JSON.stringify(body).includes(secret), path);
  }
  const { rows } = await service.db.query("select from carillon.credentials");
  assert.equal(rows.length, 0);
  const other = await service.makeKey({ tenant: "careful", scopes: ["admin"] });
  for (const who of [key, other]) {
    assert.equal((await put("webhook", { type: "webhook", secret: GOOD_SECRET }, who)).status, 204);
    assert.equal((await put("phones", { ...apns, privateKey: EC }, who)).status, 204);
  }
});

test("an account that cannot be opened is disabled alone: starts, other tenants and their accounts go on", async (t) => {
  const database = await freshDatabase();
  const first = await startService({ ...options, databaseUrl: database.url });
  t.after(() => database.drop());
  const keys: { [tenant: string]: string } = {};
  for (const tenant of ["broken", "locked", "well"]) keys[tenant] = await first.makeKey({ tenant, scopes: ["admin"] });
  const { rows } = await first.db.query<{ id: number; name: string }>("select id, name from carillon.tenants");
  const idOf = (tenant: string) => rows.find(({ name }) => name === tenant)?.id ?? 0;
  // As an older version stored it, and as a key that nobody has any more sealed it.
  const plant = (tenant: string, secretKeys: Buffer[], settings: object) =>
    first.db.query("insert into carillon.credentials (tenant, provider, sealed) values ($1, 'mail', $2)", [
      idOf(tenant),
      seal(secretKeys, `${idOf(tenant)} mail`, JSON.stringify(settings)),
    ]);
  const account = { type: "sendgrid", apiKey: "SG.1", from: "bell@example.com" };
  await plant("broken", SECRET_KEYS, { ...account, webhookPublicKey: "sesame" });
  await plant("locked", [randomBytes(32)], account);
  await first.stop();

  const again = await startService({ ...options, databaseUrl: database.url });
  t.after(again.stop);
  const asking = (tenant: string) => ({ key: keys[tenant] ?? "" });
  /** What became of the first attempt at a mail. */
  const firstOf = async (tenant: string): Promise<Answered["body"]> => {
    const sent = await again.ask("POST", "/v1/notifications", email(), asking(tenant));
    assert.equal(sent.status, 202, JSON.stringify(sent.body));
    return until(async () => {
      const path = `/v1/notifications/${sent.body.notificationId}`;
      const { body } = await again.ask("GET", path, undefined, asking(tenant));
      return body.attempts[0]?.outcome ? body.attempts[0] : undefined;
    });
  };
  const providerOf = async (tenant: string) => {
    const { body } = await again.ask("GET", "/v1/providers", undefined, asking(tenant));
    return body.data.find(({ name }: { name: string }) => name === "mail");
  };

  const broken = await firstOf("broken");
  assert.equal(broken.outcome, "rejected");
  assert.match(broken.error, /own account is disabled: webhookPublicKey must be/);
  const locked = await firstOf("locked");
  assert.equal(locked.outcome, "unavailable", "it is tried again: another replica may have the key");
  assert.match(locked.error, /own account is disabled: no secret key opens/);
  for (const tenant of ["broken", "locked"]) {
    const { own, health } = await providerOf(tenant);
    assert.deepEqual([own, health.healthy], [true, false]);
    assert.match(health.detail, /own account is disabled/);
  }
  assert.match((await again.ask("GET", "/metrics")).body, /^carillon_accounts_disabled 2$/m);
  assert.equal((await again.ask("GET", "/health")).status, 200, "one tenant's account is not the deployment's health");

  assert.equal((await firstOf("well")).outcome, "accepted");
  const secret = { type: "webhook", secret: GOOD_SECRET };
  assert.equal((await again.ask("PUT", "/v1/providers/webhook", secret, asking("well"))).status, 204);
  // A new one, or none, mends it.
  assert.equal((await again.ask("PUT", "/v1/providers/mail", account, asking("locked"))).status, 204);
  assert.equal((await again.ask("DELETE", "/v1/providers/mail", undefined, asking("broken"))).status, 204);
  assert.equal((await firstOf("broken")).outcome, "accepted");
  assert.match((await again.ask("GET", "/metrics")).body, /^carillon_accounts_disabled 0$/m);
});
