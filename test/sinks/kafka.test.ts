// Facts to a real Kafka.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";
import type { FactType } from "#domain/fact.ts";
import { openKafkaSink } from "#sinks/kafka.ts";
import type { SettingsOfSink } from "#sinks/settings.ts";
import { type Arrived, sinkConformance } from "../conformance/sink.ts";
import { killedServerConformance, reminderConformance } from "../conformance/sink-service.ts";
import { CERTIFICATE } from "../support/certificate.ts";
import { recordsOf } from "../support/kafka-records.ts";
import { KAFKA_USER, NO_KAFKA, startKafka } from "../support/servers/kafka.ts";
import { tell, tellMany } from "../support/told.ts";

const started = await startKafka();
after(() => started?.stop());
const skip = started === undefined && NO_KAFKA;
const server = () => started ?? assert.fail(NO_KAFKA);
const soon = () => AbortSignal.timeout(60_000);

const open = (settings: Partial<SettingsOfSink<"kafka">> & { topic: string }) =>
  openKafkaSink({ type: "kafka", brokers: [server().bootstrap], ...settings }, "topics");

const headersOf = (headers: ReadonlyMap<Buffer, Buffer>) =>
  new Map([...headers].map(([name, value]) => [String(name), String(value)]));

async function makeTopic(): Promise<string> {
  const topic = `facts-${randomUUID()}`;
  await server().createTopic(topic, 3, { "max.message.bytes": 50_000 });
  return topic;
}

async function arrivedIn(topic: string): Promise<Arrived[]> {
  const records = await recordsOf(server().bootstrap, topic);
  const partitions = new Map<string, number>();
  return records.map(({ key, value, headers, partition }) => {
    const named = headersOf(headers);
    const body = JSON.parse(String(value));
    assert.equal(String(key), body.notificationId);
    assert.equal(partitions.get(body.notificationId) ?? partition, partition, "one notification, one partition");
    partitions.set(body.notificationId, partition);
    return { id: named.get("ce_id") ?? "", tenant: named.get("ce_tenant") ?? "", body };
  });
}

sinkConformance("kafka", NO_KAFKA, async () => {
  if (started === undefined) return undefined;
  return {
    server: started,
    async open() {
      const topic = await makeTopic();
      return { sink: await open({ topic }), arrived: () => arrivedIn(topic) };
    },
    openWith: (password) => open({ topic: "facts", sasl: { mechanism: "PLAIN", username: "me", password } }),
    refusable: {
      told: () => tell({ detail: { data: "x".repeat(60_000) } }),
      error: /it has about 60\d\d\d bytes, more than the topic facts-.* takes/,
    },
    stop: async () => {},
  };
});

const inService = () => ({
  server: server(),
  async place(types?: FactType[]) {
    const topic = await makeTopic();
    const settings = { type: "kafka" as const, brokers: [server().bootstrap], topic, ...(types && { types }) };
    return { settings, arrived: () => arrivedIn(topic) };
  },
});
killedServerConformance("kafka", skip, inService);
reminderConformance("kafka", skip, inService);

test("a fact is a record, a CloudEvent in binary mode, keyed by its notification", { skip }, async (t) => {
  const topic = await makeTopic();
  const sink = await open({ topic });
  t.after(() => sink.close());
  const told = tell({ type: "reminder.due", number: 1, tenant: "acme", detail: { key: "game" } });
  assert.deepEqual(await sink.deliver([told], soon()), []);
  const [record] = await recordsOf(server().bootstrap, topic);
  const { notificationId, at } = told.fact;
  assert.deepEqual(Object.fromEntries(headersOf(record?.headers ?? new Map())), {
    "content-type": "application/json",
    ce_specversion: "1.0",
    ce_id: `${notificationId}:1`,
    ce_source: "/carillon/tenants/acme",
    ce_type: "carillon.reminder.due",
    ce_subject: notificationId,
    ce_time: at.toISOString(),
    ce_tenant: "acme",
  });
  assert.deepEqual([String(record?.key), JSON.parse(String(record?.value))], [notificationId, told.body]);
});

test("a topic that is missing is named, and nothing is refused: it is tried again", { skip }, async (t) => {
  const topic = `later-${randomUUID()}`;
  const sink = await open({ topic });
  t.after(() => sink.close());
  const facts = tellMany(3, 2);
  for (let n = 0; n < 2; n++)
    await assert.rejects(sink.deliver(facts, soon()), new Error(`Kafka has no topic ${topic}`));
  await server().createTopic(topic);
  assert.deepEqual(await sink.deliver(facts, soon()), []);
  assert.equal((await arrivedIn(topic)).length, 6);
});

test("more than a request holds goes in several, and in order", { skip }, async (t) => {
  const topic = `large-${randomUUID()}`;
  await server().createTopic(topic);
  const sink = await open({ topic });
  t.after(() => sink.close());
  const notificationId = randomUUID();
  const detail = { data: "x".repeat(100_000) };
  const facts = Array.from({ length: 25 }, (_, number) => tell({ notificationId, number, type: "retrying", detail }));
  assert.deepEqual(await sink.deliver(facts, soon()), []);
  const ids = (await arrivedIn(topic)).map(({ id }) => id);
  assert.deepEqual(
    ids,
    facts.map(({ body }) => body.id),
  );
});

test("over TLS, as a user, by a certificate that is named", { skip }, async (t) => {
  const secured = await startKafka({ secured: true });
  if (secured === undefined) return t.skip(NO_KAFKA);
  t.after(secured.stop);
  await secured.createTopic("facts");
  const reached = { topic: "facts", brokers: [secured.bootstrap] };
  const sasl = { mechanism: "PLAIN" as const, ...KAFKA_USER };
  const sink = await open({ ...reached, tls: { ca: CERTIFICATE }, sasl });
  t.after(() => sink.close());
  assert.deepEqual(await sink.deliver(tellMany(3, 2), soon()), []);
  const wrong = await open({ ...reached, tls: { ca: CERTIFICATE }, sasl: { ...sasl, password: "not-this-one" } });
  t.after(() => wrong.close());
  await assert.rejects(wrong.deliver([tell()], soon()), (error) => !String(error).includes("not-this-one"));
  const wary = await open({ ...reached, tls: true, sasl });
  t.after(() => wary.close());
  await assert.rejects(wary.deliver([tell()], soon()));
});
