// What may go wrong, a card each.
//
// Many are aimed: chance alone rarely kills a worker between its claim and its send, or wakes a frozen one while
// another holds its work. A card is played whatever the others are doing; none lasts longer than three leases.
//
// State: what a card has taken for itself.

import { setTimeout as sleep } from "node:timers/promises";
import type { ControllableServer } from "../test/support/postgres.ts";
import {
  createEngineCards,
  type EngineCard,
  type EngineCardOptions,
  type EngineCards,
  type EngineServer,
} from "./engine.ts";
import type { Fault } from "./history.ts";
import { findHolder, heldBy } from "./journal.ts";
import type { Slot } from "./slot.ts";

/** How long an aimed card waits for its moment. */
const AIM_MS = 3_000;
const LOOK_MS = 15;
/** Of what is ready here, and of what an engine gave besides. */
const CLAIMS = ["carillon-claim", "carillon-claim-given"];

export const CARDS = [
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
  "cut after expire",
  "cut before callbacks",
  "cut before the cursor",
  "late answer to a claim",
  "late answer to a claim",
  "late answer to a settle",
  "blackhole",
  "blackhole everybody",
  "crash postgres",
] as const;
export type Card = (typeof CARDS)[number] | EngineCard;

export type CardOptions = {
  random: () => number;
  workers: Slot[];
  api: Slot;
  server: ControllableServer;
  leaseMs: number;
  marginMs: number;
  /** What lasts is cut short by it. */
  over: AbortSignal;
  onFault: (fault: Fault) => void;
  /** Undefined where all that is ready waits in PostgreSQL. */
  engine: EngineServer | undefined;
  ask: EngineCardOptions["ask"];
};

export type Cards = {
  play: { [card in (typeof CARDS)[number]]: () => Promise<void> } & EngineCards;
  /** Resolves once that worker has claimed something, or after a while. */
  afterClaim(slot: Slot): Promise<unknown>;
};

export function createCards(options: CardOptions): Cards {
  const { random, workers, api, server, leaseMs, marginMs, over, onFault, engine, ask } = options;
  const taken = new Set<Slot>();
  let isServerTaken = false;

  const between = (least: number, most: number) => least + random() * (most - least);
  const wait = (ms: number) => sleep(ms, undefined, { signal: over }).catch(() => undefined);

  /** Takes a worker that runs and that no other card is busy with; waits a while for one. */
  async function withWorker(act: (slot: Slot) => Promise<void>): Promise<void> {
    for (const deadline = Date.now() + AIM_MS; Date.now() < deadline && !over.aborted; await wait(LOOK_MS)) {
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
    for (const deadline = Date.now() + 3 * leaseMs; Date.now() < deadline && !over.aborted; await wait(LOOK_MS)) {
      const holder = await findHolder(server.url, seqs, pid).catch(() => undefined);
      const next = workers.find((one) => one !== slot && one.pid() === holder && !one.isPaused() && !taken.has(one));
      const frozen = next && freeze(next);
      if (!frozen) continue;
      if ((await findHolder(server.url, seqs, pid).catch(() => undefined)) === holder) return frozen;
      frozen.thaw();
    }
    return undefined;
  }

  /** `kind`: what it is called where that matters more than how it was done. */
  async function strike(
    slot: Slot,
    act: "cut-before" | "cut-after" | "hold",
    statements: readonly string[],
    kind: string = act,
  ): Promise<void> {
    const holdMs = between(leaseMs - marginMs / 2, leaseMs + 500);
    const hit = await slot.proxy.strike({ statements, act, holdMs }, AIM_MS);
    if (!hit) return;
    onFault({ kind, slot: slot.name, ...hit, ...(act === "hold" && { until: hit.at + holdMs }) });
    if (act === "hold") await sleep(holdMs);
  }

  const afterClaim = (slot: Slot) => slot.proxy.strike({ statements: CLAIMS, act: "watch" }, AIM_MS);

  /** The keepers take turns, and those who make callbacks: it may come from any of them, so all are watched for it. */
  async function strikeAnybody(act: "cut-before" | "cut-after", statement: string, kind?: string): Promise<void> {
    const free = workers.filter((slot) => !taken.has(slot));
    await Promise.all(free.map((slot) => strike(slot, act, [statement], kind)));
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

  const play: Cards["play"] = {
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
    "cut before claim": () => withWorker((slot) => strike(slot, "cut-before", CLAIMS)),
    "cut before settle": () => withWorker((slot) => strike(slot, "cut-before", ["carillon-settle"])),
    "cut before accept": () => strike(api, "cut-before", ["carillon-accept"]),
    "cut after claim": () => withWorker((slot) => strike(slot, "cut-after", CLAIMS)),
    "cut after settle": () => withWorker((slot) => strike(slot, "cut-after", ["carillon-settle"])),
    "cut after accept": () => strike(api, "cut-after", ["carillon-accept"]),
    "cut after sweep": () => strikeAnybody("cut-after", "carillon-sweep"),
    // Of workers only the one that makes callbacks accepts anything.
    "cut before callbacks": () => strikeAnybody("cut-before", "carillon-accept", "cut callbacks"),
    "cut before the cursor": () => strikeAnybody("cut-before", "carillon-follower-moved", "cut cursor"),
    "cut after expire": () => strikeAnybody("cut-after", "carillon-expire"),
    "late answer to a claim": () => withWorker((slot) => strike(slot, "hold", CLAIMS)),
    "late answer to a settle": () => withWorker((slot) => strike(slot, "hold", ["carillon-settle"])),
    blackhole: () => withWorker((slot) => blackhole([slot])),
    "blackhole everybody": () => blackhole([...workers, api]),
    "crash postgres": crash,
    ...(engine && createEngineCards(engine, { random, over, onFault, ask })),
  };
  return { play, afterClaim };
}
