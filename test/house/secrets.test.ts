// A secret is planted in every setting that can hold one; whatever Carillon prints, logs or answers is searched for it.

import assert from "node:assert/strict";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { CHANNELS } from "#domain/notification.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type Exit, sandboxFor, type Variables } from "../support/process.ts";
import { until } from "../support/until.ts";

const planted: string[] = [];
const marker = (name: string): string => {
  const secret = `planted${name}${randomBytes(8).toString("hex")}`;
  planted.push(secret);
  return secret;
};
const search = (where: string, text: string): void => {
  for (const secret of planted) assert.ok(!text.includes(secret), `${secret} in ${where}:\n${text}`);
};
const searchExit = (where: string, { stdout, stderr }: Exit) => search(where, stdout + stderr);

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const curve = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" });
// A line from the middle of each: what is cut or quoted of a key is found too.
planted.push(...[pem, String(curve)].map((text) => text.split("\n")[1] ?? ""));

/** Nobody listens there, so that every provider fails and says so. */
const nowhere = (name: string) => `http://user:${marker(name)}@127.0.0.1:1/${marker(`${name}Path`)}`;
const vapid = generateKeyPairSync("ec", { namedCurve: "P-256" });
const { x = "", y = "", d = "" } = vapid.privateKey.export({ format: "jwk" });
const point = Buffer.concat([Buffer.of(4), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]);
planted.push(d);
const mail = { from: "a@example.com" };
const providers = {
  smtp: { type: "smtp", ...mail, host: "127.0.0.1", port: 1, user: marker("User"), password: marker("Password") },
  sendgrid: { type: "sendgrid", ...mail, apiKey: marker("Sendgrid"), apiUrl: nowhere("SendgridUrl") },
  ses: {
    type: "ses",
    ...mail,
    region: "eu-west-1",
    accessKeyId: marker("AccessKey"),
    secretAccessKey: marker("SecretKey"),
    sessionToken: marker("Session"),
    apiUrl: nowhere("SesUrl"),
  },
  fcm: {
    type: "fcm",
    serviceAccount: { project_id: "p", client_email: "c@example.com", private_key: pem },
    apiUrl: nowhere("FcmUrl"),
    tokenUrl: nowhere("FcmTokens"),
  },
  apns: {
    type: "apns",
    teamId: "T",
    keyId: "K",
    privateKey: String(curve),
    topic: "com.example",
    apiUrl: nowhere("Apns"),
  },
  webpush: { type: "webpush", publicKey: point.toString("base64url"), privateKey: d, subject: "mailto:a@example.com" },
  twilio: {
    type: "twilio",
    accountSid: "AC1",
    authToken: marker("Twilio"),
    from: "+15550100",
    apiUrl: nowhere("TwilioUrl"),
  },
  slack: { type: "slack", token: marker("Slack"), apiUrl: nowhere("SlackUrl") },
  hook: { type: "webhook", secret: `whsec_${Buffer.from(marker("Webhook")).toString("base64")}` },
};
planted.push(providers.hook.secret);
const secretKeys = [randomBytes(32), randomBytes(32)].map((key) => key.toString("base64"));
planted.push(...secretKeys);

/** Nobody listens there either: they fail, and say why. */
const sasl = { mechanism: "PLAIN", username: marker("KafkaUser"), password: marker("KafkaPassword") };
const tls = { ca: marker("Ca"), cert: marker("Cert"), key: marker("Key") };
const kafka = { type: "kafka", brokers: ["127.0.0.1:1"], topic: "t", sasl };
const sources = { orders: kafka };
const sinks = {
  bus: { type: "rabbitmq", url: `amqp://user:${marker("Amqp")}@127.0.0.1:1/${marker("Vhost")}` },
  warehouse: {
    type: "clickhouse",
    url: "http://127.0.0.1:1",
    user: marker("ClickhouseUser"),
    password: marker("Clickhouse"),
  },
};

const routes = {
  email: ["smtp", "sendgrid", "ses"],
  push: ["fcm", "apns", "webpush"],
  sms: "twilio",
  slack: "slack",
  webhook: "hook",
};

