// What holds between brokers and Carillon, judged by what a run left behind.

import { groupBy, type Report, type Violation } from "../history.ts";
import { type Arrivals, type BrokerHistory, kindOf, type Told } from "./history.ts";

type BrokerCheck = { guarantee: string; promise: string; run(history: BrokerHistory, report: Report): void };

const once: BrokerCheck = {
  guarantee: "G23",
  promise: "each message of a topic is accepted once or refused once, and its partition goes on behind it",
  run({ written, accepted, refused, offsets, drainedAt, failing }, report) {
    const places = groupBy(written, ({ key }) => key);
    const made = groupBy(accepted, ({ key }) => key);
    for (const [key, at] of places) {
      const [is, where] = [made.get(key)?.length ?? 0, at.map(placeOf).join(" ")];
      const expected = { good: at.length, same: 1, poison: 0, empty: 0 }[kindOf(key)];
      if (is < expected) report("a message was never accepted", `${key} at ${where}: ${is} of ${expected}`);
      if (is > expected)
        report("a message was accepted more than once", `${key} at ${where}: ${made.get(key)?.map(({ id }) => id)}`);
    }
    for (const key of made.keys()) if (!places.has(key)) report("accepted what nobody wrote", key);

    const refusals = groupBy(refused, (place) => place);
    for (const message of written) {
      const [place, isPoison] = [placeOf(message), kindOf(message.key) === "poison"];
      const times = refusals.get(place)?.length ?? 0;
      if (isPoison && times === 0) report("poison was not refused", `${message.key} at ${place}`);
      if (isPoison && times > 1) report("poison was refused more than once", `${message.key} at ${place}: ${times}`);
      if (!isPoison && times > 0) report("a request was refused", `${message.key} at ${place}`);
    }

    const kept = new Map(offsets.map(({ topic, partition, next }) => [`${topic}/${partition}`, next]));
    for (const [partition, messages] of groupBy(written, (one) => `${one.topic}/${one.partition}`)) {
      const end = Math.max(...messages.map(({ offset }) => offset)) + 1;
      const next = kept.get(partition) ?? 0;
      if (next !== end) report("a partition does not stand at its end", `${partition}: ${next} of ${end}`);
    }
    if (drainedAt === undefined) report("it never came to an end", failing.join("; ") || "nothing is said to fail");
  },
};

const arrived: BrokerCheck = {
  guarantee: "G24",
  promise: "each fact is at each sink at least once, under its id, first told in order per notification",
  run({ accepted, facts, arrivals, refusedFacts }, report) {
    const known = new Map(facts.map((fact) => [fact.id, fact]));
    for (const { id } of accepted) {
      if (!known.has(`${id}:0`)) report("what was accepted has no fact", id);
    }
    for (const refused of refusedFacts) report("a sink refused a fact", refused);
    for (const sink of arrivals) judgeSink(sink, known, report);
  },
};

function judgeSink({ sink, isSet, facts }: Arrivals, known: ReadonlyMap<string, Told>, report: Report): void {
  const there = new Set(facts.map(({ id }) => id));
  for (const { id, type } of known.values()) {
    if (!there.has(id)) report("a fact never arrived", `${sink}: ${type} ${id}`);
  }
  if (isSet && there.size < facts.length)
    report("a set has a fact twice", `${sink}: ${facts.length - there.size} too many`);
  const told = new Set<string>();
  const last = new Map<string, Told>();
  for (const { id, type } of facts) {
    const fact = known.get(id);
    if (fact?.type !== type) report("a sink was told what did not happen", `${sink}: ${type} ${id}`);
    if (!fact || isSet || told.has(id)) continue;
    told.add(id);
    const before = last.get(fact.notificationId);
    if (before && before.number > fact.number)
      report("facts of one notification came out of order", `${sink}: ${id} after ${before.id}`);
    last.set(fact.notificationId, fact);
  }
}

/** Faults that a run must have met, or it has shown nothing. */
export const MET: readonly string[] = [
  "kill carillon",
  "kill kafka",
  "kill rabbitmq",
  "cut kafka",
  "cut rabbitmq",
  "silence rabbitmq",
  "cut accept",
  "cut cursor",
];

const visits: BrokerCheck = {
  guarantee: "visits",
  promise: "the run met what it must meet",
  run({ faults, written, sent, rebalances }, report) {
    for (const kind of MET) if (!faults.some((fault) => fault.kind === kind)) report("not met", kind);
    for (const kind of ["good", "same", "poison"] as const) {
      if (!written.some(({ key }) => kindOf(key) === kind)) report("not met", `${kind} messages`);
    }
    if (rebalances === 0) report("not met", "rebalances");
    const there = new Set(written.map(({ key }) => key));
    for (const { key, isConfirmed } of sent) {
      if (isConfirmed && !there.has(key)) report("Kafka lost what it had confirmed", key);
    }
  },
};

export const BROKER_CHECKS: readonly BrokerCheck[] = [once, arrived, visits];

export function checkBrokers(history: BrokerHistory): Violation[] {
  const violations: Violation[] = [];
  for (const { guarantee, run } of BROKER_CHECKS) {
    run(history, (rule, example) => void violations.push({ guarantee, rule, example }));
  }
  return violations;
}

const placeOf = ({ topic, partition, offset }: { topic: string; partition: number; offset: number }): string =>
  `${topic}/${partition}/${offset}`;
