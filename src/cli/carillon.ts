#!/usr/bin/env node
// The command line.

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Config, FORMER_NAME, readConfig, unknownVariables } from "#config/read.ts";
import { shownConfig } from "#config/shown.ts";
import { start, VERSION } from "#main.ts";
import { supervise } from "#supervisor/supervise.ts";
import { Facts } from "#telemetry/facts.ts";
import { createLog, type Logger } from "#telemetry/log.ts";
import { checkDatabase, prepareDatabase, reachDatabase } from "#wiring/database.ts";
import { requirePackages } from "#wiring/packages.ts";
import { makeAdminKey } from "./admin-key.ts";
import { ARCHIVE_USAGE, runArchive } from "./archive.ts";
import { complaintOf, EX_CONFIG } from "./complaint.ts";
import { REMOTE, runRemote, USAGE } from "./remote.ts";
import { stopInTime, stopSignal } from "./stopping.ts";

const EX_USAGE = 64;
/** What runs in each of several processes. In the package the files are .js. */
const PROCESS = fileURLToPath(new URL(`./process.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url));

const HELP = `carillon ${VERSION}: notifications, accepted means kept

  carillon start      run it (all roles, embedded PostgreSQL unless DATABASE_URL is set)
  carillon check      validate the configuration and look whether DATABASE_URL answers, without starting anything
  carillon migrate    bring the database schema up to date
  carillon admin-key  make another admin key, straight in the database: for whoever has lost theirs
${ARCHIVE_USAGE}
${USAGE}
  carillon --version
  carillon --help

schedule, reminder, provider, pause, resume, pauses, tenant, users, audit, events, endpoint, callback, sources, sinks and refusals ask a running Carillon: CARILLON_URL (default http://HOST:PORT) with the key CARILLON_API_KEY.
Configuration: environment variables and carillon.config.ts, .js or .json; see docs/configuration.md.
`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const complain = (line: string): void => void process.stderr.write(`${line}\n`);

const COMMANDS: { [name: string]: (config: Config, log: Logger) => Promise<number> } = {
  async start(config, ofAll) {
    const isAlone = config.processes === 1;
    const log = isAlone ? ofAll : ofAll.child({ process: "supervisor" });
    const { asked, stopping } = stopSignal();
    const begun = isAlone
      ? start(config, log, print, stopping)
      : supervise(config, log, { program: PROCESS, print, stopping });
    const running = await begun.catch((error: unknown) => {
      if (!stopping.aborted) throw error;
    });
    if (!running) return 0;
    log.info({ signal: await asked }, "stopping");
    await stopInTime(running, config, log);
    log.info("stopped");
    return 0;
  },
  async check(config) {
    print(JSON.stringify(shownConfig(config), null, 2));
    await requirePackages(config);
    if (config.databaseUrl !== undefined) await checkDatabase(config.databaseDirectUrl ?? config.databaseUrl);
    print(`the configuration is valid, the database ${config.databaseUrl === undefined ? "not started" : "answers"}`);
    return 0;
  },
  async migrate(config, log) {
    const facts = new Facts(log);
    const database = await reachDatabase(config, facts);
    try {
      const applied = await prepareDatabase(database, facts);
      print(applied.length > 0 ? `applied ${applied.join(", ")}` : "the schema is up to date");
    } finally {
      await database.stop();
    }
    return 0;
  },
  async "admin-key"(config, log) {
    print(`admin key, shown only this once: ${await makeAdminKey(config, new Facts(log))}`);
    return 0;
  },
};

async function main(args: string[]): Promise<number> {
  if (REMOTE.has(args[0] ?? "")) return remote(args);
  if (args[0] === "archive") return archive(args.slice(1));
  const options = { help: { type: "boolean", short: "h" }, version: { type: "boolean", short: "v" } } as const;
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true, strict: false });
  const [name = "", ...more] = positionals;
  const unknown = Object.keys(values).find((option) => !Object.hasOwn(options, option));
  if (unknown !== undefined) {
    complain(`carillon: there is no option --${unknown}`);
    return EX_USAGE;
  }
  if (values.version) print(VERSION);
  else if (values.help || name === "help") print(HELP);
  else if (more.length === 0 && Object.hasOwn(COMMANDS, name)) return run(COMMANDS[name] as (typeof COMMANDS)[string]);
  else {
    complain(name ? `carillon: there is no command ${[name, ...more].join(" ")}\n` : HELP);
    return EX_USAGE;
  }
  return 0;
}

async function remote(args: string[]): Promise<number> {
  const { host, port, apiKey } = await readConfig({ env: process.env, cwd: process.cwd() });
  if (apiKey === undefined) {
    complain("carillon: set CARILLON_API_KEY to a key of the Carillon that is asked");
    return EX_CONFIG;
  }
  const url = process.env.CARILLON_URL ?? `http://${host}:${port}`;
  if (!URL.canParse(url)) {
    complain("carillon: CARILLON_URL must be an http or https URL");
    return EX_CONFIG;
  }
  try {
    const fault = await runRemote(args, { url, key: apiKey, print });
    if (fault === undefined) return Number(process.exitCode ?? 0);
    complain(`carillon: ${fault}\n${USAGE}`);
    return EX_USAGE;
  } catch (error) {
    if (!(error instanceof TypeError && error.message === "fetch failed")) throw error;
    const cause = error.cause instanceof Error && "code" in error.cause ? ` (${error.cause.code})` : "";
    complain(`carillon: no Carillon answers at ${new URL(url).origin}${cause}. Start it, or correct CARILLON_URL.`);
    return 1;
  }
}

async function archive(args: string[]): Promise<number> {
  const config = await readConfig({ env: process.env, cwd: process.cwd() });
  const answer = await runArchive(args, { config, facts: new Facts(createLog(config.logLevel)), print, complain });
  if (typeof answer === "number") return answer;
  complain(`carillon: ${answer}\n${ARCHIVE_USAGE}`);
  return EX_USAGE;
}

async function run(command: (typeof COMMANDS)[string]): Promise<number> {
  const config = await readConfig({ env: process.env, cwd: process.cwd() });
  const log = createLog(config.logLevel);
  for (const name of unknownVariables(process.env))
    log.warn({ name }, "unknown environment variable, perhaps misspelt");
  for (const names of config.formerNames) log.warn(names, FORMER_NAME);
  return command(config, log);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { said, exitCode } = complaintOf(error);
  complain(`carillon: ${said}`);
  process.exitCode = exitCode;
}
