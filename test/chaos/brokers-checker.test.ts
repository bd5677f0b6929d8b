// A checker that cannot fail is worthless: a small history with brokers that is in order, and for each rule a way to break it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkBrokers } from "../../chaos/brokers/checks.ts";
import type { BrokerHistory } from "../../chaos/brokers/history.ts";

const CHECKS = join(import.meta.dirname, "..", "..", "chaos", "brokers", "checks.ts");
const MET = [
  ...["kill carillon", "kill kafka", "kill rabbitmq", "cut kafka", "cut rabbitmq", "silence rabbitmq"],
  ...["cut accept", "cut cursor"],
];
const fact = (id: string, number: number, type: string) => ({
  id: `${id}:${number}`,
  notificationId: id,
  number,
  type,
});

function inOrder(): BrokerHistory {
  const facts = [fact("a", 0, "accepted"), fact("b", 0, "accepted"), fact("a", 4, "sent"), fact("b", 9, "failed")];
  const [a0, b0, a4, b9] = facts.map(({ id, type }) => ({ id, type })) as [Told, Told, Told, Told];
  const keys = ["good 1", "same 2", "poison 3", "empty 4", "same 2"];
  return {
    ...{ seed: 1, seconds: 1, mutant: undefined, rebalances: 2, quietAt: 1, drainedAt: 2, failing: [] },
    sent: [...keys.map((key) => ({ key, isConfirmed: true })), { key: "good 9", isConfirmed: false }],
    written: keys.map((key, offset) => ({ topic: "orders", partition: 0, offset, key })),
    accepted: [
      { id: "a", key: "good 1" },
      { id: "b", key: "same 2" },
    ],
    refused: ["orders/0/2"],
    refusedFacts: [],
    offsets: [{ topic: "orders", partition: 0, next: 5 }],
    facts,
    // A page that was not confirmed comes again, as far as it came and whole.
    arrivals: [
      { sink: "queue", isSet: false, facts: [a0, b0, a0, b0, a4, b9] },
      { sink: "table", isSet: true, facts: [b9, a4, b0, a0] },
    ],
    faults: MET.map((kind) => ({ kind, at: 0 })),
  };
}
type Told = { id: string; type: string };

const queue = ({ arrivals: [first] }: BrokerHistory): Told[] => first?.facts as Told[];

const BROKEN: { [rule: string]: (history: BrokerHistory) => void } = {
  "a message was never accepted": ({ accepted }) => void accepted.shift(),
  "a message was accepted more than once": ({ accepted, facts, arrivals }) => {
    accepted.push({ id: "c", key: "same 2" });
    facts.push(fact("c", 0, "accepted"));
    for (const { facts: told } of arrivals) told.push({ id: "c:0", type: "accepted" });
  },
  "accepted what nobody wrote": ({ accepted, facts, arrivals }) => {
    accepted.push({ id: "c", key: "good 7" });
    facts.push(fact("c", 0, "accepted"));
    for (const { facts: told } of arrivals) told.push({ id: "c:0", type: "accepted" });
  },
  "poison was not refused": ({ refused }) => void refused.pop(),
  "poison was refused more than once": ({ refused }) => void refused.push("orders/0/2"),
  "a request was refused": ({ refused }) => void refused.push("orders/0/1"),
  "a partition does not stand at its end": ({ offsets }) => void offsets.pop(),
  "it never came to an end": (history) => {
    history.drainedAt = undefined;
  },
  "what was accepted has no fact": ({ facts, arrivals }) => {
    facts.splice(1, 1);
    for (const one of arrivals) one.facts = one.facts.filter(({ id }) => id !== "b:0");
  },
  "a sink refused a fact": ({ refusedFacts }) => void refusedFacts.push("a:4 sent"),
  "a fact never arrived": (history) => void queue(history).pop(),
  "a set has a fact twice": ({ arrivals }) => void arrivals[1]?.facts.push({ id: "a:0", type: "accepted" }),
  "a sink was told what did not happen": (history) => void queue(history).push({ id: "a:5", type: "sent" }),
  "facts of one notification came out of order": ({ arrivals: [first] }) => void first?.facts.reverse(),
  "not met": ({ faults }) => void faults.pop(),
  "Kafka lost what it had confirmed": ({ sent }) => void sent.push({ key: "good 8", isConfirmed: true }),
};

test("a history with brokers that is in order breaks nothing", () => {
  assert.deepEqual(checkBrokers(inOrder()), []);
});

for (const [rule, breakIt] of Object.entries(BROKEN)) {
  test(`noticed: ${rule}`, () => {
    const history = inOrder();
    breakIt(history);
    assert.deepEqual([...new Set(checkBrokers(history).map((violation) => violation.rule))], [rule]);
  });
}

test("every rule of the checks is broken here", () => {
  const rules = [...readFileSync(CHECKS, "utf8").matchAll(/\breport\(\s*"([^"]+)"/g)].map(([, rule]) => rule);
  assert.deepEqual([...new Set(rules)].sort(), Object.keys(BROKEN).sort());
});
