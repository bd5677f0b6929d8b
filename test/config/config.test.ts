// Configuration: all faults at once, secrets never shown.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ConfigError } from "#config/fault.ts";
import { readConfig, unknownVariables } from "#config/read.ts";

let cwd: string;
before(() => {
  cwd = mkdtempSync(join(tmpdir(), "carillon-config-"));
});
after(() => rmSync(cwd, { recursive: true }));

const faultsOf = async (env: { [name: string]: string }): Promise<ConfigError> => {
  try {
    await readConfig({ env, cwd });
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error("there was no fault");
};

test("without anything, the defaults hold and the value is frozen", async () => {
  const config = await readConfig({ env: {}, cwd });
  assert.deepEqual(config, {
    host: "127.0.0.1",
    port: 8420,
    publicUrl: undefined,
    databaseUrl: undefined,
    home: join(cwd, ".carillon"),
    roles: ["api", "worker", "callbacks", "scheduler", "keeper", "stream", "source", "sink"],
    apiKey: undefined,
    drainMs: 25_000,
    processes: 1,
    logLevel: "info",
    traceParents: "default",
    development: false,
    databaseConnections: 10,
    databaseDirectUrl: undefined,
    acceptCommits: 2,
    acceptMaxWaiting: 20_000,
    batchSize: 1000,
    concurrency: 200,
    callbackConcurrency: 100,
    leaseMs: 30_000,
    sweepMs: 5_000,
    pollMs: { urgent: 1_000, high: 1_000, normal: 1_000, low: 1_000 },
    maxAttempts: undefined,
    sendTimeoutMs: 10_000,
    exchanges: "failures",
    retentionDays: 90,
    auditDays: 400,
    feedDays: 7,
    archive: undefined,
    providers: {
      console: { type: "console" },
      dev: { type: "dev" },
      file: { type: "file" },
      inbox: { type: "inbox" },
      webhook: { type: "webhook" },
    },
    routes: {
      email: "dev",
      push: "dev",
      sms: "dev",
      slack: "dev",
      webhook: "webhook",
      inbox: "inbox",
      console: "console",
      file: "file",
    },
    limits: { providers: {}, tenant: [], recipient: [] },
    limitsIn: "postgres",
    redisUrl: undefined,
    redisPrefix: "carillon",
    sqs: undefined,
    allowAddresses: [],
    locks: { kind: "off" },
    secretKeys: [],
    allowOrigins: [],
    maxStreams: 25_000,
    mcp: false,
    streamsPerUser: 20,
    takes: {},
    wayPercent: 25,
    sources: {},
    sinks: {},
    formerNames: [],
  });
  assert.ok(Object.isFrozen(config));
});

test("the environment is read, and an empty variable counts as absent", async () => {
  const config = await readConfig({
    env: { PORT: "0", CARILLON_ROLES: " worker , api", HOST: "", CARILLON_DRAIN_MS: "5" },
    cwd,
  });
  assert.deepEqual([config.port, config.roles, config.host, config.drainMs], [0, ["api", "worker"], "127.0.0.1", 5]);
});

test("every fault is reported at once, with key, expectation and finding", async () => {
  const error = await faultsOf({
    PORT: "80a",
    CARILLON_ROLES: "api,waiter",
    DATABASE_URL: "mysql://root:hunter2@db/x",
    CARILLON_API_KEY: "a b",
    CARILLON_LOG_LEVEL: "loud",
    CARILLON_ACCEPT_COMMITS: "0",
  });
  assert.deepEqual(
    error.faults.map(({ path }) => path),
    ["PORT", "CARILLON_ROLES", "CARILLON_API_KEY", "CARILLON_LOG_LEVEL", "DATABASE_URL", "CARILLON_ACCEPT_COMMITS"],
  );
  assert.match(error.message, /PORT: expected a port from 0 to 65535, found "80a"/);
  assert.doesNotMatch(error.message, /hunter2|a b/);
});

for (const [name, content] of [
  ["carillon.config.json", '{"port": 9000, "roles": ["api"], "logLevel": "warn"}'],
  ["carillon.config.js", 'export default { port: 9000, roles: ["api"], logLevel: "warn" };'],
  ["carillon.config.ts", 'const port: number = 9000;\nexport default { port, roles: ["api"], logLevel: "warn" };'],
] as const) {
  test(`${name} is found and read, and the environment wins over it`, async () => {
    const path = join(cwd, name);
    writeFileSync(path, content);
    try {
      const config = await readConfig({ env: { CARILLON_LOG_LEVEL: "error" }, cwd });
      assert.deepEqual([config.port, config.roles, config.logLevel], [9000, ["api"], "error"]);
    } finally {
      rmSync(path);
    }
  });
}

test("a config file named but missing, broken or with unknown settings is a fault", async () => {
  assert.match(
    (await faultsOf({ CARILLON_CONFIG: "none.json" })).message,
    /CARILLON_CONFIG: expected a file that can be read/,
  );
  writeFileSync(join(cwd, "broken.json"), "{");
  assert.match((await faultsOf({ CARILLON_CONFIG: "broken.json" })).message, /CARILLON_CONFIG/);
  writeFileSync(join(cwd, "odd.json"), '{"prot": 1, "port": "x", "host": 5}');
  const { faults } = await faultsOf({ CARILLON_CONFIG: "odd.json" });
  assert.deepEqual(
    faults.map(({ path }) => path),
    ["prot", "host", "port"],
  );
  assert.match((await faultsOf({ CARILLON_CONFIG: "x.yaml" })).message, /\.ts, \.js or \.json/);
});

test("lanes may be polled at different paces, and routes must lead to providers that exist", async () => {
  writeFileSync(
    join(cwd, "lanes.json"),
    '{"pollMs": {"low": 5000}, "providers": {"p": {"type": "test"}}, "routes": {"sms": "p"}}',
  );
  const config = await readConfig({ env: { CARILLON_CONFIG: "lanes.json" }, cwd });
  assert.deepEqual(config.pollMs, { urgent: 1_000, high: 1_000, normal: 1_000, low: 5_000 });
  assert.deepEqual([config.routes.sms, config.routes.email], ["p", "dev"]);
  writeFileSync(
    join(cwd, "bad.json"),
    '{"pollMs": {"slow": 1}, "providers": {"x": {"type": "magic"}}, "routes": {"sms": "nobody"}}',
  );
  const { faults } = await faultsOf({ CARILLON_CONFIG: "bad.json" });
  assert.deepEqual(
    faults.map(({ path }) => path),
    ["pollMs", "providers.x.type", "routes.sms"],
  );
  writeFileSync(join(cwd, "lost.json"), '{"routes": {"sms": "nobody"}}');
  assert.deepEqual(
    (await faultsOf({ CARILLON_CONFIG: "lost.json" })).faults.map(({ path }) => path),
    ["routes.sms"],
  );
});

test("a misspelt variable is noticed", () => {
  assert.deepEqual(unknownVariables({ CARILLON_HOME: "x", CARILLON_ROLE: "api", OTHER: "1" }), ["CARILLON_ROLE"]);
});

test("a setting goes by its former names too, below the new ones, and they are told", async () => {
  const file = join(cwd, "former.json");
  writeFileSync(file, '{"acceptLanes": 3}');
  const read = (env: { [name: string]: string }) => readConfig({ env: { CARILLON_CONFIG: file, ...env }, cwd });
  const inFile = { former: "acceptLanes", now: "acceptCommits" };
  const inEnvironment = { former: "CARILLON_ACCEPT_LANES", now: "CARILLON_ACCEPT_COMMITS" };
  const { acceptCommits, formerNames } = await read({});
  assert.deepEqual([acceptCommits, formerNames], [3, [inFile]]);
  const overridden = await read({ CARILLON_ACCEPT_LANES: "4" });
  assert.deepEqual([overridden.acceptCommits, overridden.formerNames], [4, [inEnvironment, inFile]]);
  assert.equal((await read({ CARILLON_ACCEPT_LANES: "4", CARILLON_ACCEPT_COMMITS: "5" })).acceptCommits, 5);
  assert.deepEqual(unknownVariables({ CARILLON_ACCEPT_LANES: "4" }), []);
  const { faults } = await faultsOf({ CARILLON_ACCEPT_LANES: "0" });
  assert.deepEqual(
    faults.map(({ path }) => path),
    ["CARILLON_ACCEPT_LANES"],
  );
});

test("providers take secrets from the environment, and every fault is named without its value", async () => {
  const given = {
    providers: {
      mail: { type: "sendgrid", apiKey: "env:SENDGRID_KEY", from: "a@b.co" },
      second: { type: "smtp", host: "mail.b.co", from: "a@b.co", password: "env:MAIL_PASSWORD" },
    },
    routes: { email: ["mail", "second"] },
  };
  const file = join(cwd, "channels.json");
  writeFileSync(file, JSON.stringify(given));
  const env = { CARILLON_CONFIG: file, SENDGRID_KEY: "SG.secret", MAIL_PASSWORD: "hush" };
  const { providers, routes } = await readConfig({ env, cwd });
  assert.deepEqual(providers.mail, { type: "sendgrid", apiKey: "SG.secret", from: "a@b.co" });
  assert.deepEqual(routes.email, ["mail", "second"]);

  writeFileSync(
    file,
    JSON.stringify({ providers: { x: { type: "twilio", authToken: 5, colour: "magenta" }, Y: { type: "?" } } }),
  );
  await assert.rejects(readConfig({ env: { CARILLON_CONFIG: file }, cwd }), ({ message }: Error) => {
    for (const key of [
      "providers.x.accountSid",
      "providers.x.authToken",
      "providers.x.colour",
      "providers.Y",
      "providers.Y.type",
    ]) {
      assert.ok(message.includes(`  ${key}:`), `${key} in ${message}`);
    }
    return !message.includes("magenta");
  });
  await assert.rejects(
    readConfig({ env: { CARILLON_PROVIDERS: '{"m":{"type":"sendgrid","apiKey":"env:NONE","from":"a@b.co"}}' }, cwd }),
    /NONE/,
  );
  await assert.rejects(readConfig({ env: { CARILLON_SECRET_KEYS: "short" }, cwd }), /32 bytes/);
});

test("there are as many processes as are asked for, or one for each core and eight at most", async () => {
  const countFor = async (given: string) => (await readConfig({ env: { CARILLON_PROCESSES: given }, cwd })).processes;
  assert.equal(await countFor("3"), 3);
  assert.equal(await countFor("auto"), Math.min(availableParallelism(), 8));
  for (const given of ["0", "65", "many", "1.5"]) {
    const { message } = await faultsOf({ CARILLON_PROCESSES: given });
    assert.match(
      message,
      new RegExp(`CARILLON_PROCESSES: expected auto, or a whole number from 1 to 64, found "${given}"`),
    );
  }
});

test("the samples of docs/configuration.md are valid as they stand", async () => {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "configuration.md"), "utf8");
  const samples = [...page.matchAll(/^```json\n(.*?)^```/gms)].map(([, text = ""]) => text);
  assert.ok(samples.length >= 2);
  for (const [n, text] of samples.entries()) {
    const file = join(cwd, `sample-${n}.json`);
    writeFileSync(file, text);
    const secrets = Object.fromEntries([...text.matchAll(/"env:(\w+)"/g)].map(([, name = ""]) => [name, "secret"]));
    await readConfig({ env: { ...secrets, CARILLON_CONFIG: file }, cwd });
  }
});

