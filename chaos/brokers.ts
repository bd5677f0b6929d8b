// npm run chaos:brokers -- --seed 7 --seconds 30 [--processes 3] [--topics 2] [--rate 100] [--mutant <name>] [--keep]
// npm run chaos:brokers -- --check <evidence>
//
// Kafka in, RabbitMQ, Kafka and ClickHouse out, while all of them are killed. The seed fixes what is written and what goes wrong; when exactly, the
// machine decides. Ends with 0 if every guarantee held and the run met what it must meet.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { checkBrokers } from "./brokers/checks.ts";
import type { BrokerHistory } from "./brokers/history.ts";
import { BROKER_MUTANTS, type BrokerMutant } from "./brokers/mutations.ts";
import { runBrokers } from "./brokers/run.ts";
import { summarizeBrokers } from "./brokers/summary.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(Math.floor(Math.random() * 1e6)) },
    seconds: { type: "string", default: "30" },
    processes: { type: "string", default: "3" },
    topics: { type: "string", default: "2" },
    rate: { type: "string", default: "100" },
    mutant: { type: "string" },
    keep: { type: "boolean", default: false },
    check: { type: "string" },
  },
});

const print = (line: string): void => void process.stdout.write(`${line}\n`);

function whole(name: "seed" | "seconds" | "processes" | "topics" | "rate"): number {
  if (!/^\d{1,9}$/.test(values[name])) throw new Error(`--${name} must be a whole number`);
  return Number(values[name]);
}

const isMutant = (name: string): name is BrokerMutant => BROKER_MUTANTS.some((known) => known === name);

/** True when everything held. */
function judge(history: BrokerHistory, evidence: string): boolean {
  const violations = checkBrokers(history);
  const summary = summarizeBrokers(history, violations);
  print(summary);
  writeFileSync(join(evidence, "summary.txt"), `${summary}\n`);
  return violations.length === 0;
}

async function run(): Promise<boolean> {
  const { mutant } = values;
  if (mutant !== undefined && !isMutant(mutant))
    throw new Error(`--mutant must be one of ${BROKER_MUTANTS.join(", ")}`);
  const [seed, seconds, processes, topics] = [whole("seed"), whole("seconds"), whole("processes"), whole("topics")];
  print(`seed ${seed}`);
  const ran = await runBrokers({
    ...{ seed, seconds, processes, topics, perSecond: whole("rate"), ...(mutant && { mutant }), say: print },
  });
  if (!ran) throw new Error("Kafka or RabbitMQ cannot be had here");
  const hasHeld = judge(ran.history, ran.evidence);
  if (hasHeld && !values.keep) await ran.remove();
  else print(`evidence in ${ran.evidence}`);
  print(hasHeld ? "every guarantee held" : `FAILED; repeat with --seed ${seed} --seconds ${seconds}`);
  return hasHeld;
}

// Children and servers end with us: their owners listen to our exit.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    print(`stopped by ${signal}`);
    process.exit(130);
  });
}

const earlier = values.check;
const hasHeld =
  earlier === undefined
    ? await run()
    : judge(JSON.parse(readFileSync(join(earlier, "history.json"), "utf8")) as BrokerHistory, earlier);
process.exitCode = hasHeld ? 0 : 1;
