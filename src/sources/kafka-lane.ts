// One partition's way from what was fetched to what is kept: in order, one batch at a time, the next one read meanwhile.

import { setTimeout as sleep } from "node:timers/promises";
import { batchesOf, halves, type Read, type ReadBatch } from "./kafka-records.ts";
import type { Keep, Keeping, Refusal } from "./source.ts";

export type LaneOptions = {
  topic: string;
  partition: number;
  /** What is kept. */
  from: number;
  keeping: Keeping;
  onRefused: (refused: readonly Refusal[], batch: ReadBatch) => void;
  /** Something was kept, and there may be room for more. */
  onMoved: () => void;
};

type Waiting = { batch: ReadBatch; keep: Promise<Keep> | undefined };

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 10_000;
/** After so many failures a batch is tried in halves. */
const TRIES = 4;

export class KafkaLane {
  readonly partition: number;
  /** What is fetched next. */
  position: number;
  /** What is kept, as far as this process knows. */
  kept: number;
  /** Where the partition ended when it was last asked. */
  end: number | undefined;
  /** It is not fetched for until then, by the monotonic clock. */
  restsUntil = Number.NEGATIVE_INFINITY;
  readonly #options: LaneOptions;
  readonly #closing = new AbortController();
  #waiting: Waiting[] = [];
  #bytes = 0;
  #running: Promise<void> | undefined;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.partition = options.partition;
    this.position = options.from;
    this.kept = options.from;
  }

  /** Of what waits to be kept. */
  get bytes(): number {
    return this.#bytes;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  add(messages: readonly Read[], next: number): void {
    const { topic, partition } = this.#options;
    if (this.isClosed) return;
    const { from, messages: before } = this.#takeBackLast();
    for (const batch of batchesOf({ topic, partition, from, next, ends: this.end }, [...before, ...messages])) {
      this.#waiting.push({ batch, keep: undefined });
      this.#bytes += batch.bytes;
    }
    this.position = next;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** Begins nothing more, and waits for what is being kept. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  /** The last of those that wait, if nobody has begun with it: what is left over of a fetch goes together with what the next one brings. */
  #takeBackLast(): { from: number; messages: readonly Read[] } {
    const last = this.#waiting.length > 1 ? this.#waiting.at(-1) : undefined;
    if (!last || last.keep) return { from: this.position, messages: [] };
    this.#waiting.pop();
    this.#bytes -= last.batch.bytes;
    return last.batch;
  }

  async #run(): Promise<void> {
    for (let current = this.#waiting[0]; current && !this.isClosed; current = this.#waiting[0]) {
      const kept = await this.#keep(current);
      if (this.isClosed || kept === undefined) continue;
      if (kept.kind === "elsewhere") {
        // What was read beyond may be another's by now: from what is kept on everything is read again.
        this.#waiting = [];
        this.#bytes = 0;
        this.position = kept.next;
        this.kept = kept.next;
      } else {
        this.#waiting.shift();
        this.#bytes -= current.batch.bytes;
        this.kept = current.batch.next;
        if (kept.refused.length > 0) this.#options.onRefused(kept.refused, current.batch);
      }
      this.#options.onMoved();
    }
  }

  /** Until it is kept; undefined where it is to be looked at anew. */
  async #keep(current: Waiting) {
    const { keeping } = this.#options;
    for (let failures = 0; !this.isClosed; failures++) {
      try {
        const keep = await (current.keep ?? keeping.read(current.batch));
        const storing = keep();
        this.#readAhead();
        const kept = await storing;
        if (failures > 0) keeping.failed(undefined);
        return kept;
      } catch (error) {
        // Those after it are read anew as well: ids are given when they are read, in the order of the messages.
        for (const waiting of this.#waiting) waiting.keep = undefined;
        keeping.failed(error);
        const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
        await sleep(waitMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
        if (failures >= TRIES && current.batch.messages.length > 1) return this.#halve(current.batch);
      }
    }
    return undefined;
  }

  #readAhead(): void {
    const next = this.#waiting[1];
    if (!next || next.keep) return;
    next.keep = this.#options.keeping.read(next.batch);
    // Whoever takes it hears of it.
    next.keep.catch(() => undefined);
  }

  #halve(batch: ReadBatch): undefined {
    this.#waiting.splice(0, 1, ...halves(batch).map((half) => ({ batch: half, keep: undefined })));
  }
}
