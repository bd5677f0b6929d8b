// Keeps house: chores that come round again, a step of each in turn.
//
// A chore with a great deal to do goes on for as long as it takes and keeps no other waiting for longer than a step. One that
// fails, fails alone; it is tried again soon at first, then ever more rarely.

import type { Steps } from "#store/housekeeping.ts";
import type { Logger } from "#telemetry/log.ts";
import { createNap } from "#timing/nap.ts";

export type Chore = {
  name: string;
  everyMs: number;
  /** How loudly it is told what was done. */
  level: "debug" | "info";
  begin: () => Steps;
};

export type HouseOptions = {
  chores: readonly Chore[];
  /** Nothing is done while somebody else leads. */
  leads: () => boolean;
  /** How soon a chore is tried again that failed for the first time, and how often the lead is looked for. */
  retryMs: number;
  log: Logger;
};

export type House = { wake(): void; stop(): Promise<void> };

type Turn = Chore & { dueAt: number; failures: number; total: number; steps: Steps | undefined };

const MOST_RETRY_MS = 600_000;

export function startHouse({ chores, leads, retryMs, log }: HouseOptions): House {
  const nap = createNap();
  let isStopped = false;
  const turns: Turn[] = chores.map((chore) => ({
    ...chore,
    dueAt: Number.NEGATIVE_INFINITY,
    failures: 0,
    total: 0,
    steps: undefined,
  }));

  async function step(turn: Turn): Promise<void> {
    try {
      turn.steps ??= turn.begin();
      const { done, value } = await turn.steps.next();
      if (done !== true) {
        turn.total += value;
        return;
      }
      if (turn.total > 0) log[turn.level]({ chore: turn.name, count: turn.total }, "kept house");
      turn.failures = 0;
      turn.dueAt = performance.now() + turn.everyMs;
    } catch (error) {
      log.warn({ err: error, chore: turn.name }, "a chore of the keeper failed");
      turn.dueAt = performance.now() + Math.min(MOST_RETRY_MS, retryMs * 2 ** turn.failures);
      turn.failures += 1;
    }
    turn.steps = undefined;
    turn.total = 0;
  }

  async function run(): Promise<void> {
    while (!isStopped) {
      const now = performance.now();
      const due = leads() ? turns.filter(({ dueAt }) => dueAt <= now) : [];
      for (const turn of due) if (!isStopped) await step(turn);
      if (due.length > 0) continue;
      const nextMs = Math.min(...turns.map(({ dueAt }) => dueAt)) - now;
      await nap.sleep(leads() ? nextMs : retryMs);
      nap.wasWoken();
    }
  }

  const running = run();
  return {
    wake: nap.wake,
    stop() {
      isStopped = true;
      nap.wake();
      return running;
    },
  };
}
