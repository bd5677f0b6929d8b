// What goes wrong, drawn from the seed.
//
// Faults are cards of a deck that is shuffled and dealt again and again, so that even a short run meets every kind.
// Many are aimed: chance alone rarely kills a worker between its claim and its send, or wakes a frozen one while
// another holds its work. A card is dealt whatever the others are doing; none lasts longer than three leases.
//
// State: the cards under way. After `stop` everything that was broken is whole again.

import { setTimeout as sleep } from "node:timers/promises";
import type { ControllableServer } from "../test/support/postgres.ts";
import type { Slot } from "./fleet.ts";
import type { Fault } from "./history.ts";
import { findHolder, heldBy } from "./journal.ts";

export type NemesisOptions = {
  /** Fixes which card comes when; apart from the other, since cards draw from that at times the machine decides. */
  dealing: () => number;
  random: () => number;
  workers: Slot[];
  api: Slot;
  server: ControllableServer;
  leaseMs: number;
  marginMs: number;
  /** How long the whole deck takes. */
  deckMs: number;
  onFault: (fault: Fault) => void;
};

export type Nemesis = {
  /** Ends all faults but one: a worker killed with work in hand, which nobody replaces. */
  stop(): Promise<void>;
};

/** How long an aimed card waits for its moment. */
const AIM_MS = 3_000;
const LOOK_MS = 15;
const START_MS = 180_000;
/** The rest of the deck's time is for the last cards to take effect. */
const DEALT_SHARE = 0.9;

const CARDS = [
  "kill a worker",
  "kill a worker after its claim",
  "kill a worker after its claim",
  "freeze a worker",
  "freeze a worker after its claim",
  "freeze a worker until another has its work",
  "freeze a worker until another has its work",
  "kill the api",
  "cut connections",
  "cut connections",
  "cut before claim",
  "cut before settle",
  "cut before accept",
  "cut after claim",
  "cut after settle",
  "cut after settle",
  "cut after accept",
  "cut after sweep",
  "cut after due",
  "late answer to a claim",
  "late answer to a claim",
  "late answer to a settle",
  "blackhole",
  "blackhole everybody",
  "crash postgres",
] as const;
type Card = (typeof CARDS)[number];

/** What a run must have met, how often, and the card that brings it: on a busy machine a card may miss its moment. */
const DUES: { kind: string; least: number; card: Card }[] = [
  { kind: "freeze worker", least: 2, card: "freeze a worker after its claim" },
  { kind: "kill api", least: 1, card: "kill the api" },
  { kind: "cut-before", least: 1, card: "cut before accept" },
  { kind: "cut-after", least: 1, card: "cut after settle" },
  { kind: "blackhole", least: 1, card: "blackhole everybody" },
  { kind: "crash postgres", least: 1, card: "crash postgres" },
];

