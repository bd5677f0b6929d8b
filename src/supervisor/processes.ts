// Keeps so many processes serving: starts them, replaces those that end, and stops them together.
//
// A process that ends is replaced, after a pause that grows while its successors fare no better. Before all of them have served once
// nothing is replaced: what one cannot start with, the next cannot either, and whoever started us is told.
// State: the processes by number, how long each has been silent, and whether we stop.

import type { Socket } from "node:net";
import { createNap } from "#timing/nap.ts";
import { type Child, type Exit, startChild } from "./child.ts";
import type { Complaint, FromProcess, ToProcess } from "./messages.ts";

export type ProcessesOptions = {
  count: number;
  program: string;
  leash: () => Socket | undefined;
  /** What a process is told once it listens. */
  begin: (number: number) => ToProcess;
  monotonic: () => number;
  /** Something a process says that does not concern its start or its end. */
  hear: (message: FromProcess, child: Child) => void;
  /** One more serves, or one less. */
  onChange: () => void;
  onServe: (child: Child) => void;
  /** With its last words, if it had any; it will be replaced after so long. */
  onEnd: (child: Child, how: string, pauseMs: number) => void;
  onSilence: (child: Child) => void;
};

/** What one of the first said, that could not start. */
export class StartError extends Error {
  readonly complaint: Complaint;
  constructor(complaint: Complaint) {
    super(complaint.said);
    this.name = "StartError";
    this.complaint = complaint;
  }
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
/** Whoever served for so long was well: its end is a new story. */
const WELL_MS = 60_000;
const PING_MS = 5_000;
/** Half a minute in which it did nothing at all: the port's connections are shared, so nobody outside can tell which one hangs. */
const MOST_UNANSWERED = 6;

export class Processes {
  readonly #options: ProcessesOptions;
  readonly #children = new Map<number, Child>();
  readonly #unanswered = new WeakMap<Child, number>();
  readonly #nap = createNap();
  readonly #keeping: Promise<void>[];
  readonly #pinging: NodeJS.Timeout;
  readonly #started: Promise<string>;
  #resolveStarted: (url: string) => void = () => undefined;
  #rejectStarted: (error: unknown) => void = () => undefined;
  #isStarted = false;
  #isStopping = false;

  constructor(options: ProcessesOptions) {
    this.#options = options;
    this.#started = new Promise((resolve, reject) => {
      this.#resolveStarted = resolve;
      this.#rejectStarted = reject;
    });
    this.#pinging = setInterval(() => this.#ping(), PING_MS);
    // Where we end without having waited for them, that is what a stop has come to for them too.
    process.once("exit", () => this.#killAll());
    this.#keeping = Array.from({ length: options.count }, (_, n) => this.#keep(n + 1));
  }

  /** Resolves with the URL when all of them serve; rejects with a StartError when one cannot, or when `stopping` comes first. */
  started(stopping?: AbortSignal): Promise<string> {
    const giveUp = () => this.#rejectStarted(stopping?.reason);
    if (stopping?.aborted) giveUp();
    stopping?.addEventListener("abort", giveUp, { once: true });
    return this.#started;
  }

  up(): Child[] {
    return [...this.#children.values()].filter((child) => child.isUp());
  }

  tellAll(message: ToProcess): void {
    for (const child of this.up()) child.tell(message);
  }

  /** Resolves when the last of them is gone. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#pinging);
    this.#nap.wake();
    for (const child of this.#children.values()) child.tell({ kind: "stop" });
    await Promise.all(this.#keeping);
  }

  /** Ends when we stop. */
  async #keep(number: number): Promise<void> {
    const { program, leash, begin, monotonic, onChange, onEnd } = this.#options;
    for (let pauseMs = 0; !this.#isStopping; ) {
      const startedAt = monotonic();
      const greeting = (): ToProcess => (this.#isStopping ? { kind: "stop" } : begin(number));
      const hear = (message: FromProcess, from: Child) => this.#hear(message, from);
      const child = startChild({ number, program, leash: leash(), greeting, hear });
      this.#children.set(number, child);
      const exit = await child.exited;
      this.#children.delete(number);
      onChange();
      if (this.#isStopping) return;
      if (!this.#isStarted) return this.#rejectStarted(new StartError(exit.complaint ?? endedEarly(number, exit)));
      const ranWell = monotonic() - startedAt > WELL_MS;
      pauseMs = ranWell ? FIRST_PAUSE_MS : Math.min(Math.max(pauseMs * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS);
      onEnd(child, exit.complaint?.said ?? exit.how, pauseMs);
      await this.#nap.sleep(pauseMs);
    }
  }

  #hear(message: FromProcess, child: Child): void {
    // The last words of one that is gone.
    if (this.#children.get(child.number) !== child) return;
    this.#unanswered.set(child, 0);
    if (message.kind === "ready") {
      this.#options.onServe(child);
      if (this.up().length === this.#options.count) {
        this.#isStarted = true;
        this.#resolveStarted(message.url);
      }
      this.#options.onChange();
    }
    this.#options.hear(message, child);
  }

  #ping(): void {
    for (const child of this.up()) {
      const unanswered = this.#unanswered.get(child) ?? 0;
      this.#unanswered.set(child, unanswered + 1);
      if (unanswered < MOST_UNANSWERED) child.tell({ kind: "ping" });
      else {
        this.#options.onSilence(child);
        child.kill();
      }
    }
  }

  #killAll(): void {
    for (const child of this.#children.values()) child.kill();
  }
}

const endedEarly = (number: number, { how }: Exit): Complaint => ({
  said: `process ${number} ended before it served: ${how}`,
  exitCode: 1,
});
