// Sources and sinks in the configuration: all faults at once, secrets from the environment and never shown, packages looked for first.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { ConfigError } from "#config/fault.ts";
import { readConfig } from "#config/read.ts";
import { shownConfig } from "#config/shown.ts";
import { sandboxFor } from "../support/process.ts";

const cwd = import.meta.dirname;
const read = (sources: object, sinks: object, env: { [name: string]: string } = {}) =>
  readConfig({
    env: { CARILLON_SOURCES: JSON.stringify(sources), CARILLON_SINKS: JSON.stringify(sinks), ...env },
    cwd,
  });

const SOURCES = {
  orders: {
    type: "kafka",
    brokers: ["kafka-1:9092", "[::1]:9092"],
    topic: "orders",
    tls: { ca: "env:CA" },
    sasl: { mechanism: "SCRAM-SHA-512", username: "carillon", password: "env:KAFKA_PASSWORD" },
  },
};
const SINKS = {
  bus: { type: "rabbitmq", url: "env:AMQP_URL", types: ["reminder.due"] },
  topic: { type: "kafka", brokers: ["kafka-1:9092"], topic: "facts" },
  warehouse: { type: "clickhouse", url: "https://clickhouse:8443", user: "u", password: "env:CLICKHOUSE_PASSWORD" },
};
const SECRETS = {
  CA: "planted-ca",
  KAFKA_PASSWORD: "planted-kafka",
  AMQP_URL: "amqps://u:planted-amqp@rabbit/planted-vhost",
  CLICKHOUSE_PASSWORD: "planted-clickhouse",
};

test("several of each are read by name, with secrets from the environment, and frozen", async () => {
  const { sources, sinks } = await read(SOURCES, SINKS, SECRETS);
  assert.deepEqual(Object.keys({ ...sources, ...sinks }), ["orders", "bus", "topic", "warehouse"]);
  assert.equal(sources.orders?.sasl?.password, "planted-kafka");
  assert.deepEqual(sinks.bus, { type: "rabbitmq", url: SECRETS.AMQP_URL, types: ["reminder.due"] });
  assert.ok(Object.isFrozen(sources) && Object.isFrozen(sinks) && Object.isFrozen(sinks.bus));
});

test("what is shown of them is names, types, and which settings they have", async () => {
  const shown = shownConfig(await read(SOURCES, SINKS, SECRETS));
  assert.ok(!JSON.stringify(shown).includes("planted"), JSON.stringify(shown));
  assert.deepEqual(shown.sinks, {
    bus: { type: "rabbitmq", url: "(set)", types: "(set)" },
    topic: { type: "kafka", brokers: "(set)", topic: "(set)" },
    warehouse: { type: "clickhouse", url: "(set)", user: "(set)", password: "(set)" },
  });
});

test("all faults of all of them are told together, each with its path, none with a value", async () => {
  const sources = {
    a: { type: "kafka", brokers: ["planted broker"], colour: "planted" },
    b: { type: "planted" },
    C: { type: "kafka", brokers: ["k:1"], topic: "t" },
    d: { type: "kafka", brokers: ["k:1"], topic: "t", sasl: { mechanism: "planted", username: "u", password: 7 } },
  };
  const sinks = {
    e: { type: "rabbitmq", url: "env:NOWHERE" },
    f: { type: "clickhouse", url: "ftp://u:planted@host", days: 0, database: "planted-x" },
    g: { type: "kafka", brokers: [], topic: "t", types: ["planted"] },
    h: "planted",
    toString: { type: "rabbitmq", url: "amqp://h" },
  };
  await assert.rejects(read(sources, sinks), (error: unknown) => {
    assert.ok(error instanceof ConfigError);
    const paths = error.faults.map(({ path }) => path);
    for (const path of [
      ...["sources.a.brokers.0", "sources.a.topic", "sources.a.colour", "sources.b.type", "sources.C"],
      ...["sources.d.sasl.mechanism", "sources.d.sasl.password"],
      ...["sinks.e", "sinks.f.url", "sinks.f.days", "sinks.f.database", "sinks.g.brokers", "sinks.g.types.0"],
      ...["sinks.h.type", "sinks.toString"],
    ])
      assert.ok(paths.includes(path), `${path} in ${paths}`);
    assert.match(error.message, /sinks\.e: expected the environment variable NOWHERE/);
    const shown = error.message.replace(/sources\.b\.type:[^\n]*/, "");
    assert.ok(!shown.includes("planted"), error.message);
    return true;
  });
  for (const name of ["CARILLON_SOURCES", "CARILLON_SINKS"]) {
    await assert.rejects(readConfig({ env: { [name]: "[planted]" }, cwd }), (error: unknown) => {
      assert.ok(error instanceof ConfigError && !error.message.includes("planted"));
      return error.faults[0]?.path === name;
    });
  }
});

/** As where it was never installed. */
const without = (name: string) =>
  `--import data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from "node:module";
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier !== ${JSON.stringify(name)}) return next(specifier, context);
        throw Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" });
      },
    });`)}`;

for (const processes of ["1", "2"]) {
  test(`a package that is missing is named in one sentence before anything is made, with ${processes} processes`, async (t) => {
    const sandbox = await sandboxFor(t);
    const { code, stdout, stderr } = await sandbox.run(["start"], {
      NODE_OPTIONS: without("@platformatic/kafka"),
      CARILLON_PROCESSES: processes,
      CARILLON_SOURCES: JSON.stringify({ orders: { type: "kafka", brokers: ["127.0.0.1:1"], topic: "orders" } }),
    });
    assert.deepEqual(
      [code, stdout, stderr],
      [1, "", "carillon: The source orders needs the package @platformatic/kafka: npm install @platformatic/kafka\n"],
    );
    assert.equal(existsSync(sandbox.home), false, "nothing was made");
  });
}

test("carillon check says so too, and a process without the role needs no package of theirs", async (t) => {
  const sandbox = await sandboxFor(t);
  const env = {
    NODE_OPTIONS: without("@platformatic/kafka"),
    CARILLON_SOURCES: JSON.stringify({ orders: { type: "kafka", brokers: ["127.0.0.1:1"], topic: "orders" } }),
  };
  const lacking = await sandbox.run(["check"], env);
  assert.equal(lacking.code, 1);
  assert.match(
    lacking.stderr,
    /^carillon: The source orders needs the package @platformatic\/kafka: npm install \S+\n$/,
  );
  const { code, stderr } = await sandbox.run(["check"], { ...env, CARILLON_ROLES: "api,worker" });
  assert.equal(code, 0, stderr);
});

test("a routing key that no fact can fill is told in one sentence before anything is made", async (t) => {
  const sandbox = await sandboxFor(t);
  const sinks = { bus: { type: "rabbitmq", url: "amqp://127.0.0.1:1", routingKey: "{{ colour }}" } };
  const { code, stderr } = await sandbox.run(["start"], { CARILLON_SINKS: JSON.stringify(sinks) });
  assert.equal(code, 1);
  assert.match(stderr, /^carillon: routingKey of the sink bus cannot be rendered: a fact has no colour, but [^\n]+\n$/);
  assert.equal(existsSync(sandbox.home), false, "nothing was made");
});
