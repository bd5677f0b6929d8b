// npm run models [-- NAME…]: verifies the models of models/*.pml, and that each of their rules is needed. docs/models.md.

import { findTools, type Model, NO_SPIN, readModels, verify } from "../test/support/models.ts";

const asked = process.argv.slice(2);
const models = readModels().filter(({ name }) => asked.length === 0 || asked.includes(name));
const tools = findTools();
if (!tools || models.length === 0) {
  console.error(tools ? `there is no model ${asked.join(", ")}` : NO_SPIN);
  process.exit(2);
}

const failures: string[] = [];
const lines: string[][] = [["model", "without", "verdict", "seconds"]];

async function line(model: Model, mutant?: string): Promise<void> {
  const startedAt = performance.now();
  const { broke, states, unreached } = await verify(
    tools as NonNullable<typeof tools>,
    model,
    mutant ? { mutant } : {},
  );
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const isRight = mutant ? broke !== undefined : broke === undefined && unreached.length === 0;
  if (!isRight) failures.push(mutant ? `${model.name} holds without ${mutant}` : `${model.name} does not hold`);
  const verdict = mutant
    ? (broke && `caught: ${broke}`) || "NOT CAUGHT"
    : (broke && `BROKEN: ${broke}`) || `holds, ${Math.round(states).toLocaleString("en")} states`;
  lines.push([
    model.name,
    mutant ?? "",
    [verdict, ...unreached.map((one) => `NEVER HAPPENS: ${one}`)].join("; "),
    seconds,
  ]);
}

for (const model of models) {
  await line(model);
  for (const { mutant } of model.rules) await line(model, mutant);
}

const widths = [0, 1].map((n) => Math.max(...lines.map((cells) => cells[n]?.length ?? 0)));
for (const [name = "", mutant = "", verdict = "", seconds = ""] of lines)
  console.log(`${name.padEnd(widths[0] ?? 0)}  ${mutant.padEnd(widths[1] ?? 0)}  ${seconds.padStart(7)}  ${verdict}`);
for (const failure of failures) console.error(`FAILED: ${failure}`);
process.exitCode = failures.length > 0 ? 1 : 0;
