import assert from "node:assert/strict";
import { test } from "node:test";
import { clientOptions, loadKafka } from "#wire/kafka-client.ts";
import { optional } from "#wire/optional.ts";
import { whyOf } from "#wire/why.ts";

test("a Node that is too old for Kafka is named, and so is a package that is missing", async () => {
  for (const old of ["20.18.1", "22.21.1", "23.11.0", "24.5.9"])
    await assert.rejects(loadKafka("the sink orders", old), {
      message: `the sink orders needs Node 22.22, or 24.6 and newer: this is ${old}`,
    });
  for (const node of ["22.22.0", "24.6.0", "25.0.0", process.versions.node])
    assert.equal(typeof (await loadKafka("the sink orders", node)).Producer, "function");
  const missing = "no-such-package-of-ours";
  await assert.rejects(
    optional("the sink orders", missing, () => import(missing)),
    { message: `the sink orders needs the package ${missing}: npm install ${missing}` },
  );
});

test("settings of brokers become the client's options", () => {
  const brokers = ["a.example:9092", "b.example:9093"];
  assert.deepEqual(clientOptions({ brokers }, "carillon-orders"), {
    clientId: "carillon-orders",
    bootstrapBrokers: brokers,
    connectTimeout: 10_000,
    autocreateTopics: false,
    tlsServerName: true,
  });
  const sasl = { mechanism: "SCRAM-SHA-512" as const, username: "u", password: "p" };
  const secured = clientOptions({ brokers, clientId: "me", tls: { ca: "…" }, sasl }, "carillon-orders");
  assert.deepEqual([secured.clientId, secured.tls, secured.sasl], ["me", { ca: "…" }, sasl]);
  assert.deepEqual(clientOptions({ brokers, tls: true }, "x").tls, {});
  assert.equal(clientOptions({ brokers, tls: false }, "x").tls, undefined);
});

test("an address is not given as a server's name, as TLS has names only", () => {
  for (const brokers of [["127.0.0.1:9092"], ["[::1]:9092"]])
    assert.equal(clientOptions({ brokers, tls: true }, "x").tlsServerName, false);
});

test("the innermost reason is what people read, on one line and without a password", () => {
  const refused = new Error("connect ECONNREFUSED\n127.0.0.1:9092");
  const nested = new AggregateError(
    [new AggregateError([new Error("Connection failed.", { cause: refused })], "Cannot connect to any broker.")],
    "metadata failed 3 times.",
  );
  assert.equal(whyOf(nested), "connect ECONNREFUSED 127.0.0.1:9092");
  assert.equal(whyOf(new Error("no answer of amqp://me:secret@broker/")), "no answer of amqp://broker/");
  assert.equal(whyOf("as it is"), "as it is");
});
