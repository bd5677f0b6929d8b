// What is looked at, made and brought up to date once, however many processes then serve on it: the port, the database, the first key.

import type { Config } from "#config/read.ts";
import { assertPortIsFree } from "#http/core/free-port.ts";
import { makeFirstKey } from "#steps/manage/keys.ts";
import { Facts } from "#telemetry/facts.ts";
import type { Logger } from "#telemetry/log.ts";
import { openStore, prepareDatabase, type Reached, reachDatabase } from "./database.ts";
import { requirePackages } from "./packages.ts";
import type { Stop } from "./undo.ts";

/** The database as it was reached. */
export type Ground = Pick<Reached, "url" | "poolUrl">;

/** `print` gets the first key, which is shown only once. */
export async function openGround(
  config: Config,
  log: Logger,
  print: (line: string) => void,
  undo: Stop[],
  stopping?: AbortSignal,
): Promise<Ground & Pick<Reached, "leash">> {
  const facts = new Facts(log);
  await requirePackages(config);
  await assertPortIsFree(config.host, config.port);
  const server = await reachDatabase(config, facts);
  undo.push(server.stop);
  const applied = await prepareDatabase(server, facts, stopping);
  if (applied.length > 0) facts.migrated(applied);
  if (config.apiKey === undefined) {
    const key = await firstKey(config, server, facts);
    if (key !== undefined) print(`admin key, shown only this once: ${key}`);
  }
  const { url, poolUrl, leash } = server;
  return { url, poolUrl, leash };
}

async function firstKey(config: Config, ground: Ground, facts: Facts): Promise<string | undefined> {
  const database = openStore(config, ground, facts);
  try {
    return await makeFirstKey(database.own, { kind: "process", what: "start" });
  } finally {
    await database.close();
  }
}
