// Where ready work waits in a run, if not in PostgreSQL alone: a server, and what may happen to it.

import { setTimeout as sleep } from "node:timers/promises";
import type { EngineName } from "#domain/handoff.ts";
import type { Fault } from "./history.ts";
import type { Variables } from "./slot.ts";

export type EngineCard =
  | ("kill redis" | "save redis" | "empty redis" | "cut redis" | "freeze redis")
  | ("cut sqs" | "throttle sqs" | "everything twice")
  | "move the queue";

type Ask = (
  method: string,
  path: string,
  body?: object,
) => Promise<{ status: number; body: { [name: string]: unknown } }>;

export type EngineCardOptions = {
  random: () => number;
  /** What lasts is cut short by it. */
  over: AbortSignal;
  onFault: (fault: Fault) => void;
  /** As the administrator. */
  ask: Ask;
};

/** What a card is given: one at a time has the server. */
export type Hand = {
  between(least: number, most: number): number;
  wait(ms: number): Promise<unknown>;
};

export type EngineServer = {
  name: EngineName;
  /** Of every process that is to reach it. */
  env: Variables;
  deck: readonly EngineCard[];
  /** What a run must have met. */
  dues: readonly EngineCard[];
  acts: { [card in EngineCard]?: (hand: Hand) => Promise<unknown> };
  stop(): Promise<unknown>;
};

export type EngineCards = { [card in EngineCard]?: () => Promise<void> };

export function createEngineCards(server: EngineServer, options: EngineCardOptions): EngineCards {
  const { random, over, onFault } = options;
  let isTaken = false;
  const hand: Hand = {
    between: (least, most) => least + random() * (most - least),
    wait: (ms) => sleep(ms, undefined, { signal: over }).catch(() => undefined),
  };
  const cards: EngineCards = { "move the queue": () => move(server.name, options) };
  for (const [kind, act] of Object.entries(server.acts)) {
    cards[kind as EngineCard] = async () => {
      if (isTaken) return;
      isTaken = true;
      const at = Date.now();
      await act(hand).finally(() => {
        isTaken = false;
      });
      onFault({ kind, at, until: Date.now() });
    };
  }
  return cards;
}

/** There, or back; or an end to the move that is under way. */
async function move(name: EngineName, { random, onFault, ask }: EngineCardOptions): Promise<void> {
  const asked: Ask = (...asking) => ask(...asking).catch(() => ({ status: 0, body: {} }));
  const { body: queue } = await asked("GET", "/v1/queue");
  if (queue.migration) {
    const { status } = random() < 0.5 ? await asked("DELETE", "/v1/queue/migration") : { status: 0 };
    if (status === 202) onFault({ kind: "abort move", at: Date.now() });
    return;
  }
  const to = queue.engine === name ? "postgres" : name;
  const strategy = random() < 0.25 ? "drain-first" : "live-forward";
  const { status } = await asked("POST", "/v1/queue/migration", { to, strategy });
  if (status === 202) onFault({ kind: "move the queue", at: Date.now() });
}
