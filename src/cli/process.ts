// One of several processes behind one port: started by the supervisor, told what to serve, and stopped by it, or with it.
//
// A signal of its own stops it as well, and the supervisor replaces it; Ctrl-C reaches all of them at once.

import { type Running, serve } from "#main.ts";
import { openLink } from "#supervisor/link.ts";
import { createLog } from "#telemetry/log.ts";
import { complaintOf } from "./complaint.ts";
import { stopInTime, stopSignal } from "./stopping.ts";

const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  const link = openLink();
  const { asked, stopping } = stopSignal(link.stopped);
  const begun = await Promise.race([link.begun, asked]);
  if (typeof begun === "string") return 0;
  const { config, ground, siblings } = begun;
  const log = createLog(config.logLevel).child({ process: siblings.number });
  let running: Running;
  try {
    running = await serve(config, log, print, ground, { siblings, stopping });
  } catch (error) {
    if (stopping.aborted) return 0;
    const complaint = complaintOf(error);
    await link.tell({ kind: "failed", complaint });
    return complaint.exitCode;
  }
  await link.tell({ kind: "ready", url: running.url });
  log.info({ asked: await asked }, "stopping");
  await stopInTime(running, config, log);
  log.info("stopped");
  return 0;
}

// The link alone would keep it alive.
process.exit(await main());
