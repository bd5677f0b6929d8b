// What becomes of messages: they are deleted, or others may have them at once. Ten in a request; none of them is worth a request of its own, nor a second
// try, as a message that is neither comes back by itself.

import { MOST_MESSAGES } from "./message.ts";
import type { Queues } from "./queues.ts";

/** Until then others may be added. */
const GATHER_MS = 100;

export class Answers {
  readonly #queues: Queues;
  readonly #rank: number;
  readonly #over: string[] = [];
  readonly #free: string[] = [];
  readonly #underWay = new Set<Promise<unknown>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(queues: Queues, rank: number) {
    this.#queues = queues;
    this.#rank = rank;
  }

  delete(receipt: string): void {
    this.#add(this.#over, receipt);
  }

  release(receipt: string): void {
    this.#add(this.#free, receipt);
  }

  /** Resolves when all of them were asked for. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#over.length > 0) this.#ask("DeleteMessageBatch", this.#over, {});
    while (this.#free.length > 0) this.#ask("ChangeMessageVisibilityBatch", this.#free, { VisibilityTimeout: 0 });
    await Promise.all(this.#underWay);
  }

  #add(to: string[], receipt: string): void {
    to.push(receipt);
    if (to.length >= MOST_MESSAGES) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), GATHER_MS);
  }

  #ask(action: "DeleteMessageBatch" | "ChangeMessageVisibilityBatch", receipts: string[], more: object): void {
    const Entries = receipts
      .splice(0, MOST_MESSAGES)
      .map((ReceiptHandle, n) => ({ Id: `${n}`, ReceiptHandle, ...more }));
    const asking = this.#queues.ask(this.#rank, action, { Entries }).catch(() => undefined);
    this.#underWay.add(asking);
    void asking.finally(() => this.#underWay.delete(asking));
  }
}
