// The record of a run: bench/results/<scenario>.json, with every single run in it.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { machine, versions } from "./machine.ts";
import type { Measured, MeasureOptions } from "./measure.ts";
import type { Server } from "./postgres-server.ts";
import { valuesOf, verdicts } from "./report.ts";
import type { Part } from "./scenario.ts";
import { median, shortened } from "./statistics.ts";

const DIRECTORY = new URL("results/", import.meta.url);
const BIOME = fileURLToPath(new URL("../node_modules/.bin/biome", import.meta.url));

export type Results = {
  /** The file's name without its ending. */
  name: string;
  startedAt: Date;
  options: MeasureOptions;
  postgres: Server;
  redis: Server | undefined;
  parts: Readonly<Record<string, Part>>;
  measured: readonly Measured[];
};

/** What is kept of a case. */
export type Kept = Measured & { figure: string; median: number };

/** The cases that a file holds, none where there is no such file. */
export function readResults(name: string): Kept[] {
  const file = fileURLToPath(new URL(`${name}.json`, DIRECTORY));
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).cases : [];
}

/** Cases that were measured now take the place of those of old. */
export function mergedWith(kept: readonly Kept[], measured: readonly Measured[]): Measured[] {
  const nameOf = ({ part, variant, subject }: Measured) => [part, variant, subject].join();
  const fresh = new Map(measured.map((one) => [nameOf(one), one]));
  const stayed = kept.map(({ figure, median, ...one }) => {
    const now = fresh.get(nameOf(one)) ?? one;
    fresh.delete(nameOf(one));
    return now;
  });
  return [...stayed, ...fresh.values()];
}

/** Returns the path of the file. */
export async function writeResults(results: Results): Promise<string> {
  const { name, startedAt, options, postgres, redis, parts, measured } = results;
  const described = ({ origin, settings }: Server) => ({ origin, settings });
  const content = {
    date: startedAt.toISOString(),
    machine: machine(),
    versions: await versions(postgres.url, redis?.url),
    settings: { ...options, postgresql: described(postgres), redis: redis ? described(redis) : "none" },
    targets: verdicts(parts, measured).map(({ ratio, ...verdict }) => ({
      ...verdict,
      ...(ratio && { ratio: shortened(ratio.median), low: shortened(ratio.low), high: shortened(ratio.high) }),
    })),
    cases: measured.map((one) => {
      const part = parts[one.part] as Part;
      const { runs, ...what } = one;
      return { ...what, figure: part.figure.name, median: shortened(median(valuesOf(one, part.figure.name))), runs };
    }),
  };
  mkdirSync(DIRECTORY, { recursive: true });
  const file = fileURLToPath(new URL(`${name}.json`, DIRECTORY));
  writeFileSync(`${file}.tmp`, `${JSON.stringify(content, null, 2)}\n`);
  renameSync(`${file}.tmp`, file);
  // The file is kept in the repository, where `npm run format` looks at it.
  spawnSync(BIOME, ["format", "--write", file], { stdio: "ignore" });
  return file;
}
