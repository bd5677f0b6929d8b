// Several processes behind one port. The supervisor serves nothing itself: it opens the ground that all of them stand on, hands out
// connections in turn (node:cluster), keeps the processes, and puts their figures together.
//
// In turn, because it is the most even: of 50 connections to two processes each had 21 to 29; with sockets of their own on one port
// (reusePort) 19 to 31, with one socket that both accept from 7 to 43. A connection costs a tenth of a millisecond more for it, and a
// process that is replaced loses nobody who was not connected to it yet.

import cluster from "node:cluster";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { Config } from "#config/read.ts";
import type { Running } from "#main.ts";
import { Facts } from "#telemetry/facts.ts";
import type { Logger } from "#telemetry/log.ts";
import { createProcessMetrics } from "#telemetry/process-metrics.ts";
import type { Standing } from "#telemetry/siblings.ts";
import { type Ground, openGround } from "#wiring/ground.ts";
import { type Stop, unwind } from "#wiring/undo.ts";
import { Counting } from "./counting.ts";
import { Processes, type ProcessesOptions } from "./processes.ts";

export type SuperviseOptions = {
  /** The module that each process runs. */
  program: string;
  print: (line: string) => void;
  stopping?: AbortSignal;
};

export async function supervise(
  config: Config,
  log: Logger,
  { program, print, stopping }: SuperviseOptions,
): Promise<Running> {
  const undo: Stop[] = [];
  try {
    const { leash, ...ground } = await openGround(config, log, print, undo, stopping);
    const processes = openProcesses(config, ground, { program, leash }, new Facts(log));
    undo.push(() => processes.stop());
    const url = await processes.started(stopping);
    print(`carillon listening on ${url}`);
    if (config.roles.includes("api")) print(`the dashboard is at ${url}/dashboard`);
    return { url, stop: () => unwind(undo) };
  } catch (error) {
    await unwind(undo);
    throw error;
  }
}

function openProcesses(
  config: Config,
  ground: Ground,
  started: Pick<ProcessesOptions, "program" | "leash">,
  facts: Facts,
): Processes {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const standing = (): Standing => ({ of: config.processes, up: processes.up().length });
  const figures = createProcessMetrics(registry, standing);
  const counting = new Counting(() => registry.getMetricsAsJSON());
  const processes: Processes = new Processes({
    count: config.processes,
    ...started,
    begin: (number) => ({
      kind: "begin",
      begin: { number, config, ground, standing: standing(), uptimeSeconds: process.uptime() },
    }),
    monotonic: () => performance.now(),
    hear(message, child) {
      if (message.kind === "asks") {
        const { ask } = message;
        counting.ofAll(processes.up()).then(
          (text) => child.tell({ kind: "figures", ask, text }),
          // It has a log, and somebody to tell.
          (error: unknown) => child.tell({ kind: "no figures", ask, fault: String(error) }),
        );
      }
      if (message.kind === "counted" || message.kind === "uncounted") counting.hear(child, message);
    },
    onChange: () => processes.tellAll({ kind: "standing", standing: standing() }),
    onServe: (child) => facts.processServes(child),
    onEnd(child, how, pauseMs) {
      counting.leave(child.number);
      figures.replaced.inc();
      facts.processEnded(child, how, pauseMs);
    },
    onSilence: (child) => facts.processHangs(child),
  });
  return processes;
}
