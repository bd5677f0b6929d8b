// The tables that a person reads: medians with their spread, then ratios beside the targets.

import type { Measured } from "./measure.ts";
import type { Figures, Part, Target } from "./scenario.ts";
import { median, shortened } from "./statistics.ts";

type Ratio = { median: number; low: number; high: number };

export type Verdict = Target & {
  part: string;
  /** To `against`, where there is one. */
  ratio: Ratio | undefined;
  /** Medians of the figures that have limits. */
  reached: Figures | undefined;
  /** How far above its floor. */
  excess: number | undefined;
  isMet: boolean;
};

/** The values of a figure, a run each. */
export function valuesOf({ runs }: Measured, figure: string): number[] {
  return runs.map(({ figures }) => figures[figure] ?? Number.NaN);
}

/** Nothing for a target whose subjects were not both measured. */
export function verdicts(parts: Readonly<Record<string, Part>>, all: readonly Measured[]): Verdict[] {
  return Object.entries(parts).flatMap(([name, part]) =>
    part.targets.flatMap((target) => {
      const find = (subject: string, variant = target.variant) =>
        all.find((one) => one.part === name && one.variant === variant && one.subject === subject);
      const { against, above, limits, figure = part.figure.name } = target;
      const own = find(target.subject);
      const other = against === undefined ? undefined : find(against);
      const floor = above && find(target.subject, above.variant);
      if (!own || (against !== undefined && !other) || (above && !floor)) return [];
      const ratio = other && ratioOf(own, other, figure);
      const excess = floor && median(valuesOf(own, figure)) - median(valuesOf(floor, figure));
      const reached =
        limits && Object.fromEntries(Object.keys(limits).map((figure) => [figure, median(valuesOf(own, figure))]));
      const isNear = excess !== undefined && above !== undefined && excess <= above.atMost;
      const isMet = isInRange(ratio?.median, target) || isWithin(reached, limits) || isNear;
      return [{ part: name, ...target, ratio, reached, excess, isMet }];
    }),
  );
}

function ratioOf(own: Measured, other: Measured, figure: string): Ratio {
  const [ours, theirs] = [valuesOf(own, figure), valuesOf(other, figure)];
  // Runs of the same round had the same neighbours: their ratios show how much the noise matters.
  const each = ours.map((value, round) => value / (theirs[round] ?? Number.NaN));
  return { median: median(ours) / median(theirs), low: Math.min(...each), high: Math.max(...each) };
}

const isInRange = (ratio: number | undefined, { atLeast = 0, atMost = Number.POSITIVE_INFINITY }: Target): boolean =>
  ratio !== undefined && ratio >= atLeast && ratio <= atMost;

const isWithin = (reached: Figures | undefined, limits: Figures | undefined): boolean =>
  reached !== undefined && Object.entries(limits ?? {}).every(([figure, most]) => Number(reached[figure]) <= most);

export function printReport(parts: Readonly<Record<string, Part>>, all: readonly Measured[]): void {
  for (const [name, part] of Object.entries(parts)) {
    const own = all.filter((measured) => measured.part === name);
    const variants = [...new Set(own.map(({ variant }) => variant))];
    const subjects = [...new Set(own.map(({ subject }) => subject))];
    const rows = subjects.map((subject) => [
      subject,
      ...variants.map((variant) => {
        const found = own.find((measured) => measured.variant === variant && measured.subject === subject);
        return found ? describe(valuesOf(found, part.figure.name), part.figure.unit) : "";
      }),
    ]);
    console.log(`\n${part.title}: median (lowest to highest of ${own[0]?.runs.length ?? 0})\n`);
    printTable(["", ...variants], rows);
    for (const { variant, subject, runs } of own) {
      const others = Object.keys(runs[0]?.figures ?? {}).filter((figure) => figure !== part.figure.name);
      const medians = others.map((figure) => {
        return `${figure} ${shown(median(runs.map(({ figures }) => figures[figure] ?? Number.NaN)))}`;
      });
      if (medians.length > 0) console.log(`  ${variant}, ${subject}: ${medians.join(", ")}`);
    }
  }
  const rows = verdicts(parts, all).map((verdict) => [
    `${verdict.part}, ${verdict.variant}`,
    nameOf(verdict),
    measuredOf(verdict),
    wantedOf(verdict),
    verdict.isMet ? "met" : "MISSED",
  ]);
  console.log("\nTargets\n");
  printTable(["", "of", "measured", "target", ""], rows);
}

const shown = (value: number): string => shortened(value).toLocaleString("en");

const nameOf = ({ subject, against, figure }: Verdict): string =>
  `${subject}${against === undefined ? "" : ` / ${against}`}${figure === undefined ? "" : `, ${figure}`}`;

function measuredOf({ ratio, reached, excess, above }: Verdict): string {
  const multiple = ratio && `${ratio.median.toFixed(2)} × (${ratio.low.toFixed(2)} to ${ratio.high.toFixed(2)})`;
  const figures = Object.entries(reached ?? {}).map(([figure, value]) => `${figure} ${shown(value)}`);
  const over = excess === undefined ? undefined : `${shown(excess)} above "${above?.variant}"`;
  return [multiple, ...figures, over].filter((text) => text !== undefined).join(", ");
}

function wantedOf({ atLeast, atMost, limits, above }: Verdict): string {
  const multiples = [
    ...(atLeast === undefined ? [] : [`at least ${atLeast} ×`]),
    ...(atMost === undefined ? [] : [`at most ${atMost} ×`]),
  ];
  const figures = Object.entries(limits ?? {}).map(([figure, most]) => `${figure} at most ${shown(most)}`);
  const over = above ? `at most ${shown(above.atMost)} above` : "";
  return [multiples.join(", "), figures.join(" and "), over].filter((text) => text !== "").join(", or ");
}

function describe(values: readonly number[], unit: string): string {
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
