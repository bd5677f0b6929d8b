// Facts to a real RabbitMQ.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { after, test } from "node:test";
import { createServer } from "node:tls";
import type { FactType } from "#domain/fact.ts";
import { openRabbit } from "#sinks/rabbitmq.ts";
import type { SettingsOfSink } from "#sinks/settings.ts";
import { type Arrived, sinkConformance } from "../conformance/sink.ts";
import { killedServerConformance, reminderConformance } from "../conformance/sink-service.ts";
import { CERTIFICATE, PRIVATE_KEY } from "../support/certificate.ts";
import { connected, makeQueue, type TestQueue } from "../support/rabbitmq-queue.ts";
import { NO_RABBITMQ, startRabbitMQ } from "../support/servers/rabbitmq.ts";
import { tell, tellMany } from "../support/told.ts";

const LARGEST = 100_000;
const started = await startRabbitMQ(`max_message_size = ${LARGEST}`);
after(() => started?.stop());
const skip = started === undefined && NO_RABBITMQ;
const server = () => started ?? assert.fail(NO_RABBITMQ);
const soon = () => AbortSignal.timeout(60_000);

const open = (settings: Partial<SettingsOfSink<"rabbitmq">> = {}) =>
  openRabbit({ type: "rabbitmq", url: server().url, ...settings }, "queues");

async function arrivedIn(queue: TestQueue): Promise<Arrived[]> {
  const messages = await queue.taken();
  return messages.map(({ content, properties: { messageId, headers } }) => ({
    id: String(messageId),
    tenant: String(headers?.["cloudEvents:tenant"]),
    body: JSON.parse(String(content)),
  }));
}

sinkConformance("rabbitmq", NO_RABBITMQ, async () => {
  if (started === undefined) return undefined;
  return {
    server: started,
    async open() {
      // Not for `read`.
      const queue = await makeQueue(started.url, ["accepted", "retrying", "postponed", "sent", "delivered"]);
      return { sink: await open({ exchange: queue.exchange }), arrived: () => arrivedIn(queue) };
    },
    openWith: (password) => open({ url: started.url.replace(/:guest@/, `:${password}@`) }),
    refusable: {
      told: () => tell({ type: "read" }),
      error: /no queue is bound to the exchange "facts-.*" for the routing key "read" \(NO_ROUTE\)/,
    },
    stop: async () => {},
  };
});

const inService = () => ({
  server: server(),
  async place(types?: FactType[]) {
    const queue = await makeQueue(server().url, types ?? ["#"]);
    const settings = { type: "rabbitmq" as const, url: server().url, exchange: queue.exchange };
    return { settings: { ...settings, ...(types && { types }) }, arrived: () => arrivedIn(queue) };
  },
});
killedServerConformance("rabbitmq", skip, inService);
reminderConformance("rabbitmq", skip, inService);

test("a fact is a persistent message, a CloudEvent in binary mode", { skip }, async (t) => {
  const queue = await makeQueue(server().url, ["#"], "quorum");
  const sink = await open({ exchange: queue.exchange });
  t.after(() => sink.close());
  const told = tell({ type: "reminder.due", number: 1, tenant: "acme", detail: { key: "game" } });
  assert.deepEqual(await sink.deliver([told], soon()), []);
  const [message] = await queue.taken();
  const { messageId, contentType, deliveryMode, timestamp, headers, appId } = message?.properties ?? {};
  const { notificationId, at } = told.fact;
  assert.equal(message?.fields.routingKey, "reminder.due");
  assert.deepEqual(
    { messageId, contentType, deliveryMode, timestamp, appId },
    {
      messageId: `${notificationId}:1`,
      contentType: "application/json",
      deliveryMode: 2,
      timestamp: Math.floor(at.getTime() / 1000),
      appId: "carillon",
    },
  );
  assert.deepEqual(headers, {
    "cloudEvents:specversion": "1.0",
    "cloudEvents:id": `${notificationId}:1`,
    "cloudEvents:source": "/carillon/tenants/acme",
    "cloudEvents:type": "carillon.reminder.due",
    "cloudEvents:subject": notificationId,
    "cloudEvents:time": at.toISOString(),
    "cloudEvents:tenant": "acme",
  });
  assert.deepEqual(JSON.parse(String(message?.content)), told.body);
});

