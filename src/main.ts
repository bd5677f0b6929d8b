// Configuration in, roles running, and stopped again. What each of them is made of stands in wiring/.

import { readFileSync } from "node:fs";
import type { Config } from "#config/read.ts";
import { assertPortIsFree } from "#http/core/free-port.ts";
import { createRequestTurns } from "#http/core/turns.ts";
import { makeFirstKey } from "#steps/manage/keys.ts";
import { LARGE_CONNECTIONS } from "#store/connection/database.ts";
import type { Logger } from "#telemetry/log.ts";
import { openAcceptances } from "#wiring/accept.ts";
import { openApi } from "#wiring/api.ts";
import { openBase } from "#wiring/base.ts";
import { openChannels } from "#wiring/channels.ts";
import { startDelivery } from "#wiring/delivery.ts";
import { openStream } from "#wiring/stream.ts";
import { type Stop, stopTogether, unwind } from "#wiring/undo.ts";

export const VERSION: string = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version;

export type Running = { url: string; stop(): Promise<void> };

/** Starts everything the roles ask for. `print` gets the few lines that a person must see. */
export async function start(
  config: Config,
  log: Logger,
  print: (line: string) => void,
  stopping?: AbortSignal,
): Promise<Running> {
  const undo: Stop[] = [];
  const loops: Stop[] = [];
  const stop = async () => {
    // At once, so that nothing is claimed while requests end, and one limit of time holds for all.
    await stopTogether(loops);
    await unwind(undo);
  };
  try {
    await assertPortIsFree(config.host, config.port);
    const base = await openBase(config, log, undo, stopping);
    const { database, metrics } = base;
    if (config.apiKey === undefined) {
      const key = await makeFirstKey(database.own, { kind: "process", what: "start" });
      if (key !== undefined) print(`admin key, shown only this once: ${key}`);
    }

    const channels = await openChannels(base, print);
    undo.push(channels.close);
    const wakes = await startDelivery(base, channels, loops);
    const opened = openAcceptances(base, wakes);
    const { acceptances } = opened;
    undo.push(() => acceptances.close());
    metrics.watchWaiting(() => acceptances.waitingRows());
    const turns = createRequestTurns({ small: config.databaseConnections, large: LARGE_CONNECTIONS });
    const stream = config.roles.includes("stream") ? openStream(base, turns) : undefined;
    if (stream) undo.push(stream.stop);
    const api = await openApi(base, { ...opened, channels, wakes, turns, hub: stream?.hub, version: VERSION });
    loops.push(() => api.stop(config.drainMs));

    print(`carillon listening on ${api.url}`);
    return { url: api.url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
