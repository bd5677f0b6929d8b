// A screen of carillon top: lanes, rates, workers and providers, as lines that fit.

import type { Ledger, ProviderState, QueueDepth, Worker } from "#client/client.ts";
import { PRIORITIES } from "#domain/priority.ts";
import { ENDINGS } from "#domain/status.ts";
import { type Colour, clean, type Paint } from "../paint.ts";
import { lasting } from "./times.ts";

export type Snapshot = {
  /** Monotonic, for rates. */
  atMs: number;
  queue: QueueDepth;
  ledger: Ledger;
  workers: Worker[];
  providers: ProviderState[];
};
export type Size = { columns: number; rows: number };
type Line = { text: string; colour?: Colour };

const BAR = 30;

/** The one before gives rates; the first has none. */
export function frameOf(
  title: string,
  now: Snapshot,
  before: Snapshot | undefined,
  size: Size,
  paint: Paint,
): string[] {
  const lines: Line[] = [
    { text: title, colour: "bold" },
    ...figures(now, before),
    { text: "" },
    ...lanes(now.queue),
    { text: "" },
    ...workers(now, before),
    { text: "" },
    ...providers(now.providers),
  ];
  const shown = lines.length > size.rows ? [...lines.slice(0, size.rows - 1), { text: "…" }] : lines;
  return shown.map(({ text, colour }) => {
    const cut = [...clean(text, false)].slice(0, size.columns).join("");
    return colour === undefined ? cut : paint(colour, cut);
  });
}

const count = (value: number): string => value.toLocaleString("en-US");

/** What changed in a second; empty where it is not known yet. */
function rate(now: number, then: number | undefined, ms: number): string {
  if (then === undefined || ms <= 0) return "";
  return ` (${count(Math.round(((now - then) / ms) * 10_000) / 10)}/s)`;
}

function figures(now: Snapshot, before: Snapshot | undefined): Line[] {
  const ms = before ? now.atMs - before.atMs : 0;
  const { ledger } = now;
  const of = (name: "accepted" | (typeof ENDINGS)[number]) =>
    `${name} ${count(ledger[name])}${rate(ledger[name], before?.ledger[name], ms)}`;
  const endings = ENDINGS.filter((ending) => ledger[ending] > 0).map(of);
  const lines: Line[] = [{ text: [of("accepted"), `waiting ${count(ledger.waiting)}`, ...endings].join("   ") }];
  if (!ledger.balanced) lines.push({ text: "the ledger does NOT balance", colour: "red" });
  return lines;
}

function lanes({ depth, processing, scheduled, oldestAgeMs, untaken, paused }: QueueDepth): Line[] {
  const most = Math.max(1, ...PRIORITIES.map((lane) => depth[lane]));
  const lines: Line[] = PRIORITIES.map((lane) => {
    const bar = "#".repeat(Math.ceil((depth[lane] / most) * BAR));
    return { text: `${lane.padEnd(8)}${count(depth[lane]).padStart(12)}  ${bar}`.trimEnd() };
  });
  const oldest = oldestAgeMs > 0 ? `, the oldest for ${lasting(oldestAgeMs)}` : "";
  lines.push({ text: `being sent ${count(processing)}, later ${count(scheduled)}${oldest}` });
  const alone = untaken.reduce((sum, flow) => sum + flow.count, 0);
  if (alone > 0) lines.push({ text: `nobody takes ${count(alone)} of them: carillon doctor`, colour: "red" });
  for (const { kind, name, reason } of paused)
    lines.push({ text: `paused: ${kind} ${name} (${reason})`, colour: "yellow" });
  return lines;
}

const row = (cells: readonly (string | number)[], widths: readonly number[]): string =>
  cells
    .map((cell, n) => fit(String(cell), widths[n] ?? 0))
    .join("  ")
    .trimEnd();

/** Numbers are flush right: their width is negative. */
function fit(cell: string, width: number): string {
  if (width < 0) return cell.padStart(-width);
  return width > 0 && cell.length > width ? `${cell.slice(0, width - 1)}…` : cell.padEnd(width);
}

const WORKER = [28, -6, -8, -12, 12, 10] as const;
const PROVIDER = [16, 10, 24, -9, -10, 30] as const;

function workers(now: Snapshot, before: Snapshot | undefined): Line[] {
  const alive = now.workers.filter((worker) => worker.alive);
  if (alive.length === 0) return [{ text: "no worker is alive: nothing is sent", colour: "red" }];
  const ms = before ? now.atMs - before.atMs : 0;
  const lines = alive.map(({ name, held = 0, sending = 0, delivered = 0, takes }) => {
    const then = before?.workers.find((one) => one.name === name)?.delivered;
    const only = Object.values(takes).flat().join(",");
    return { text: row([name, held, sending, count(delivered), rate(delivered, then, ms).trim(), only], WORKER) };
  });
  return [{ text: row(["worker", "held", "sending", "delivered", "", "takes"], WORKER), colour: "faint" }, ...lines];
}

function providers(all: readonly ProviderState[]): Line[] {
  const lines = all.map(({ name, type, routes, health, paused, spend }): Line => {
    const isIll = health !== undefined && !health.healthy;
    const state = paused ? `paused: ${paused.reason}` : health ? `${isIll ? "UNHEALTHY: " : ""}${health.detail}` : "";
    const text = row([name, type, routes.join(",") || "-", count(spend.sent), spend.cost, state], PROVIDER);
    return { text, ...(isIll ? { colour: "red" } : paused ? { colour: "yellow" } : {}) } as Line;
  });
  return [{ text: row(["provider", "type", "routes", "sent", "cost", "state"], PROVIDER), colour: "faint" }, ...lines];
}