test("limits are read, and every fault of them is named at its own key", async () => {
  const limits = {
    providers: { dev: { account: [{ per: "second", most: 5 }] } },
    tenant: [{ per: "day", most: 9, burst: 3 }],
  };
  const config = await readConfig({ env: { CARILLON_LIMITS: JSON.stringify(limits) }, cwd });
  assert.deepEqual(config.limits, {
    providers: { dev: { account: [{ per: "second", most: 5 }], recipient: [] } },
    tenant: [{ per: "day", most: 9, burst: 3 }],
    recipient: [],
  });
  const bad = {
    providers: { nobody: {}, dev: { account: [{ per: "week", most: 1 }], receiver: [] } },
    tenant: [
      { per: "day", most: 0 },
      { per: "day", most: 2, burst: 3 },
    ],
    recipient: 5,
  };
  const { faults } = await faultsOf({ CARILLON_LIMITS: JSON.stringify(bad) });
  assert.deepEqual(
    faults.map(({ path }) => path),
    [
      "limits.providers.nobody",
      "limits.providers.dev.receiver",
      "limits.providers.dev.account.0.per",
      "limits.tenant.0.most",
      "limits.tenant.1.per",
      "limits.tenant.1.burst",
      "limits.recipient",
    ],
  );
  assert.deepEqual(
    (await faultsOf({ CARILLON_LIMITS: "5" })).faults.map(({ path }) => path),
    ["CARILLON_LIMITS"],
  );
});

