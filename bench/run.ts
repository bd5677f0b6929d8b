// npm run bench -- <scenario>: starts the servers, runs the scenario, prints and keeps the results.
//
// Run through scripts/bench.js, which installs the peers first. A scenario is one file in scenarios/
// and one line in SCENARIOS.

import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { type MeasureOptions, measure } from "./measure.ts";
import { startPostgres } from "./postgres-server.ts";
import { cleanUp } from "./program.ts";
import { startRedis } from "./redis-server.ts";
import { printReport } from "./report.ts";
import { mergedWith, readResults, writeResults } from "./results.ts";
import type { Part, Scenario } from "./scenario.ts";
import { accept } from "./scenarios/accept.ts";
import { archive } from "./scenarios/archive.ts";
import { backlog } from "./scenarios/backlog.ts";
import { callbacks } from "./scenarios/callbacks.ts";
import { clickhouse } from "./scenarios/clickhouse.ts";
import { cost } from "./scenarios/cost.ts";
import { dashboard } from "./scenarios/dashboard.ts";
import { drain } from "./scenarios/drain.ts";
import { engines } from "./scenarios/engines.ts";
import { guards } from "./scenarios/guards.ts";
import { isolation } from "./scenarios/isolation.ts";
import { kafkaSource } from "./scenarios/kafka-source.ts";
import { latency } from "./scenarios/latency.ts";
import { mix } from "./scenarios/mix.ts";
import { providers } from "./scenarios/providers.ts";
import { schedule } from "./scenarios/schedule.ts";
import { sinks } from "./scenarios/sinks.ts";
import { sse } from "./scenarios/sse.ts";
import { stages } from "./scenarios/stages.ts";

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  accept,
  drain,
  latency,
  backlog,
  mix,
  engines,
  stages,
  cost,
  schedule,
  providers,
  guards,
  sse,
  isolation,
  callbacks,
  archive,
  dashboard,
  "kafka-source": kafkaSource,
  clickhouse,
  sinks,
};

const HELP = `npm run bench -- <scenario> [options]

${Object.entries(SCENARIOS)
  .map(
    ([name, { summary, parts }]) =>
      `  ${name}  ${summary}\n${" ".repeat(name.length + 4)}parts: ${Object.keys(parts).join(", ")}`,
  )
  .join("\n")}

  --only <part>    only this part of the scenario
  --cases <name>   only the cases of this name, such as carillon; the results are printed and not kept
  --repeats <n>    runs per case (REPEATS, default 3)
  --merge          keep what was measured in place of the same cases in the results of the last whole run
  --as <label>     keep the results as <scenario>.<label>.json, also of some cases
  --publish        measure nothing: make the tables and plots of the documentation anew from the results
  --profile        write CPU profiles to bench/results/profiles; the figures are then a little lower
  --help

  BENCH_DATABASE_URL, BENCH_REDIS_URL   servers to use instead of starting some; their data of earlier runs is removed
  QUIET         seconds to wait, at most, for an idle machine before a run (default 5)
  MANY          1: also the cases that take many minutes each
  MAX_FOREIGN   repeat a run, twice at most, when others used more cores than this (default 0.3)
`;

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h" },
      only: { type: "string" },
      cases: { type: "string" },
      repeats: { type: "string" },
      profile: { type: "boolean" },
      merge: { type: "boolean" },
      as: { type: "string" },
      publish: { type: "boolean" },
    },
  });
  const [name = ""] = positionals;
  const scenario = Object.hasOwn(SCENARIOS, name) ? SCENARIOS[name] : undefined;
  if (values.help || !scenario || positionals.length > 1) {
    console.log(HELP);
    return values.help ? 0 : 64;
  }
  if (values.publish) {
    tell(scenario.publish?.() ?? []);
    return 0;
  }
  const parts = chosenParts(scenario, values.only, values.cases);
  const { env } = process;
  const options: MeasureOptions = {
    repeats: numberFrom(values.repeats ?? env.REPEATS, 3, 1),
    quietMs: numberFrom(env.QUIET, 5, 0) * 1000,
    maxForeignCores: numberFrom(env.MAX_FOREIGN, 0.3, 0),
  };

  const startedAt = new Date();
  const postgres = await startPostgres(env.BENCH_DATABASE_URL);
  const redis = await startRedis(env.BENCH_REDIS_URL);
  const world = {
    databaseUrl: postgres.url,
    redisUrl: redis?.url,
    servers: { ...(postgres.pid && { postgres: postgres.pid }), ...(redis?.pid && { redis: redis.pid }) },
    withMany: env.MANY === "1",
    profileDirectory: values.profile ? new URL("results/profiles", import.meta.url).pathname : undefined,
  };
  const measured = await measure(parts, world, options);
  printReport(parts, measured);
  const { as: label, merge = false } = values;
  if (values.cases !== undefined && label === undefined && !merge) return 0;
  const fileName = [name, label ?? (merge ? undefined : values.only)].filter((part) => part !== undefined).join(".");
  const whole = merge ? mergedWith(readResults(fileName), measured) : measured;
  const about = merge ? scenario.parts : parts;
  const written = { name: fileName, startedAt, options, postgres, redis, parts: about, measured: whole };
  tell([await writeResults(written)]);
  if (fileName === name) tell(scenario.publish?.() ?? []);
  return 0;
}

function tell(files: readonly string[]): void {
  for (const file of files) console.log(relative(join(import.meta.dirname, ".."), file));
}

function chosenParts(
  { parts }: Scenario,
  only: string | undefined,
  name: string | undefined,
): Readonly<Record<string, Part>> {
  if (only !== undefined && !Object.hasOwn(parts, only))
    throw new Error(`there is no part ${only}; there are ${Object.keys(parts).join(", ")}`);
  const chosen = Object.entries(parts).filter(([part]) => only === undefined || part === only);
  return Object.fromEntries(chosen.map(([part, whole]) => [part, name === undefined ? whole : casesOf(whole, name)]));
}

const casesOf = (part: Part, name: string): Part => ({
  ...part,
  cases: (world) => part.cases(world).filter(({ variant, subject }) => variant === name || subject === name),
});

function numberFrom(text: string | undefined, fallback: number, least: number): number {
  const value = Number(text || fallback);
  if (!(value >= least)) throw new Error(`expected a number of at least ${least}, found ${text}`);
  return value;
}

// Carillon reads its settings from the environment: a developer's own must not change the figures.
for (const name of Object.keys(process.env)) {
  if (name.startsWith("CARILLON_") || name.startsWith("PG") || name === "DATABASE_URL") delete process.env[name];
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    console.error(`\n${signal}: stopping what was started`);
    void cleanUp().finally(() => process.exit(130));
  });
}
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await cleanUp();
}
process.exit();
