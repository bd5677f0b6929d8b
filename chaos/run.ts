// npm run chaos -- --seed 7 --seconds 60 --workers 3 [--rate 40] [--engine redis|sqs] [--mutant <name>] [--keep]
// npm run chaos -- --check <evidence>
//
// The seed fixes what is sent, what goes wrong and what the provider answers; when exactly, the machine decides. Ends
// with 0 if every guarantee held and the run met what it must meet. With --check it only judges an earlier run again.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { PLACES } from "#domain/handoff.ts";
import { runChaos } from "./chaos.ts";
import { check } from "./checker.ts";
import type { History } from "./history.ts";
import { readHistory } from "./history-file.ts";
import { MUTANTS, type Mutant } from "./mutations.ts";
import { summarize } from "./summary.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(Math.floor(Math.random() * 1e6)) },
    seconds: { type: "string", default: "30" },
    workers: { type: "string", default: "3" },
    rate: { type: "string", default: "40" },
    engine: { type: "string", default: "postgres" },
    mutant: { type: "string" },
    keep: { type: "boolean", default: false },
    check: { type: "string" },
  },
});
/** Start, drain and stop are bounded one by one; this is for what nobody thought of. */
const BESIDES_MS = 480_000;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

function whole(name: "seed" | "seconds" | "workers" | "rate"): number {
  if (!/^\d{1,9}$/.test(values[name])) throw new Error(`--${name} must be a whole number`);
  return Number(values[name]);
}

const isMutant = (name: string): name is Mutant => MUTANTS.some((known) => known === name);

/** True when everything held. */
function judge(history: History, evidence: string): boolean {
  const violations = check(history);
  const summary = summarize(history, violations);
  print(summary);
  writeFileSync(join(evidence, "summary.txt"), `${summary}\n`);
  return violations.length === 0;
}

async function run(): Promise<boolean> {
  const { mutant } = values;
  if (mutant !== undefined && !isMutant(mutant)) throw new Error(`--mutant must be one of ${MUTANTS.join(", ")}`);
  const [seed, seconds, workers, callsPerSecond] = [whole("seed"), whole("seconds"), whole("workers"), whole("rate")];
  setTimeout(
    () => {
      print("the run did not come to an end");
      process.exit(1);
    },
    seconds * 1000 + BESIDES_MS,
  ).unref();
  print(`seed ${seed}`);
  const engine = PLACES.find((name) => name === values.engine);
  if (!engine) throw new Error(`--engine must be one of ${PLACES.join(", ")}`);
  const options = {
    seed,
    seconds,
    workers,
    callsPerSecond,
    engine,
    ...(mutant !== undefined && { mutant }),
    say: print,
  };
  const { history, evidence, remove } = await runChaos(options);
  const hasHeld = judge(history, evidence);
  if (hasHeld && !values.keep) await remove();
  else print(`evidence in ${evidence}`);
  print(hasHeld ? "every guarantee held" : `FAILED; repeat with --seed ${seed} --seconds ${seconds}`);
  return hasHeld;
}

// Children and the database end with us: their owners listen to our exit.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    print(`stopped by ${signal}`);
    process.exit(130);
  });
}

const earlier = values.check;
const hasHeld =
  earlier === undefined ? await run() : judge(await readHistory<History>(join(earlier, "history.jsonl")), earlier);
process.exitCode = hasHeld ? 0 : 1;
