// What goes wrong, drawn from the seed.
//
// Faults are cards of a deck that is shuffled and dealt again and again, so that even a short run meets every kind.
//
// State: the cards under way. After `stop` everything that was broken is whole again.

import { setTimeout as sleep } from "node:timers/promises";
import { CARDS, type Card, type CardOptions, createCards } from "./cards.ts";
import type { Fault } from "./history.ts";

export type NemesisOptions = Omit<CardOptions, "over"> & {
  /** Fixes which card comes when; apart from the cards' own, since they draw from that at times the machine decides. */
  dealing: () => number;
  /** How long the whole deck takes. */
  deckMs: number;
};

export type Nemesis = {
  /** Ends all faults but one: a worker killed with work in hand, which nobody replaces. */
  stop(): Promise<void>;
};

const START_MS = 180_000;
/** The rest of the deck's time is for the last cards to take effect. */
const DEALT_SHARE = 0.9;

/** What a run must have met, how often, and the card that brings it: on a busy machine a card may miss its moment. */
const DUES: { kind: string; least: number; card: Card }[] = [
  { kind: "freeze worker", least: 2, card: "freeze a worker after its claim" },
  { kind: "kill api", least: 1, card: "kill the api" },
  { kind: "cut-before", least: 1, card: "cut before accept" },
  { kind: "cut-after", least: 1, card: "cut after settle" },
  { kind: "cut callbacks", least: 2, card: "cut before callbacks" },
  { kind: "cut cursor", least: 2, card: "cut before the cursor" },
  { kind: "blackhole", least: 1, card: "blackhole everybody" },
  { kind: "crash postgres", least: 1, card: "crash postgres" },
];

export function startNemesis(options: NemesisOptions): Nemesis {
  const { dealing, workers, api, deckMs } = options;
  /** No more cards; and what lasts is over, too. */
  const [dealt, over] = [new AbortController(), new AbortController()];
  const underWay = new Set<Promise<void>>();
  const failures: unknown[] = [];
  const met = new Map<string, number>();
  const onFault = (fault: Fault) => {
    met.set(fault.kind, (met.get(fault.kind) ?? 0) + 1);
    options.onFault(fault);
  };

  const wait = (ms: number) => sleep(Math.max(0, ms), undefined, { signal: dealt.signal }).catch(() => undefined);
  const { play, afterClaim } = createCards({ ...options, over: over.signal, onFault });
  const { deck: more = [], dues: moreDues = [] } = options.engine ?? {};
  const deck: readonly Card[] = [...CARDS, ...more];
  // There and back.
  const dues = [...DUES, ...moreDues.map((card) => ({ kind: card, least: card === "move the queue" ? 2 : 1, card }))];

  async function run(): Promise<void> {
    for (let dealtAt = performance.now(); ; dealtAt += deckMs) {
      for (const [index, card] of shuffled(deck, dealing).entries()) {
        await wait(dealtAt + ((index + dealing() * 0.9) / deck.length) * DEALT_SHARE * deckMs - performance.now());
        if (dealt.signal.aborted) return;
        const played: Promise<void> = (play[card]?.() ?? Promise.resolve())
          .catch((error: unknown) => void failures.push(error))
          .finally(() => underWay.delete(played));
        underWay.add(played);
      }
    }
  }
  const running = run();

  return {
    async stop() {
      // First, or on a slow machine the next deck would kill what is waited for.
      dealt.abort();
      await running;
      for (const { kind, least, card } of dues) {
        await Promise.all([api.up(START_MS), Promise.any(workers.map((slot) => slot.up(START_MS)))]);
        for (let tries = 0; tries < 3 && (met.get(kind) ?? 0) < least; tries++) await play[card]?.();
      }
      over.abort();
      for (const { proxy } of [...workers, api]) proxy.disarm();
      await Promise.all(underWay);
      if (failures.length > 0) throw new AggregateError(failures, "the harness itself failed");
      // One to die, and one to take over.
      const ups = workers.map((slot) => slot.up(START_MS).then(() => slot));
      const last = await Promise.any(ups);
      if (workers.length > 1) await Promise.any(ups.filter((_, index) => workers[index] !== last));
      await afterClaim(last);
      const pid = last.kill();
      if (pid !== undefined) onFault({ kind: "kill worker", at: Date.now(), slot: last.name, pid });
      if (workers.length === 1) last.start();
    },
  };
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
