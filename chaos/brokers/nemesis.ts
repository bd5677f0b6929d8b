// What goes wrong in a run with brokers, drawn from the seed: each server is killed again and again, and beside that processes and connections suffer.
//
// State: what is under way. After `stop` all servers and processes run again.

import { setTimeout as sleep } from "node:timers/promises";
import type { Fault } from "../history.ts";
import type { Slot } from "../slot.ts";
import { MET } from "./checks.ts";
import type { Place } from "./stage.ts";

export type BrokerNemesisOptions = {
  slots: readonly Slot[];
  places: readonly Place[];
  random: () => number;
  /** Fixes which card of a deck comes when; apart from the cards' own, since they draw from that at times the machine decides. */
  dealing: (deck: number) => () => number;
  /** Faults come more slowly, and processes also stand still for longer than their leases last. */
  isLong: boolean;
  onFault: (fault: Fault) => void;
};

type Cards = readonly { kind: string; play: () => Promise<void> }[];

export type BrokerNemesis = { stop(): Promise<void> };

/** Between faults of one deck, more or less. After a kill Kafka's groups need some 20 s to find together again: a long run leaves them time for rebalances. */
const [KILL_MS, HURT_MS] = [8_000, 600];
const [LONG_KILL_MS, LONG_HURT_MS] = [45_000, 4_000];
const AGAIN_MS = 200;
const START_MS = 180_000;
const STOP_MS = 60_000;
/** For a statement to come that is waited for. */
const AIM_MS = 4_000;
const [SILENT_LEAST_MS, SILENT_MOST_MS] = [500, 2_500];
/** Beyond the 10 s after which its group misses it, and the 15 s of its sinks' leases. */
const [FROZEN_LEAST_MS, FROZEN_MOST_MS] = [11_000, 18_000];

export function startBrokerNemesis(options: BrokerNemesisOptions): BrokerNemesis {
  const { slots, places, random, dealing, isLong, onFault } = options;
  /** No more cards; and what lasts is over, too. */
  const [dealt, over] = [new AbortController(), new AbortController()];
  const met = new Set<string>();
  const between = (least: number, most: number) => least + random() * (most - least);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const wait = (ms: number) => sleep(ms, undefined, { signal: over.signal }).catch(() => undefined);
  const fault = (kind: string, more: Partial<Fault> = {}) => {
    met.add(kind);
    onFault({ kind, at: Date.now(), ...more });
  };

  async function killProcess(): Promise<void> {
    const slot = pick(slots);
    const pid = slot.kill();
    if (pid !== undefined) fault("kill carillon", { slot: slot.name, pid });
    await wait(between(0, 1_000));
    slot.start();
  }

  async function stopProcess(): Promise<void> {
    const slot = pick(slots);
    await slot.up(START_MS);
    const isClean = await slot.stop(STOP_MS);
    fault(isClean ? "stop carillon" : "did not stop", { slot: slot.name });
    slot.start();
  }

  async function freeze(): Promise<void> {
    const slot = pick(slots);
    const pid = slot.pause();
    if (pid === undefined) return;
    const at = Date.now();
    await wait(between(FROZEN_LEAST_MS, FROZEN_MOST_MS));
    slot.proceed();
    fault("freeze carillon", { at, until: Date.now(), slot: slot.name, pid });
  }

  async function killServer({ name, server }: Place, withProcess: boolean): Promise<void> {
    fault(`kill ${name}`);
    await Promise.all([server.kill(), withProcess && killProcess()]);
    await wait(between(0, 1_500));
    await server.restart();
  }

  async function cut({ name, proxy }: Place): Promise<void> {
    const rows = proxy.cut();
    if (rows > 0) fault(`cut ${name}`, { rows });
  }

  /** Nothing passes, or nothing that the server says; then what there is breaks. */
  async function silence({ name, proxy }: Place, how: "silence" | "mute"): Promise<void> {
    const at = Date.now();
    proxy[how]();
    await wait(between(SILENT_LEAST_MS, SILENT_MOST_MS));
    const rows = proxy.cut();
    if (rows > 0) fault(`${how} ${name}`, { at, until: Date.now(), rows });
  }

  /** Whoever runs it next: that may be any of them. */
  async function cutBefore(statement: string, kind: string): Promise<void> {
    const hits = await Promise.all(
      slots.map(({ proxy }) => proxy.strike({ statements: [statement], act: "cut-before" }, AIM_MS)),
    );
    for (const hit of hits) if (hit) fault(kind, hit);
  }

  const kills = (place: Place): Cards => {
    const kill = { kind: `kill ${place.name}`, play: () => killServer(place, false) };
    const both = { kind: "kill carillon", play: () => killServer(place, true) };
    return place.name === "clickhouse" ? [kill] : [kill, both];
  };
  const hurts: Cards = [
    { kind: "kill carillon", play: killProcess },
    { kind: "stop carillon", play: stopProcess },
    ...(isLong ? [{ kind: "freeze carillon", play: freeze }] : []),
    ...places.flatMap((place) => [
      { kind: `cut ${place.name}`, play: () => cut(place) },
      { kind: `silence ${place.name}`, play: () => silence(place, "silence") },
      { kind: `mute ${place.name}`, play: () => silence(place, "mute") },
    ]),
    { kind: "cut database", play: async () => fault("cut database", { rows: pick(slots).proxy.cut() }) },
    { kind: "cut accept", play: () => cutBefore("carillon-accept", "cut accept") },
    { kind: "cut cursor", play: () => cutBefore("carillon-follower-moved", "cut cursor") },
  ];

  async function deal(cards: Cards, pauseMs: number, drawn: () => number): Promise<void> {
    while (!dealt.signal.aborted) {
      for (const { play } of shuffled(cards, drawn)) {
        await sleep((0.5 + drawn()) * pauseMs, undefined, { signal: dealt.signal }).catch(() => undefined);
        if (dealt.signal.aborted) return;
        await play();
      }
    }
  }

  /** What the time did not suffice for, or what missed its moment. */
  async function catchUp(cards: Cards): Promise<void> {
    for (const { kind, play } of cards) {
      const deadline = performance.now() + START_MS;
      while (MET.includes(kind) && !met.has(kind) && performance.now() < deadline) {
        await play();
        await wait(AGAIN_MS);
      }
    }
  }

  const decks = [...places.map(kills), hurts];
  const [killMs, hurtMs] = isLong ? [LONG_KILL_MS, LONG_HURT_MS] : [KILL_MS, HURT_MS];
  const running = Promise.all(decks.map((deck, n) => deal(deck, deck === hurts ? hurtMs : killMs, dealing(n))));
  // Heard of when it is stopped.
  running.catch(() => undefined);
  return {
    async stop() {
      dealt.abort();
      await running;
      await Promise.all(decks.map(catchUp));
      over.abort();
      await Promise.all(slots.map((slot) => slot.up(START_MS)));
    },
  };
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
