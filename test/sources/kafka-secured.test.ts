// The Kafka source where the broker wants TLS and a password.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CERTIFICATE } from "../support/certificate.ts";
import { assertAccepted, kafkaUnderTest, LONG_MS, message, readingService } from "../support/kafka-source.ts";
import { KAFKA_USER } from "../support/servers/kafka.ts";
import { until } from "../support/until.ts";

const sasl = { mechanism: "PLAIN" as const, ...KAFKA_USER };
const { kafka, skip } = await kafkaUnderTest({ secured: true }, { tls: { ca: CERTIFICATE }, sasl });

test("by TLS and with its password it reads; with a wrong one it says so, and goes on trying", { skip }, async () => {
  await kafka.createTopic("secret");
  await kafka.writer.send("secret", [message(0), message(1)]);
  const running = await readingService({
    secret: kafka.settings("secret"),
    wrong: kafka.settings("secret", { sasl: { ...sasl, password: "a wrong one" } }),
    plain: { ...kafka.settings("secret", { sasl }), tls: false },
  });
  try {
    await assertAccepted(running, 2);
    const failing = async (name: string) => {
      const { rows } = await running.db.query(
        "select error from carillon.connectors where name = $1 and error is not null",
        [name],
      );
      return rows[0]?.error as string | undefined;
    };
    const said = await until(() => failing("wrong"), LONG_MS);
    assert.match(said, /authentication/i);
    assert.doesNotMatch(said, /a wrong one/);
    await until(() => failing("plain"), LONG_MS);
  } finally {
    await running.stop();
  }
});
