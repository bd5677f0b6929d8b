// Kafka in, RabbitMQ, Kafka and ClickHouse out, through a short storm in which all of them are killed and cut off.
//
// Set CARILLON_TEST_SEED to repeat the choices of an earlier run; `npm run chaos:brokers` takes longer ones.

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkBrokers } from "../../chaos/brokers/checks.ts";
import { runBrokers } from "../../chaos/brokers/run.ts";
import { summarizeBrokers } from "../../chaos/brokers/summary.ts";

const SEED = Number(process.env.CARILLON_TEST_SEED ?? 7);

test("each message is accepted once and each fact arrives in order while brokers and processes are killed", {
  timeout: 900_000,
}, async (t) => {
  const ran = await runBrokers({ seed: SEED, seconds: 6, processes: 2, topics: 2, perSecond: 100 });
  if (!ran) return t.skip("there is no Kafka or no RabbitMQ, and they cannot be installed here");
  const { history, evidence, remove } = ran;
  const violations = checkBrokers(history);
  const summary = `${summarizeBrokers(history, violations)}\nevidence in ${evidence}`;
  for (const line of summary.split("\n")) t.diagnostic(line);
  assert.deepEqual(violations, [], summary);
  await remove();
});