const faultsIn = async (env: { [name: string]: string }) => (await faultsOf(env)).faults.map(({ path }) => path);

test("SQS is known by a region or an endpoint, with keys of its own or what the environment gives", async () => {
  assert.equal((await readConfig({ env: {}, cwd })).sqs, undefined);
  const keys = { CARILLON_SQS_ACCESS_KEY_ID: "id", CARILLON_SQS_SECRET_ACCESS_KEY: "word" };
  const own = await readConfig({ env: { CARILLON_SQS_ENDPOINT: "http://localhost:4566", ...keys }, cwd });
  assert.deepEqual(own.sqs, {
    endpoint: "http://localhost:4566",
    region: "us-east-1",
    prefix: "carillon",
    credentials: { kind: "keys", keys: { accessKeyId: "id", secretAccessKey: "word" } },
  });
  const chain = await readConfig({ env: { CARILLON_SQS_REGION: "eu-west-1", AWS_PROFILE: "bells" }, cwd });
  assert.deepEqual([chain.sqs?.region, chain.sqs?.endpoint], ["eu-west-1", undefined]);
  assert.ok(chain.sqs?.credentials.kind === "chain" && chain.sqs.credentials.env.AWS_PROFILE === "bells");
  assert.deepEqual(await faultsIn({ CARILLON_SQS_REGION: "eu-west-1", CARILLON_SQS_ACCESS_KEY_ID: "id" }), [
    "CARILLON_SQS_ACCESS_KEY_ID",
  ]);
  assert.deepEqual(await faultsIn({ CARILLON_SQS_PREFIX: "a.fifo", CARILLON_SQS_ENDPOINT: "localhost" }), [
    "CARILLON_SQS_ENDPOINT",
    "CARILLON_SQS_PREFIX",
  ]);
});

