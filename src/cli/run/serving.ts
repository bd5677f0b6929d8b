// carillon start, check and migrate.

import { fileURLToPath } from "node:url";
import { shownConfig } from "#config/shown.ts";
import { checkDatabase, prepareDatabase, reachDatabase } from "#wiring/database.ts";
import { requirePackages } from "#wiring/packages.ts";
import { EXIT, type Run } from "../command.ts";
import { stopInTime, stopSignal } from "../stopping.ts";
import { said } from "./lines.ts";

/** What runs in each of several processes. In the package the files are .js. */
const PROCESS = fileURLToPath(new URL(`../process.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url));

export const start: Run = async (_call, world) => {
  const [config, ofAll] = [await world.config(), await world.log()];
  const isAlone = config.processes === 1;
  const log = isAlone ? ofAll : ofAll.child({ process: "supervisor" });
  const { asked, stopping } = stopSignal();
  const { print } = world;
  const begin = async () => {
    if (isAlone) return (await import("#main.ts")).start(config, log, print, stopping);
    return (await import("#supervisor/supervise.ts")).supervise(config, log, { program: PROCESS, print, stopping });
  };
  const running = await begin().catch((error: unknown) => {
    if (!stopping.aborted) throw error;
  });
  if (!running) return EXIT.done;
  log.info({ signal: await asked }, "stopping");
  await stopInTime(running, config, log);
  log.info("stopped");
  return EXIT.done;
};

export const check: Run = async (_call, world) => {
  const config = await world.config();
  await world.log();
  const configuration = shownConfig(config);
  // Before anything is asked: what is wrong may be seen in it.
  if (!world.isJson) world.print(JSON.stringify(configuration, null, 2));
  await requirePackages(config);
  const { databaseUrl, databaseDirectUrl } = config;
  if (databaseUrl !== undefined) await checkDatabase(databaseDirectUrl ?? databaseUrl);
  const database = databaseUrl === undefined ? "not started" : "answers";
  return said(`the configuration is valid, the database ${database}`, { valid: true, database, configuration });
};

export const migrate: Run = async (_call, world) => {
  const [config, facts] = [await world.config(), await world.facts()];
  const database = await reachDatabase(config, facts);
  try {
    const applied = await prepareDatabase(database, facts);
    return said(applied.length > 0 ? `applied ${applied.join(", ")}` : "the schema is up to date", { applied });
  } finally {
    await database.stop();
  }
};
