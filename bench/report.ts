// The tables that a person reads: medians with their spread, then ratios beside the targets.

import type { Measured } from "./measure.ts";
import type { Part, Target } from "./scenario.ts";
import { median, shortened } from "./statistics.ts";

export type Verdict = Target & { part: string; ratio: number; low: number; high: number; isMet: boolean };

/** The values of a part's figure, a run each. */
export function valuesOf({ runs }: Measured, { figure }: Part): number[] {
  return runs.map(({ figures }) => figures[figure.name] ?? Number.NaN);
}

/** Nothing for a target whose subjects were not both measured. */
export function verdicts(parts: Readonly<Record<string, Part>>, all: readonly Measured[]): Verdict[] {
  return Object.entries(parts).flatMap(([name, part]) =>
    part.targets.flatMap((target) => {
      const find = (subject: string) =>
        all.find((one) => one.part === name && one.variant === target.variant && one.subject === subject);
      const [own, other] = [find(target.subject), find(target.against)];
      if (!own || !other) return [];
      const [ours, theirs] = [valuesOf(own, part), valuesOf(other, part)];
      const ratio = median(ours) / median(theirs);
      // Runs of the same round had the same neighbours: their ratios show how much the noise matters.
      const each = ours.map((value, round) => value / (theirs[round] ?? Number.NaN));
      const [low, high] = [Math.min(...each), Math.max(...each)];
      return [{ part: name, ...target, ratio, low, high, isMet: ratio >= target.atLeast }];
    }),
  );
}

export function printReport(parts: Readonly<Record<string, Part>>, all: readonly Measured[]): void {
  for (const [name, part] of Object.entries(parts)) {
    const own = all.filter((measured) => measured.part === name);
    const variants = [...new Set(own.map(({ variant }) => variant))];
    const subjects = [...new Set(own.map(({ subject }) => subject))];
    const rows = subjects.map((subject) => [
      subject,
      ...variants.map((variant) => {
        const found = own.find((measured) => measured.variant === variant && measured.subject === subject);
        return found ? describe(valuesOf(found, part), part.figure.unit) : "";
      }),
    ]);
    console.log(`\n${part.title}: median (lowest to highest of ${own[0]?.runs.length ?? 0})\n`);
    printTable(["", ...variants], rows);
    for (const { variant, subject, runs } of own) {
      const others = Object.keys(runs[0]?.figures ?? {}).filter((figure) => figure !== part.figure.name);
      const shown = others.map((figure) => {
        const value = shortened(median(runs.map(({ figures }) => figures[figure] ?? Number.NaN)));
        return `${figure} ${value.toLocaleString("en")}`;
      });
      if (shown.length > 0) console.log(`  ${variant}, ${subject}: ${shown.join(", ")}`);
    }
  }
  const rows = verdicts(parts, all).map(({ part, variant, subject, against, ratio, low, high, atLeast, isMet }) => [
    `${part}, ${variant}`,
    `${subject} / ${against}`,
    `${ratio.toFixed(2)} × (${low.toFixed(2)} to ${high.toFixed(2)})`,
    `at least ${atLeast} ×`,
    isMet ? "met" : "MISSED",
  ]);
  console.log("\nTargets\n");
  printTable(["", "ratio of", "measured", "target", ""], rows);
}

function describe(values: readonly number[], unit: string): string {
  const shown = (value: number) => shortened(value).toLocaleString("en");
  return `${shown(median(values))}${unit} (${shown(Math.min(...values))} to ${shown(Math.max(...values))})`;
}

function printTable(header: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("   ")}`.trimEnd();
  console.log(line(header));
  console.log(line(widths.map((width) => "-".repeat(width))));
  for (const row of rows) console.log(line(row));
}
