// A dot plot as SVG: groups of rows on one logarithmic axis of time, a dot at the 99th percentile, a bar from the median to it.
//
// Every row says whose it is and what its dot stands at, so that nobody has to match colours with a legend; the colours are
// there for a glance, and change with the reader's light or dark mode.

export type Tone = "ours" | "former" | "other";

export type Row = {
  name: string;
  tone: Tone;
  p50Ms: number;
  p99Ms: number;
  /** The 99th percentile in words. */
  figure: string;
};

export type DotPlot = {
  title: string;
  subtitle: string;
  /** Under the axis. */
  axis: string;
  groups: readonly { name: string; rows: readonly Row[] }[];
  /** A line to stay left of. */
  limit?: { ms: number; name: string };
};

const WIDTH = 760;
const LEFT = 150;
const RIGHT = 180;
const TOP = 74;
const ROW = 21;
const GROUP_HEAD = 26;
const GROUP_GAP = 10;
const BOTTOM = 58;
const DOT = 5.5;

const STYLE = `
  text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f; stroke: #ffffff; stroke-width: 4px; paint-order: stroke; stroke-linejoin: round; }
  .back { fill: #ffffff; }
  .title { font-size: 17px; font-weight: 600; }
  .quiet { fill: #57606a; font-size: 12px; }
  .group { font-weight: 600; }
  .grid { stroke: #d8dee4; stroke-width: 1; }
  .limit { stroke: #9a6700; stroke-width: 1.5; stroke-dasharray: 5 4; }
  .limit-name { fill: #9a6700; font-size: 12px; }
  .ours { fill: #0969da; stroke: #0969da; }
  .former { fill: #cf222e; stroke: #cf222e; }
  .other { fill: #6e7781; stroke: #6e7781; }
  .bar { stroke-width: 5; stroke-linecap: round; opacity: 0.35; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; stroke: #0d1117; }
    .back { fill: #0d1117; }
    .quiet { fill: #9198a1; }
    .grid { stroke: #30363d; }
    .limit { stroke: #d29922; }
    .limit-name { fill: #d29922; }
    .ours { fill: #58a6ff; stroke: #58a6ff; }
    .former { fill: #ff7b72; stroke: #ff7b72; }
    .other { fill: #9198a1; stroke: #9198a1; }
  }`;

export function drawDotPlot({ title, subtitle, axis, groups, limit }: DotPlot): string {
  const values = groups.flatMap(({ rows }) => rows.flatMap(({ p50Ms, p99Ms }) => [p50Ms, p99Ms]));
  if (limit) values.push(limit.ms);
  const [low, high] = decades(values);
  const x = (ms: number): number => {
    const share = (Math.log10(Math.max(ms, 10 ** low)) - low) / (high - low);
    return tenth(LEFT + share * (WIDTH - LEFT - RIGHT));
  };

  const body: string[] = [];
  let y = TOP;
  for (const { name, rows } of groups) {
    body.push(text(24, y + 17, name, "group"));
    y += GROUP_HEAD;
    for (const row of rows) {
      body.push(...drawRow(row, y + ROW / 2, x));
      y += ROW;
    }
    y += GROUP_GAP;
  }
  const height = y + BOTTOM;
  const ticks = Array.from({ length: high - low + 1 }, (_, n) => 10 ** (low + n));
  const grid = ticks.flatMap((ms) => [
    line(x(ms), TOP, x(ms), y, "grid"),
    text(x(ms), y + 18, timeOf(ms), "quiet", "middle"),
  ]);
  if (limit) {
    grid.push(line(x(limit.ms), TOP, x(limit.ms), y, "limit"));
    grid.push(text(x(limit.ms) + 5, TOP + 14, limit.name, "limit-name"));
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escaped(`${title}. ${subtitle}`)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="back" width="${WIDTH}" height="${height}" rx="6"/>`,
    text(24, 32, title, "title"),
    text(24, 54, subtitle, "quiet"),
    ...grid,
    ...body,
    text((LEFT + WIDTH - RIGHT) / 2, y + 42, axis, "quiet", "middle"),
    "</svg>",
    "",
  ].join("\n");
}

function drawRow({ name, tone, p50Ms, p99Ms, figure }: Row, y: number, x: (ms: number) => number): string[] {
  return [
    text(LEFT - 14, y + 4.5, name, tone === "ours" ? "" : "quiet", "end"),
    line(x(p50Ms), y, x(p99Ms), y, `bar ${tone}`),
    `<circle class="${tone}" cx="${x(p99Ms)}" cy="${y}" r="${DOT}"/>`,
    text(x(p99Ms) + 12, y + 4.5, figure, tone === "ours" ? "" : "quiet"),
  ];
}

/** The powers of ten around all of them. */
function decades(values: readonly number[]): [low: number, high: number] {
  const low = Math.floor(Math.log10(Math.max(Math.min(...values), 0.1)));
  return [low, Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))))];
}

/** As a person would say it. */
export function timeOf(ms: number): string {
  if (ms >= 1_000) return `${Number((ms / 1_000).toPrecision(ms >= 100_000 ? 3 : 2))} s`;
  return `${Number(ms.toPrecision(ms >= 100 ? 3 : 2))} ms`;
}

const tenth = (value: number): number => Math.round(value * 10) / 10;

const line = (x1: number, y1: number, x2: number, y2: number, kind: string): string =>
  `<line class="${kind}" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`;

const text = (x: number, y: number, words: string, kind: string, anchor = "start"): string =>
  `<text x="${x}" y="${y}" class="${kind}" text-anchor="${anchor}">${escaped(words)}</text>`;

const escaped = (words: string): string =>
  words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