test("no command, log line, answer or figure tells a secret of the configuration", async (t) => {
  const database = await freshDatabase();
  t.after(() => database.drop());
  planted.push(/:([^:@]+)@/.exec(database.url)?.[1] ?? "");
  const sandbox = await sandboxFor(t);
  const key = marker("ApiKey");
  await writeFile(
    join(sandbox.directory, "carillon.config.json"),
    JSON.stringify({ routes, apiKey: marker("FileKey") }),
  );
  const env = {
    DATABASE_URL: database.url,
    CARILLON_API_KEY: key,
    CARILLON_SECRET_KEYS: secretKeys.join(","),
    CARILLON_PROVIDERS: JSON.stringify(providers),
    CARILLON_SOURCES: JSON.stringify(sources),
    CARILLON_SINKS: JSON.stringify(sinks),
    CARILLON_PUBLIC_URL: `https://user:${marker("PublicUrl")}@carillon.example.com/${marker("PublicPath")}`,
    // Nobody listens there, so that it is told of.
    CARILLON_LIMITS_IN: "redis",
    CARILLON_REDIS_URL: `redis://ada:${marker("Redis")}@127.0.0.1:1`,
    CARILLON_SQS_ENDPOINT: "http://127.0.0.1:1",
    CARILLON_SQS_ACCESS_KEY_ID: marker("SqsKey"),
    CARILLON_SQS_SECRET_ACCESS_KEY: marker("SqsSecret"),
    CARILLON_SQS_SESSION_TOKEN: marker("SqsToken"),
    CARILLON_LOG_LEVEL: "trace",
    CARILLON_MAX_ATTEMPTS: "1",
  };
  const secured = { CARILLON_SOURCES: JSON.stringify({ secured: { ...kafka, tls } }) };
  const checked = await sandbox.run(["check"], { ...env, ...secured });
  assert.equal(checked.code, 0, checked.stderr);
  searchExit("check", checked);

  const service = await sandbox.start(env);
  const ask = async (method: string, path: string, body?: unknown, asKey: string | null = key) => {
    const answer = await service.ask(method, path, body, { key: asKey });
    search(`${method} ${path}`, JSON.stringify([answer.body, [...answer.headers]]));
    return answer;
  };
  const recipient = {
    email: "ada@example.com",
    phone: "+33612345678",
    deviceTokens: ["fcm:t", "apns:t"],
    slackChannel: "C1",
    webhookUrl: "https://127.0.0.1:1/",
    userId: "ada",
  };
  const content = { subject: "s", textBody: "t", body: "b", title: "t" };
  const ids: string[] = [];
  for (const channel of CHANNELS) {
    const { body } = await ask("POST", "/v1/notifications", { channel, recipient, content });
    if (body.notificationId) ids.push(body.notificationId);
  }
  assert.ok(ids.length > 4);
  for (const id of ids) {
    await until(async () =>
      (await ask("GET", `/v1/notifications/${id}`)).body.attempts.length > 0 ? true : undefined,
    );
  }
  await until(async () => {
    const { body } = await ask("GET", "/v1/sinks");
    return body.data.every(({ state }: { state: string }) => state === "failing") ? true : undefined;
  }, 60_000);
  for (const path of ["/live", "/ready", "/health", "/metrics", "/docs", "/openapi.json"])
    await ask("GET", path, undefined, null);
  for (const path of [
    "/v1/sources",
    "/v1/refusals",
    "/v1/providers",
    "/v1/queue",
    "/v1/dead-letters",
    "/v1/keys",
    "/v1/nothing",
  ])
    await ask("GET", path);
  await ask("GET", "/v1/ledger", undefined, marker("WrongKey"));
  await ask("POST", "/v1/notifications", { channel: "email", content: 7 });
  await ask("PUT", "/v1/providers/smtp", { settings: { type: "smtp", password: marker("TenantPassword") } });
  searchExit("start", await service.end("SIGTERM"));
});

test("a setting that holds a secret by mistake is refused without repeating it", async (t) => {
  const sandbox = await sandboxFor(t);
  const names = [
    "PORT",
    "HOST",
    "DATABASE_URL",
    "CARILLON_ROLES",
    "CARILLON_DRAIN_MS",
    "CARILLON_LOG_LEVEL",
    "CARILLON_POLL_MS",
    "CARILLON_PROVIDERS",
    "CARILLON_ROUTES",
    "CARILLON_LIMITS",
    "CARILLON_LOCKS",
    "CARILLON_LOCK_CHANNELS",
    "CARILLON_SECRET_KEYS",
    "CARILLON_ALLOW_ORIGINS",
    "CARILLON_PUBLIC_URL",
    "USE_DISTRIBUTED_LOCKING",
    "CARILLON_ALLOW_ADDRESSES",
    "CARILLON_SOURCES",
    "CARILLON_SINKS",
    "CARILLON_SQS_REGION",
    "CARILLON_SQS_ENDPOINT",
    "CARILLON_SQS_PREFIX",
  ];
  const url = (name: string) => `x://user:${marker(name)}@host/?key=${marker(name)}`;
  const env: Variables = Object.fromEntries(names.map((name) => [name, url(name.replaceAll("_", ""))]));
  const wrong = await sandbox.run(["start"], env);
  assert.equal(wrong.code, 78, wrong.stderr);
  assert.match(wrong.stderr, new RegExp(`the configuration has ${names.length} faults`));
  searchExit("the faults of the environment", wrong);

  const nested = {
    providers: {
      a: { type: "smtp", password: 7, [marker("Field").toLowerCase().slice(0, 3)]: marker("Value") },
      b: marker("Whole"),
    },
    routes: { email: marker("Route"), sms: [{ to: marker("RouteObject") }] },
    sources: {
      a: { type: "kafka", sasl: { password: 7, [marker("Sasl").slice(0, 9)]: marker("SaslValue") } },
      b: marker("Source"),
    },
    sinks: { a: { type: "rabbitmq", url: 7, exchange: { e: marker("Exchange") } }, b: { type: marker("Sink") } },
    limits: { providers: { a: { account: marker("Limit") } } },
    pollMs: { urgent: marker("Poll") },
  };
  await writeFile(join(sandbox.directory, "carillon.config.json"), JSON.stringify(nested));
  searchExit("the faults of the file", await sandbox.run(["check"]));
  await writeFile(join(sandbox.directory, "carillon.config.json"), `{ "apiKey": "${marker("Cut")}`);
  searchExit("a file that is cut off", await sandbox.run(["check"]));
});