test("limits in Redis need a URL, and what is none is named without being shown", async () => {
  for (const url of [
    "redis://localhost",
    "rediss://ada:s%40cret@cache.example:6380/2",
    "redis+cluster://a:1,b:2",
    "redis+sentinel://:word@a,b:26379/bells",
  ]) {
    const config = await readConfig({ env: { CARILLON_LIMITS_IN: "redis", CARILLON_REDIS_URL: url }, cwd });
    assert.deepEqual([config.limitsIn, config.redisUrl], ["redis", url]);
  }
  assert.deepEqual(await faultsIn({ CARILLON_LIMITS_IN: "redis" }), ["CARILLON_REDIS_URL"]);
  assert.deepEqual(await faultsIn({ CARILLON_LIMITS_IN: "memory", CARILLON_REDIS_PREFIX: "a b" }), [
    "CARILLON_LIMITS_IN",
    "CARILLON_REDIS_PREFIX",
  ]);
  for (const url of ["redis://a,b", "redis://a/bells", "redis+sentinel://a:1", "redis://a?tls=yes"])
    assert.deepEqual(await faultsIn({ CARILLON_REDIS_URL: url }), ["CARILLON_REDIS_URL"], url);
  const error = await faultsOf({ CARILLON_REDIS_URL: "http://ada:s3cret@cache" });
  assert.equal(error.faults[0]?.path, "CARILLON_REDIS_URL");
  assert.ok(!JSON.stringify(error.faults).includes("s3cret"));
});

test("what a worker takes is read from variable and file, and every fault of it is named at its own key", async () => {
  const CARILLON_TAKES = "channels=sms,email; regions=eu,us ;lanes=urgent";
  const { takes } = await readConfig({ env: { CARILLON_TAKES }, cwd });
  assert.deepEqual(takes, { channels: ["email", "sms"], regions: ["eu", "us"], lanes: ["urgent"] });
  const file = join(cwd, "takes.json");
  writeFileSync(file, '{"takes": {"tenants": ["acme"], "lanes": ["low", "normal"]}}');
  const inFile = await readConfig({ env: { CARILLON_CONFIG: file }, cwd });
  assert.deepEqual(inFile.takes, { tenants: ["acme"], lanes: ["normal", "low"] });

  const { faults } = await faultsOf({ CARILLON_TAKES: "channels=mail;lane=low;tenants=;regions=EU", PORT: "x" });
  assert.deepEqual(
    faults.map(({ path }) => path),
    ["PORT", "takes.channels", "takes.lane", "takes.tenants", "takes.regions"],
  );
  for (const text of ["email", "channels=email;channels=sms", ";", "=email"]) {
    const { faults } = await faultsOf({ CARILLON_TAKES: text });
    assert.deepEqual(
      faults.map(({ path }) => path),
      ["CARILLON_TAKES"],
      text,
    );
  }
  writeFileSync(file, '{"takes": {"channels": "email,sms", "tenants": [5], "regions": []}}');
  assert.deepEqual(
    (await faultsOf({ CARILLON_CONFIG: file })).faults.map(({ path }) => path),
    ["takes.tenants", "takes.regions"],
  );
});
