// node chaos/mutants.ts [--seeds 1,2,3] [--seconds 20] [--only no-new-token,no-lease-margin]
//
// Would the checker notice? Runs deliberately broken versions of the product and prints how many runs caught each. The
// product as it is runs along under every seed: where that fails, the catch of a mutant says nothing.

import { parseArgs } from "node:util";
import type { PlaceName } from "#domain/handoff.ts";
import { type ChaosOptions, runChaos } from "./chaos.ts";
import { check } from "./checker.ts";
import { MUTANTS, MUTATIONS, type Mutant, type Mutation } from "./mutations.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1,2,3" },
    seconds: { type: "string", default: "20" },
    only: { type: "string" },
  },
});
const EXAMPLES = 5;
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const only = values.only?.split(",");
const unknown = only?.filter((name) => !MUTANTS.some((known) => known === name)) ?? [];
if (unknown.length > 0) throw new Error(`there is no mutant ${unknown}; known are ${MUTANTS}`);
const mutants = MUTANTS.filter((name) => only?.includes(name) ?? true);
const seeds = values.seeds.split(",").map(Number);
const seconds = Number(values.seconds);

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    print(`stopped by ${signal}`);
    process.exit(130);
  });
}

/** The guarantees that a run broke; what it merely did not meet is no catch. Of the product as it is the evidence stays. */
async function brokenIn(options: Pick<ChaosOptions, "seed" | "mutant" | "engine">): Promise<string[]> {
  const { history, evidence, remove } = await runChaos({ workers: 3, seconds, ...options });
  const broken = check(history).filter(({ guarantee }) => guarantee !== "visits");
  if (options.mutant === undefined && broken.length > 0) {
    for (const { guarantee, rule, example } of broken.slice(0, EXAMPLES)) print(`${guarantee} ${rule}: ${example}`);
    print(`evidence in ${evidence}`);
  } else await remove();
  return [...new Set(broken.map(({ guarantee }) => guarantee))];
}

const engineOf = (mutant: Mutant): PlaceName => (MUTATIONS[mutant] as Mutation).engine ?? "postgres";

const caught = new Map<Mutant, number>(mutants.map((mutant) => [mutant, 0]));
let isSound = true;
for (const seed of seeds) {
  for (const engine of new Set(mutants.map(engineOf))) {
    const own = await brokenIn({ seed, engine });
    isSound &&= own.length === 0;
    print(`seed ${seed}: the product as it is on ${engine} ${own.length === 0 ? "holds" : `breaks ${own.join(" ")}`}`);
  }
  for (const mutant of mutants) {
    const broken = await brokenIn({ seed, mutant, engine: engineOf(mutant) });
    const hasExpected = broken.includes(MUTATIONS[mutant].expected);
    if (broken.length > 0) caught.set(mutant, (caught.get(mutant) ?? 0) + 1);
    print(
      `seed ${seed}: ${mutant} ${broken.length > 0 ? `caught by ${broken.join(" ")}` : "NOT CAUGHT"}${hasExpected ? "" : `, not by ${MUTATIONS[mutant].expected}`}`,
    );
  }
}
for (const [mutant, count] of caught) print(`${mutant.padEnd(22)} caught in ${count} of ${seeds.length} runs`);
if (!isSound) print("the product itself breaks guarantees: the figures above say nothing");
process.exitCode = isSound && [...caught.values()].every((count) => count > 0) ? 0 : 1;