test("exchange and routing key are filled from the fact; what comes out too long or empty is refused", {
  skip,
}, async (t) => {
  const queue = await makeQueue(server().url, ["acme.email.#"]);
  const sink = await open({
    exchange: `{% unless detail.nowhere %}${queue.exchange}{% endunless %}`,
    routingKey: "{{ tenant }}.{{ channel }}.{{ type | upcase }}{{ detail.more }}",
  });
  t.after(() => sink.close());
  const good = tell({ tenant: "acme" });
  const long = tell({ tenant: "acme", detail: { more: "é".repeat(200) } });
  const nowhere = tell({ tenant: "acme", detail: { nowhere: true } });
  const refused = await sink.deliver([long, nowhere, good], soon());
  assert.deepEqual(
    refused.map(({ error }) => error),
    ["routingKey of the sink queues has 419 bytes, 255 at most", "the exchange's name came out empty"],
  );
  const [message, ...others] = await queue.taken();
  assert.deepEqual(others, []);
  assert.equal(message?.fields.routingKey, "acme.email.ACCEPTED");
});

test("what is larger than the broker takes is refused alone", { skip }, async (t) => {
  const queue = await makeQueue(server().url, ["#"]);
  const sink = await open({ exchange: queue.exchange });
  t.after(() => sink.close());
  const facts = tellMany(10, 2);
  const large = tell({ detail: { data: "x".repeat(LARGEST) } });
  const refused = await sink.deliver([...facts.slice(0, 5), large, ...facts.slice(5)], soon());
  assert.deepEqual(
    refused.map(({ told }) => told),
    [large],
  );
  assert.match(refused[0]?.error ?? "", /^it has 100\d\d\d bytes, and RabbitMQ takes 100000 at most$/);
  const ids = new Set((await arrivedIn(queue)).map(({ id }) => id));
  assert.deepEqual(ids, new Set(facts.map(({ body }) => body.id)));
});

test("an exchange that is missing is named, and nothing is refused: it is tried again", { skip }, async (t) => {
  const exchange = `later-${randomUUID()}`;
  const sink = await open({ exchange });
  t.after(() => sink.close());
  const facts = tellMany(3, 2);
  for (let n = 0; n < 2; n++)
    await assert.rejects(sink.deliver(facts, soon()), new RegExp(`404.*no exchange '${exchange}'`));
  const queue = await makeQueue(server().url, ["#"]);
  await connected(server().url, async (connection) => {
    const channel = await connection.createChannel();
    await channel.assertExchange(exchange, "topic");
    await channel.bindExchange(queue.exchange, exchange, "#");
  });
  assert.deepEqual(await sink.deliver(facts, soon()), []);
  assert.equal((await queue.taken()).length, 6);
});

test("over TLS, by a certificate that is named", { skip }, async (t) => {
  const secure = createServer({ key: PRIVATE_KEY, cert: CERTIFICATE }, (near) => {
    const far = connect(Number(new URL(server().url).port), "127.0.0.1");
    for (const socket of [near, far]) socket.on("error", () => near.destroy(far.destroy() && undefined));
    near.pipe(far).pipe(near);
  });
  secure.listen(0, "127.0.0.1");
  await once(secure, "listening");
  t.after(() => secure.close());
  const url = `amqps://guest:guest@localhost:${(secure.address() as AddressInfo).port}`;
  const queue = await makeQueue(server().url, ["#"]);
  const trusting = await open({ url, ca: CERTIFICATE, exchange: queue.exchange });
  t.after(() => trusting.close());
  assert.deepEqual(await trusting.deliver([tell()], soon()), []);
  const wary = await open({ url, exchange: queue.exchange });
  await assert.rejects(wary.deliver([tell()], soon()), /self-signed certificate/);
});

test("what can never work is said when it is opened, without the URL", async () => {
  const openWith = (settings: object) =>
    openRabbit({ type: "rabbitmq", url: "amqp://localhost", ...settings }, "queues");
  await assert.rejects(
    openWith({ routingKey: "{{ type" }),
    /routingKey of the sink queues cannot be rendered: .*not closed/,
  );
  await assert.rejects(
    openWith({ exchange: "{{ type | nonsense }}" }),
    /exchange of the sink queues cannot be rendered: undefined filter: nonsense/,
  );
  await assert.rejects(openWith({ routingKey: "{{ tpye }}" }), /a fact has no tpye, but tenant, id, type/);
  for (const url of ["http://me:secret@host", "amqp://me:se%cret@host", "me:secret@host", "amqp://"])
    await assert.rejects(openWith({ url }), {
      message: "url of the sink queues must be amqp:// or amqps:// with a host",
    });
});