export function startNemesis(options: NemesisOptions): Nemesis {
  const { dealing, random, workers, api, server, leaseMs, marginMs, deckMs } = options;
  const over = new AbortController();
  const underWay = new Set<Promise<void>>();
  /** Slots that a card has taken for itself. */
  const taken = new Set<Slot>();
  const failures: unknown[] = [];
  let isServerTaken = false;
  const met = new Map<string, number>();
  const onFault = (fault: Fault) => {
    met.set(fault.kind, (met.get(fault.kind) ?? 0) + 1);
    options.onFault(fault);
  };

  const between = (least: number, most: number) => least + random() * (most - least);
  const wait = (ms: number) => sleep(ms, undefined, { signal: over.signal }).catch(() => undefined);

  /** Takes a worker that runs and that no other card is busy with; waits a while for one. */
  async function withWorker(act: (slot: Slot) => Promise<void>): Promise<void> {
    for (const deadline = Date.now() + AIM_MS; Date.now() < deadline && !over.signal.aborted; await wait(LOOK_MS)) {
      const free = workers.filter((slot) => slot.pid() !== undefined && !slot.isPaused() && !taken.has(slot));
      const slot = free[Math.floor(random() * free.length)];
      if (!slot) continue;
      taken.add(slot);
      return act(slot).finally(() => taken.delete(slot));
    }
  }

  async function kill(slot: Slot, downMs: number): Promise<void> {
    const pid = slot.kill();
    if (pid === undefined) return;
    onFault({ kind: slot === api ? "kill api" : "kill worker", at: Date.now(), slot: slot.name, pid });
    await wait(downMs);
    slot.start();
  }

  /** Undefined if it does not run. */
  function freeze(slot: Slot): { pid: number; thaw(): void } | undefined {
    const pid = slot.pause();
    const at = Date.now();
    if (pid === undefined) return undefined;
    const thaw = () => {
      slot.proceed();
      onFault({ kind: "freeze worker", at, until: Date.now(), slot: slot.name, pid });
    };
    return { pid, thaw };
  }

  async function freezeFor(slot: Slot, ms: number): Promise<void> {
    const frozen = freeze(slot);
    if (!frozen) return;
    await wait(ms);
    frozen.thaw();
  }

  /** Frozen until another worker holds its work; then that one is frozen and the first goes on, with a stale lease. */
  async function relay(slot: Slot): Promise<void> {
    const first = freeze(slot);
    if (!first) return;
    const seqs = await heldBy(server.url, first.pid).catch(() => []);
    const successor = seqs.length > 0 ? await catchSuccessor(slot, first.pid, seqs) : undefined;
    first.thaw();
    if (!successor) return;
    onFault({ kind: "relay", at: Date.now(), slot: slot.name });
    await wait(between(0.2, 0.5) * leaseMs);
    successor.thaw();
  }

  /** Freezes whoever holds one of these, and makes sure that it still does. */
  async function catchSuccessor(slot: Slot, pid: number, seqs: number[]): Promise<{ thaw(): void } | undefined> {
    for (
      const deadline = Date.now() + 3 * leaseMs;
      Date.now() < deadline && !over.signal.aborted;
      await wait(LOOK_MS)
    ) {
      const holder = await findHolder(server.url, seqs, pid).catch(() => undefined);
      const next = workers.find((one) => one !== slot && one.pid() === holder && !one.isPaused() && !taken.has(one));
      const frozen = next && freeze(next);
      if (!frozen) continue;
      if ((await findHolder(server.url, seqs, pid).catch(() => undefined)) === holder) return frozen;
      frozen.thaw();
    }
    return undefined;
  }

  async function strike(slot: Slot, act: "cut-before" | "cut-after" | "hold", statement: string): Promise<void> {
    const holdMs = between(leaseMs - marginMs / 2, leaseMs + 500);
    const hit = await slot.proxy.strike({ statement, act, holdMs }, AIM_MS);
    if (!hit) return;
    onFault({ kind: act, slot: slot.name, ...hit, ...(act === "hold" && { until: hit.at + holdMs }) });
    if (act === "hold") await sleep(holdMs);
  }

  const afterClaim = (slot: Slot) => slot.proxy.strike({ statement: "carillon-claim", act: "watch" }, AIM_MS);

  /** The keepers take turns: a sweep may come from any of them, so all are watched for it. */
  async function strikeAnybody(act: "cut-before" | "cut-after", statement: string): Promise<void> {
    await Promise.all(workers.filter((slot) => !taken.has(slot)).map((slot) => strike(slot, act, statement)));
  }

  async function blackhole(slots: Slot[]): Promise<void> {
    const at = Date.now();
    for (const { proxy } of slots) proxy.stall();
    await wait(between(400, 1.3 * leaseMs));
    for (const { proxy } of slots) proxy.resume(random() < 0.5 ? "flow" : "cut");
    for (const { name } of slots) onFault({ kind: "blackhole", at, until: Date.now(), slot: name });
  }

  async function crash(): Promise<void> {
    if (isServerTaken) return;
    isServerTaken = true;
    const at = Date.now();
    await server.stop("immediate");
    await wait(between(100, 700));
    await server.start();
    onFault({ kind: "crash postgres", at, until: Date.now() });
    isServerTaken = false;
  }

  const play: { [card in Card]: () => Promise<void> } = {
    "kill a worker": () => withWorker((slot) => kill(slot, between(200, 1_500))),
    "kill a worker after its claim": () =>
      withWorker(async (slot) => {
        if (!(await afterClaim(slot))) return;
        await wait(between(0, 60));
        await kill(slot, between(200, 1_500));
      }),
    "freeze a worker": () => withWorker((slot) => freezeFor(slot, between(1.5, 3) * leaseMs)),
    "freeze a worker after its claim": () =>
      withWorker(async (slot) => {
        if (!(await afterClaim(slot))) return;
        await wait(between(0, 15));
        await freezeFor(slot, between(1.5, 3) * leaseMs);
      }),
    "freeze a worker until another has its work": () =>
      withWorker(async (slot) => {
        if (!(await afterClaim(slot))) return;
        await wait(between(0, 30));
        await relay(slot);
      }),
    "kill the api": () => kill(api, between(100, 600)),
    "cut connections": async () => {
      const slot = [...workers, api][Math.floor(random() * (workers.length + 1))] as Slot;
      const rows = slot.proxy.cut();
      onFault({ kind: "cut connections", at: Date.now(), slot: slot.name, rows });
    },
    "cut before claim": () => withWorker((slot) => strike(slot, "cut-before", "carillon-claim")),
    "cut before settle": () => withWorker((slot) => strike(slot, "cut-before", "carillon-settle")),
    "cut before accept": () => strike(api, "cut-before", "carillon-accept"),
    "cut after claim": () => withWorker((slot) => strike(slot, "cut-after", "carillon-claim")),
    "cut after settle": () => withWorker((slot) => strike(slot, "cut-after", "carillon-settle")),
    "cut after accept": () => strike(api, "cut-after", "carillon-accept"),
    "cut after sweep": () => strikeAnybody("cut-after", "carillon-sweep"),
    "cut after due": () => withWorker((slot) => strike(slot, "cut-after", "carillon-due")),
    "late answer to a claim": () => withWorker((slot) => strike(slot, "hold", "carillon-claim")),
    "late answer to a settle": () => withWorker((slot) => strike(slot, "hold", "carillon-settle")),
    blackhole: () => withWorker((slot) => blackhole([slot])),
    "blackhole everybody": () => blackhole([...workers, api]),
    "crash postgres": crash,
  };

  async function run(): Promise<void> {
    for (let dealtAt = performance.now(); ; dealtAt += deckMs) {
      for (const [index, card] of shuffled(CARDS, dealing).entries()) {
        await wait(dealtAt + ((index + dealing() * 0.9) / CARDS.length) * DEALT_SHARE * deckMs - performance.now());
        if (over.signal.aborted) return;
        const played: Promise<void> = play[card]()
          .catch((error: unknown) => void failures.push(error))
          .finally(() => underWay.delete(played));
        underWay.add(played);
      }
    }
  }
  const running = run();

  return {
    async stop() {
      for (const { kind, least, card } of DUES) {
        await Promise.all([api.up(START_MS), Promise.any(workers.map((slot) => slot.up(START_MS)))]);
        for (let tries = 0; tries < 3 && (met.get(kind) ?? 0) < least; tries++) await play[card]();
      }
      over.abort();
      await running;
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
