// Configuration in, roles running, and stopped again. What each of them is made of stands in wiring/.

import type { Config } from "#config/read.ts";
import { VERSION } from "#config/version.ts";
import { createRequestTurns } from "#http/core/turns.ts";
import { startFollowing } from "#roles/following.ts";
import { LARGE_CONNECTIONS } from "#store/connection/database.ts";
import type { Logger } from "#telemetry/log.ts";
import type { Siblings } from "#telemetry/siblings.ts";
import { openAcceptances } from "#wiring/accept.ts";
import { openApi } from "#wiring/api.ts";
import { openBase } from "#wiring/base.ts";
import { openChannels } from "#wiring/channels.ts";
import { startDelivery } from "#wiring/delivery.ts";
import { type Ground, openGround } from "#wiring/ground.ts";
import { openMailbox } from "#wiring/mailbox.ts";
import { openSinks } from "#wiring/sinks.ts";
import { openSources } from "#wiring/sources.ts";
import { openStream } from "#wiring/stream.ts";
import { type Stop, stopTogether, unwind } from "#wiring/undo.ts";

export type Running = { url: string; stop(): Promise<void> };

/** Starts everything the roles ask for, in this process. `print` gets the few lines that a person must see. */
export async function start(
  config: Config,
  log: Logger,
  print: (line: string) => void,
  stopping?: AbortSignal,
): Promise<Running> {
  const undo: Stop[] = [];
  try {
    const ground = await openGround(config, log, print, undo, stopping);
    const serving = await serve(config, log, print, ground, { stopping });
    undo.push(serving.stop);
    print(`carillon listening on ${serving.url}`);
    if (config.roles.includes("api")) print(`the dashboard is at ${serving.url}/dashboard`);
    return { url: serving.url, stop: () => unwind(undo) };
  } catch (error) {
    await unwind(undo);
    throw error;
  }
}

/** The roles, on ground that is there already; with siblings as one of several processes behind one port. */
export async function serve(
  config: Config,
  log: Logger,
  print: (line: string) => void,
  ground: Ground,
  { siblings, stopping }: { siblings?: Siblings; stopping: AbortSignal | undefined },
): Promise<Running> {
  const undo: Stop[] = [];
  const loops: Stop[] = [];
  const stop = async () => {
    // At once, so that nothing is claimed while requests end, and one limit of time holds for all.
    await stopTogether(loops);
    await unwind(undo);
  };
  try {
    const base = await openBase({ config, log, ground, siblings }, undo, stopping);
    const channels = await openChannels(base, print);
    undo.push(channels.close);
    const wakes = await startDelivery(base, channels, loops);
    if (config.roles.includes("sink")) await openSinks(base, loops, undo);
    const opened = openAcceptances(base, wakes);
    const { acceptances } = opened;
    undo.push(() => acceptances.close());
    if (config.roles.includes("source")) await openSources(base, opened, loops);
    base.metrics.watchWaiting(() => acceptances.waitingRows());
    const turns = createRequestTurns({ small: config.databaseConnections, large: LARGE_CONNECTIONS });
    const stream = config.roles.includes("stream") ? openStream(base, turns) : undefined;
    if (stream) undo.push(stream.stop);
    const following = startFollowing(base.database.own, base.monotonic, base.facts);
    undo.push(following.stop);
    base.figures.feed.watchStreams(following.streams.size);
    const mailbox = openMailbox(base);
    undo.push(mailbox.stop);
    const streams = { hub: stream?.hub, events: following.streams, waits: mailbox.waits };
    const api = await openApi(base, { ...opened, ...streams, channels, wakes, turns, version: VERSION });
    loops.push(() => api.stop(config.drainMs));
    return { url: api.url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
