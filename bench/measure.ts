// Runs the cases. Repeats are the outer loop and cases the inner one, so that whatever else the
// machine is doing falls on all of them alike.
//
// A run during which others used more than `maxForeignCores` is done again, twice at most, and the
// least disturbed of the tries is kept; how disturbed it was stays in the record.

import { accountCpu, type CpuUse, waitForQuiet } from "./cpu.ts";
import { profiled } from "./profile.ts";
import type { Case, Figures, Part, World } from "./scenario.ts";
import { shortened } from "./statistics.ts";

export type MeasureOptions = {
  repeats: number;
  /** How long to wait for an idle machine before a run. */
  quietMs: number;
  maxForeignCores: number;
};

export type Run = { at: string; figures: Figures; cores: CpuUse };
export type Measured = { part: string; variant: string; subject: string; settings: string; runs: Run[] };

const MAX_TRIES = 3;

export async function measure(
  parts: Readonly<Record<string, Part>>,
  world: World,
  options: MeasureOptions,
): Promise<Measured[]> {
  const planned = Object.entries(parts).flatMap(([name, part]) =>
    part.cases(world).map((given) => {
      const { variant, subject, settings } = given;
      const measured: Measured = { part: name, variant, subject, settings, runs: [] };
      return { given, measured, figure: part.figure };
    }),
  );
  for (let repeat = 1; repeat <= options.repeats; repeat++) {
    for (const { given, measured, figure } of planned) {
      if (given.isOnce && repeat > 1) continue;
      const label = `${measured.part}, ${given.variant}, ${given.subject}`;
      const run = await leastDisturbed(given, label, world, options);
      measured.runs.push(run);
      const value = `${shortened(run.figures[figure.name] ?? Number.NaN).toLocaleString("en")}${figure.unit}`;
      console.error(`${repeat}/${options.repeats}  ${label}: ${value}  (cores: ${describe(run.cores)})`);
    }
  }
  return planned.map(({ measured }) => measured);
}

async function leastDisturbed(given: Case, label: string, world: World, options: MeasureOptions): Promise<Run> {
  let kept: Run | undefined;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const run = await runOnce(given, label, world, options.quietMs);
    if (!kept || Number(run.cores.others) < Number(kept.cores.others)) kept = run;
    if (Number(run.cores.others) <= options.maxForeignCores) break;
  }
  return kept as Run;
}

async function runOnce(given: Case, label: string, world: World, quietMs: number): Promise<Run> {
  const prepared = await given.prepare();
  try {
    await waitForQuiet(quietMs);
    // The garbage of getting ready, and of whoever ran before, is not this run's.
    globalThis.gc?.();
    const at = new Date().toISOString();
    const closeAccount = accountCpu({ ...world.servers, ...prepared.processes });
    const measured = await profiled(world.profileDirectory, label, () => prepared.measure());
    const cores = closeAccount();
    const figures = Object.fromEntries(Object.entries(measured).map(([name, value]) => [name, shortened(value)]));
    return { at, figures, cores };
  } finally {
    await prepared.finish();
  }
}

const describe = (cores: CpuUse): string =>
  Object.entries(cores)
    .filter(([name, used]) => used >= 0.01 || name === "others")
    .map(([name, used]) => `${name} ${used}`)
    .join(", ");
