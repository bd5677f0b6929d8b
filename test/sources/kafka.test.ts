// The Kafka source with a real broker and a whole Carillon: what was produced is accepted, each once.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { SettingsOfSource } from "#sources/settings.ts";
import { readTopic, type ToSend, type Writer, writerTo } from "../support/kafka-topic.ts";
import { acceptedBodies, request } from "../support/keeping.ts";
import { type Kafka, NO_KAFKA, startKafka } from "../support/servers/kafka.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";

const kafka: Kafka | undefined = await startKafka();
const skip = kafka === undefined && NO_KAFKA;
const LONG_MS = 120_000;
let writer: Writer;
before(() => {
  if (kafka) writer = writerTo({ bootstrapBrokers: [kafka.bootstrap] });
});
after(async () => {
  await writer?.close();
  await kafka?.stop();
});

type Settings = SettingsOfSource<"kafka">;
const settingsOf = (topic: string, more: Partial<Settings> = {}): Settings => ({
  type: "kafka",
  brokers: [kafka?.bootstrap as string],
  topic,
  tenant: "default",
  ...more,
});
const service = (sources: { [name: string]: Settings }, more: object = {}): Promise<Service> =>
  startService({ roles: ["api", "source"], sources, ...more });
const message = (n: number, more: Partial<ToSend> = {}): ToSend => ({ value: JSON.stringify(request(n)), ...more });
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);
const bodiesOf = (count: number) => numbers(0, count).map((n) => `number ${n}`);

async function untilAccepted({ db }: Service, count: number): Promise<string[]> {
  return until(async () => {
    const bodies = await acceptedBodies(db);
    return bodies.length >= count ? bodies : undefined;
  }, LONG_MS);
}

test("what a topic holds and what comes later is accepted in order; poison among it is refused, listed and told to a topic", {
  skip,
}, async () => {
  await kafka?.createTopic("first");
  await kafka?.createTopic("first-refused");
  await writer.send("first", [
    message(0),
    { value: "poison", headers: { who: "me" } },
    message(1),
    { value: null, key: "k" },
  ]);
  const running = await service({ first: settingsOf("first", { refusals: "first-refused" }) });
  try {
    assert.deepEqual(await untilAccepted(running, 2), bodiesOf(2));
    await writer.send("first", [message(2), { value: JSON.stringify(request("x".repeat(300_000))) }, message(3)]);
    assert.deepEqual(await untilAccepted(running, 4), bodiesOf(4));
    const { rows } = await running.db.query("select place, code from carillon.refusals order by id");
    assert.deepEqual(
      rows.map(({ place, code }) => [place, code]),
      [
        ["first/0/1", "MALFORMED_JSON"],
        ["first/0/5", "PAYLOAD_TOO_LARGE"],
      ],
    );
    const [poison, large] = await readTopic({ bootstrapBrokers: [kafka?.bootstrap as string] }, "first-refused", 2);
    assert.equal(poison?.value, "poison");
    assert.deepEqual(
      [poison?.headers.who, poison?.headers["carillon-code"], poison?.headers["carillon-place"]],
      ["me", "MALFORMED_JSON", "first/0/1"],
    );
    assert.match(poison?.headers["carillon-faults"] ?? "", /not JSON/);
    assert.deepEqual([large?.value, large?.headers["carillon-place"]], [undefined, "first/0/5"]);
    await until(async () => {
      const { rowCount } = await running.db.query("select from carillon.refusals where is_untold");
      return rowCount === 0 ? true : undefined;
    });
  } finally {
    await running.stop();
  }
});
