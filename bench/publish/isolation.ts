// What the results of `isolation` become in the documentation: three plots and their tables.
//
// From bench/results/isolation.json, and from isolation.before.json for 0.3.0, which had no walls.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Kept, readResults } from "../results.ts";
import type { Figures } from "../scenario.ts";
import { type DotPlot, drawDotPlot, type Row, type Tone, timeOf } from "./dot-plot.ts";

const FORMER = "0.3.0";
const AXIS =
  "wait, on a logarithmic scale: the bar goes from the median to the 99th percentile, the figure is the 99th";

/** A part as it is shown: what its variants are called, and in which order. */
type Shown = Omit<DotPlot, "groups" | "axis"> & {
  part: string;
  variants: Readonly<Record<string, string>>;
};

const LANES: Shown = {
  part: "lanes",
  title: "Urgent ones on a worker that is full of normal ones",
  subtitle: "About twenty urgent ones a second; twenty thousand normal ones are ready all the time",
  variants: {
    idle: "Idle worker: nothing else to do",
    "1 ms": "Normal sends take 1 ms",
    "50 ms": "Normal sends take 50 ms",
    "1 s": "Normal sends take 1 s",
    "10 s": "Normal sends take 10 s",
  },
};
const TENANTS: Shown = {
  part: "tenants",
  title: "Tenant B beside tenant A's 200,000",
  subtitle: "About twenty of B's a second, in the same lane and for the same provider as A's",
  limit: { ms: 500, name: "promised: 500 ms" },
  variants: {
    "B alone": "B alone",
    "A's take 50 ms": "A's sends take 50 ms",
    "A's take 10 s": "A's sends take 10 s",
    "A's become due at once": "A's become due at one instant, and take 50 ms",
  },
};
const RECEIVERS: Shown = {
  part: "receivers",
  title: "Healthy receivers beside some that hang",
  subtitle: "50 mails and 50 webhooks a second; then 200 webhooks a second to 1,000 hosts; one tenant, one lane",
  variants: {
    "mail, no such host": "Mail, and no host that hangs",
    "mail beside a host that hangs 10 s": "Mail, while a webhook's host takes 10 s for each",
    "900 hosts beside 100 that hang": "900 hosts' webhooks, while 100 hosts never answer",
  },
};

const DOCS = new URL("../../docs/", import.meta.url);

/** Answers with the files it wrote. */
export function publishIsolation(): string[] {
  const now = readResults("isolation");
  const former = readResults("isolation.before")
    .filter(({ subject }) => subject === "carillon")
    .map((one) => ({ ...one, subject: FORMER }));
  const all = [...now, ...former];
  mkdirSync(new URL("images/", DOCS), { recursive: true });
  const plots = [LANES, TENANTS, RECEIVERS].map((shown) => {
    const file = fileURLToPath(new URL(`images/isolation-${shown.part}.svg`, DOCS));
    writeFileSync(file, drawDotPlot({ ...shown, axis: AXIS, groups: groupsOf(shown, all) }));
    return file;
  });
  const tables = [LANES, TENANTS, RECEIVERS].map((shown) =>
    replaceBlock("isolation.md", shown.part, tableOf(shown, all, wholeFigure)),
  );
  const short = [LANES, TENANTS, RECEIVERS].map((shown) => tableOf(shown, all, shortFigure)).join("\n");
  return [...plots, ...new Set([...tables, replaceBlock("performance.md", "isolation", short)])];
}

const figuresOf = (all: readonly Kept[], part: string, variant: string, subject: string): Figures | undefined =>
  all.find((one) => one.part === part && one.variant === variant && one.subject === subject)?.runs[0]?.figures;

const subjectsOf = (all: readonly Kept[], part: string): string[] =>
  [...new Set(["carillon", FORMER, ...all.map(({ subject }) => subject)])].filter((subject) =>
    all.some((one) => one.part === part && one.subject === subject),
  );

const nameOf = (subject: string): string => (subject === FORMER ? `carillon ${FORMER}` : subject);

const toneOf = (subject: string): Tone => (subject === "carillon" ? "ours" : subject === FORMER ? "former" : "other");

function groupsOf({ part, variants }: Shown, all: readonly Kept[]): DotPlot["groups"] {
  return Object.entries(variants).map(([variant, name]) => ({
    name,
    rows: subjectsOf(all, part).flatMap((subject): Row[] => {
      const figures = figuresOf(all, part, variant, subject);
      if (!figures) return [];
      const { p50Ms = 0, p99Ms = 0, samples = 0, unbegun = 0 } = figures;
      const share = Math.ceil((unbegun / samples) * 100);
      const figure = unbegun > 0 ? `over ${timeOf(p99Ms)}; ${share} % not begun` : timeOf(p99Ms);
      return [{ name: nameOf(subject), tone: toneOf(subject), p50Ms, p99Ms, figure }];
    }),
  }));
}

const wholeFigure = ({ p50Ms = 0, p99Ms = 0, maxMs = 0, unbegun = 0 }: Figures): string =>
  `${[p50Ms, p99Ms, maxMs].map(timeOf).join(" / ")}${unbegun > 0 ? `; ${unbegun} not begun` : ""}`;

const shortFigure = ({ p99Ms = 0, unbegun = 0 }: Figures): string =>
  `${unbegun > 0 ? "more than " : ""}${timeOf(p99Ms)}`;

function tableOf({ part, title, variants }: Shown, all: readonly Kept[], cell: (figures: Figures) => string): string {
  const subjects = subjectsOf(all, part);
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const lines = Object.entries(variants).map(([variant, name]) =>
    row([
      name,
      ...subjects.map((subject) => {
        const figures = figuresOf(all, part, variant, subject);
        return figures ? cell(figures) : "";
      }),
    ]),
  );
  return [row([title, ...subjects.map(nameOf)]), `|${"---|".repeat(subjects.length + 1)}`, ...lines, ""].join("\n");
}

/** Between the lines that mark it; they say where it comes from, too. */
function replaceBlock(page: string, name: string, content: string): string {
  const file = fileURLToPath(new URL(page, DOCS));
  const [begin, end] = [`<!-- ${name}: written by the benchmark -->`, `<!-- ${name}: end -->`];
  const before = readFileSync(file, "utf8");
  const [from, to] = [before.indexOf(begin), before.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/${page} has no place for ${name}`);
  writeFileSync(file, `${before.slice(0, from + begin.length)}\n\n${content}\n${before.slice(to)}`);
  return file;
}
